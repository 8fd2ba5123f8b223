//! The server of `rr`: every message goes back as it came.
//!
//! A message is kept until all of it has arrived. Up to [`KEPT`] bytes are a connection's own, as many as a
//! message of the contract has; what is longer is a part of what all connections share ([`Held`]).

use super::{Ended, Script};
use crate::held::Held;
use linerate_contract::ErrorKind;
use linerate_proto::websocket::LARGEST_MESSAGE;
use linerate_proto::websocket::encoder::Messages;
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::{self, Key};
use std::collections::VecDeque;

/// Bytes of a connection's buffer that stay with it: the longest message of `rr` (sdk/CONTRACT.md).
const KEPT: usize = 65_536;
/// The server's part. It has all of a message before the first byte goes back.
#[derive(Debug, Default)]
pub struct Echo {
    bytes: Vec<u8>,
    /// Whole messages in `bytes`: their kind and where they end.
    whole: VecDeque<(Opcode, usize)>,
    /// The one that is on its way back begins and ends here.
    from: usize,
    to: usize,
    share: Held,
    /// There was no room for a message.
    is_full: bool,
}

impl Echo {
    /// Makes room for `length` bytes in all; false if there is none.
    #[cold]
    fn grow(&mut self, length: usize) -> bool {
        let most = if length <= KEPT { KEPT } else { length.max(LARGEST_MESSAGE as usize) };
        let capacity = length.max(2 * self.bytes.capacity()).min(most);
        let granted =
            [capacity, length].into_iter().find(|bytes| self.share.resize(bytes.saturating_sub(KEPT)));
        if let Some(capacity) = granted {
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        granted.is_some()
    }

    /// Returns what is beyond a connection's own bytes.
    #[cold]
    fn shrink(&mut self) {
        self.bytes.shrink_to(KEPT);
        self.share.resize(self.bytes.capacity().saturating_sub(KEPT));
    }
}

impl Messages for Echo {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        let Some((kind, end)) = self.whole.pop_front() else {
            // All that was whole is out.
            self.bytes.drain(..self.to);
            (self.from, self.to) = (0, 0);
            if self.bytes.capacity() > KEPT && self.bytes.len() <= KEPT {
                self.shrink();
            }
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
        let length = self.bytes.len() + bytes.len();
        if length > self.bytes.capacity() && !self.grow(length) {
            self.is_full = true;
            return;
        }
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
        if self.is_full { Err(ErrorKind::Failed) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::SHARED;
    use crate::held::tests::{alone, left};

    #[test]
    fn long_messages_share_a_limit_and_give_it_back() {
        let _alone = alone();
        let mut piece = vec![0; 64 << 10];
        let mut echoes: Vec<Echo> = (0..200).map(|_| Echo::default()).collect();
        for echo in &mut echoes {
            (0..16).for_each(|_| echo.payload(&mut piece, Key::NONE));
        }
        let all: usize = echoes.iter().map(|echo| echo.bytes.capacity()).sum();
        assert!(all <= 200 * KEPT + SHARED, "{all}");
        assert!(echoes[0].verdict().is_ok() && echoes[199].verdict().is_err());
        assert_eq!(left(), 200 * KEPT + SHARED - all);
        // A message that goes back leaves no more than a connection's own bytes.
        let echo = &mut echoes[0];
        echo.ended(Ended::Message(Opcode::Binary));
        assert_eq!(echo.next(), Some((Opcode::Binary, 16 * piece.len() as u64)));
        assert_eq!(echo.next(), None);
        assert!(echo.bytes.capacity() <= KEPT && echo.share.bytes() == 0);
        drop(echoes);
        assert_eq!(left(), SHARED);
        let mut longest = Echo::default();
        (0..256).for_each(|_| longest.payload(&mut piece, Key::NONE));
        assert!(longest.verdict().is_ok() && longest.bytes.capacity() as u64 == LARGEST_MESSAGE);
    }
}
