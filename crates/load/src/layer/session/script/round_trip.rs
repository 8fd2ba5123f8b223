//! `rr`: sends a message and waits until all of it is back.

use super::{Ended, Operation, Script, same};
use crate::cause::note;
use linerate_contract::{Cause, ErrorKind};
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
    /// The kind of the message, where messages have one.
    kind: Opcode,
    /// Messages that a server which speaks first has still to send.
    greetings: u64,
    wrong: Option<ErrorKind>,
}

impl RoundTrip {
    pub fn new(message: Arc<[u8]>, kind: Opcode, greetings: u64) -> Self {
        Self { message, asked: false, back: 0, ended: false, kind, greetings, wrong: None }
    }

    #[cold]
    fn fail(&mut self, kind: ErrorKind, bytes: &[u8]) {
        self.wrong = self.wrong.or_else(|| Some(self.note(kind, bytes)));
    }

    /// Notes why these bytes are no echo; returns the kind.
    #[cold]
    fn note(&self, kind: ErrorKind, bytes: &[u8]) -> ErrorKind {
        note(kind, || {
            let (back, all) = (self.back, self.message.len());
            let text = match kind {
                _ if !self.asked => "data before the message that it answers".to_owned(),
                ErrorKind::WrongContent => {
                    format!("other bytes than were sent, from byte {back} of {all} on")
                }
                ErrorKind::WrongLength if bytes.is_empty() => {
                    format!("a message of {back} bytes in place of {all}")
                }
                ErrorKind::WrongLength => format!("more than the {all} bytes that were sent"),
                _ => "a message of another kind than was sent".into(),
            };
            Cause::showing(text, bytes)
        })
    }
}

impl Messages for RoundTrip {
    #[inline]
    fn next(&mut self) -> Option<(Opcode, u64)> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        Some((self.kind, self.message.len() as u64))
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
        if self.greetings > 0 {
            return;
        }
        if !self.asked || bytes.len() > wanted.len() {
            self.fail(ErrorKind::WrongLength, bytes);
        } else if !same(bytes, key, &wanted[..bytes.len()]) {
            self.fail(ErrorKind::WrongContent, bytes);
        } else {
            self.back += bytes.len();
        }
    }

    #[inline]
    fn ended(&mut self, what: Ended) {
        self.ended = self.back == self.message.len();
        match what {
            Ended::Message(kind) if self.ended && kind == self.kind => {}
            Ended::Message(_) if self.greetings > 0 => self.greetings -= 1,
            // An echo has the kind of its message.
            Ended::Message(_) if self.ended => self.fail(ErrorKind::Malformed, &[]),
            Ended::Message(_) => self.fail(ErrorKind::WrongLength, &[]),
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
        if self.back == 0 { ErrorKind::EmptyResponse } else { ErrorKind::Truncated }
    }

    fn progress(&self) -> String {
        match self.back {
            0 => "before the first byte of an echo".into(),
            back => format!("after {back} of {} bytes of an echo", self.message.len()),
        }
    }
}
