//! `rr`: sends a message and waits until all of it is back.

use super::{Ended, Operation, Script, same};
use linerate_contract::ErrorKind;
use linerate_proto::websocket::encoder::Messages;
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::Key;
use std::sync::Arc;

/// The client's part.
#[derive(Debug)]
pub struct RoundTrip {
    message: Arc<[u8]>,
    asked: bool,
    back: usize,
    /// The end of the message has arrived: of a stream without messages, its last byte.
    ended: bool,
    wrong: Option<ErrorKind>,
}

impl RoundTrip {
    pub fn new(message: Arc<[u8]>) -> Self {
        Self { message, asked: false, back: 0, ended: false, wrong: None }
    }
}

impl Messages for RoundTrip {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        Some((Opcode::Binary, self.message.len() as u64))
    }

    #[inline]
    fn piece(&self, at: u64, most: usize) -> &[u8] {
        &self.message[at as usize..][..most]
    }
}

impl Script for RoundTrip {
    const SINGLE: bool = true;

    #[inline]
    fn payload(&mut self, bytes: &mut [u8], key: Key) {
        let wanted = &self.message[self.back..];
        if !self.asked || bytes.len() > wanted.len() {
            self.wrong = Some(ErrorKind::WrongLength);
        } else if !same(bytes, key, &wanted[..bytes.len()]) {
            self.wrong = Some(ErrorKind::WrongContent);
        } else {
            self.back += bytes.len();
        }
    }

    #[inline]
    fn ended(&mut self, what: Ended) {
        self.ended = self.back == self.message.len();
        match what {
            Ended::Message(Opcode::Binary) if self.ended => {}
            Ended::Message(Opcode::Binary) => drop(self.wrong.get_or_insert(ErrorKind::WrongLength)),
            // An echo has the kind of its message.
            Ended::Message(_) => drop(self.wrong.get_or_insert(ErrorKind::Malformed)),
            Ended::Read => {}
        }
    }

    #[inline]
    fn verdict(&self) -> Result<(), ErrorKind> {
        self.wrong.map_or(Ok(()), Err)
    }
}

impl Operation for RoundTrip {
    #[inline]
    fn complete(&mut self) -> Option<u64> {
        if !self.ended {
            return None;
        }
        (self.asked, self.back, self.ended) = (false, 0, false);
        Some(self.message.len() as u64)
    }

    fn cut(&self) -> ErrorKind {
        if self.back == 0 { ErrorKind::EmptyReply } else { ErrorKind::Truncated }
    }
}
