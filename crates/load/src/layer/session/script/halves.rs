//! The two halves of a stream, the same at both ends: what is to be sent, and how received bytes are taken.

use super::same;
use crate::layer::session::TURN;
use crate::layer::transfer::{Content, Incoming, Number, good};
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::{self, Key};

/// The message under way.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sending {
    Nothing,
    Number([u8; 8]),
    /// A range of the content.
    Content {
        at: u64,
        length: u64,
    },
}

/// Bytes still to be sent: a number, content, and a number.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) sending: Sending,
    pub(super) head: Option<u64>,
    /// Content that has begun, and all of it.
    pub(super) at: u64,
    pub(super) total: u64,
    pub(super) tail: Option<u64>,
    /// The offset behind which bytes wait.
    pub(super) hold: Option<u64>,
    /// Bytes of content that may begin in this turn, and in each. Content both ways takes turns write by
    /// write: what waits in the socket is then still in the cache when it is read.
    pub(super) left: u64,
    pub(super) turn: u64,
}

impl Outgoing {
    pub(super) fn new() -> Self {
        let (sending, turn) = (Sending::Nothing, TURN as u64);
        Self { sending, head: None, at: 0, total: 0, tail: None, hold: None, left: turn, turn }
    }

    pub(super) fn send(&mut self, head: Option<u64>, total: u64) {
        (self.head, self.at, self.total) = (head, 0, total);
    }

    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.hold == Some(self.at)
    }

    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.head.is_some() || (!self.is_held() && (self.at < self.total || self.tail.is_some()))
    }

    #[inline]
    pub(super) fn next(&mut self, size: usize) -> Option<(Opcode, u64)> {
        let end = self.total.min(self.hold.unwrap_or(u64::MAX));
        let length = end.saturating_sub(self.at).min(size as u64);
        let number = if self.head.is_some() {
            self.head.take()
        } else if length > 0 && self.left > 0 {
            self.sending = Sending::Content { at: self.at, length };
            (self.at, self.left) = (self.at + length, self.left.saturating_sub(length));
            return Some((Opcode::Binary, length));
        } else if self.at == self.total && !self.is_held() {
            self.tail.take()
        } else {
            None
        };
        self.sending = number.map_or(Sending::Nothing, |number| Sending::Number(number.to_le_bytes()));
        number.map(|_| (Opcode::Binary, 8))
    }

    #[inline]
    pub(super) fn piece<'a>(&'a self, content: &'a Content, from: u64, most: usize) -> &'a [u8] {
        match &self.sending {
            Sending::Nothing => &[],
            Sending::Number(bytes) => &bytes[from as usize..][..most],
            Sending::Content { at, length } => content.at(at + from, most.min((length - from) as usize)),
        }
    }
}

/// Takes the bytes that belong to `number` and leaves the rest; the number, once it is complete.
pub(super) fn take_number(number: &mut Number, bytes: &mut &mut [u8], key: &mut Key) -> Option<u64> {
    let count = number.rest().len().min(bytes.len());
    let (own, rest) = std::mem::take(bytes).split_at_mut(count);
    mask::copy(&mut number.rest()[..count], own, *key);
    (*bytes, *key) = (rest, key.after(count));
    number.advance(count);
    number.is_complete().then(|| std::mem::take(number).value())
}

/// Compares the bytes that belong to `input` and leaves the rest; true once all of it has arrived.
#[inline]
pub(super) fn take_content(
    input: &mut Incoming,
    bytes: &mut &mut [u8],
    key: &mut Key,
    content: &Content,
) -> bool {
    while input.at < input.total && !bytes.is_empty() {
        let count = input.next_read(content.size()).min(bytes.len());
        let (own, rest) = std::mem::take(bytes).split_at_mut(count);
        let expected = content.at(input.at, count);
        let good = if same(own, *key, expected) {
            count as u64
        } else {
            mask::apply(own, *key);
            good(own, expected)
        };
        (*bytes, *key) = (rest, key.after(count));
        input.add(count, good);
    }
    input.at == input.total
}
