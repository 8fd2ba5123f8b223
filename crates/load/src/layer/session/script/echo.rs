//! The server of `rr`: every message goes back as it came.

use super::{Ended, Script};
use crate::layer::websocket::encoder::Messages;
use crate::layer::websocket::frame::Opcode;
use crate::layer::websocket::mask::{self, Key};
use linerate_contract::ErrorKind;
use std::collections::VecDeque;

/// The server's part. It has all of a message before the first byte goes back.
#[derive(Debug, Default)]
pub struct Echo {
    bytes: Vec<u8>,
    /// Whole messages in `bytes`: their kind and where they end.
    whole: VecDeque<(Opcode, usize)>,
    /// The one that is on its way back begins and ends here.
    from: usize,
    to: usize,
}

impl Messages for Echo {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        let Some((kind, end)) = self.whole.pop_front() else {
            // All that was whole is out.
            self.bytes.drain(..self.to);
            (self.from, self.to) = (0, 0);
            return None;
        };
        (self.from, self.to) = (self.to, end);
        Some((kind, (end - self.from) as u64))
    }

    #[inline]
    fn piece(&self, at: u64, most: usize) -> &[u8] {
        &self.bytes[self.from + at as usize..self.to][..most]
    }
}

impl Script for Echo {
    #[inline]
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        mask::apply(bytes, key);
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    fn ended(&mut self, what: Ended) {
        let kind = match what {
            Ended::Message(kind) => kind,
            Ended::Read => Opcode::Binary,
        };
        self.whole.push_back((kind, self.bytes.len()));
    }

    fn verdict(&self) -> Result<(), ErrorKind> {
        Ok(())
    }
}
