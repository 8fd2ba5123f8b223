//! Calls of gRPC over HTTP/2 (PROTOCOL-HTTP2.md of gRPC): messages each way, and a status at the end.

use crate::cause::note;
use crate::refusal::Refusal;
use linerate_contract::{Cause, ErrorKind, Spec};

/// OK.
const DONE: u32 = 0;
/// Statuses by their numbers.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
/// Statuses with a name, and one place for all others.
const STATUSES: usize = NAMES.len() + 1;

/// More would need a body that is made while it is sent.
const MOST_MESSAGES: u64 = 10_000;

/// Calls by status.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    by_status: [u64; STATUSES],
    /// The messages of those that succeeded.
    pub(super) messages: u64,
}

impl Calls {
    #[inline]
    pub(super) fn count(&mut self, status: Option<u32>) {
        if let Some(status) = status {
            self.by_status[(status as usize).min(STATUSES - 1)] += 1;
        }
    }

    /// The answer of a call is complete. One with another status than OK has failed, and one without a status
    /// is not over.
    ///
    /// # Errors
    /// The kind of failure.
    #[inline]
    pub(super) fn complete(&mut self, status: Option<u32>, messages: &Messages) -> Result<(), ErrorKind> {
        match status {
            Some(DONE) => self.messages += u64::from(messages.complete()?),
            Some(status) => {
                let name = NAMES.get(status as usize).unwrap_or(&"no status of gRPC");
                let text = format!("status {status} of gRPC ({name}) in place of 0");
                return Err(note(ErrorKind::WrongStatus, || Cause::new(text)));
            }
            None => {
                let text = "a response without grpc-status, so of no server of gRPC";
                return Err(note(ErrorKind::Malformed, || Cause::new(text)));
            }
        }
        Ok(())
    }

    pub(super) fn by_status(&self) -> impl Iterator<Item = (String, u64)> {
        self.by_status.iter().enumerate().map(|(status, count)| (format!("grpc-{status}"), *count))
    }
}

/// A byte that says whether a message is compressed, and its length in four bytes.
const PREFIX: usize = 5;

/// The messages of an answer, in pieces as they arrive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Messages {
    prefix: [u8; PREFIX],
    /// Bytes of the prefix of the message under way, and bytes that it still lacks.
    have: u8,
    left: u32,
    /// Messages that are complete.
    count: u32,
    is_compressed: bool,
}

impl Messages {
    /// Returns how many are complete with these bytes.
    #[inline]
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> u32 {
        let before = self.count;
        while !bytes.is_empty() {
            let have = usize::from(self.have);
            if have < PREFIX {
                let (part, rest) = bytes.split_at(bytes.len().min(PREFIX - have));
                self.prefix[have..have + part.len()].copy_from_slice(part);
                (self.have, bytes) = ((have + part.len()) as u8, rest);
                let [compressed, length @ ..] = self.prefix;
                self.is_compressed |= compressed != 0;
                self.left = u32::from_be_bytes(length);
            } else {
                let part = bytes.len().min(self.left as usize);
                (self.left, bytes) = (self.left - part as u32, &bytes[part..]);
            }
            if usize::from(self.have) == PREFIX && self.left == 0 {
                (self.have, self.count) = (0, self.count.saturating_add(1));
            }
        }
        self.count - before
    }

    /// How many there were.
    ///
    /// # Errors
    /// The last one has no end, or one is compressed, which no call allows.
    #[inline]
    pub(super) fn complete(&self) -> Result<u32, ErrorKind> {
        if self.have == 0 && !self.is_compressed {
            return Ok(self.count);
        }
        let text =
            if self.have > 0 { "a message of gRPC without its end" } else { "a compressed message of gRPC" };
        Err(note(ErrorKind::Malformed, || Cause::new(text)))
    }
}

/// Messages of each call in the direction from this end (`options.messages`).
///
/// # Errors
/// The option is out of range.
pub(super) fn messages(spec: &Spec) -> Result<usize, Refusal> {
    Ok(spec.number("messages", 1..=MOST_MESSAGES)?.unwrap_or(1) as usize)
}

/// Whether operations are calls (`options.grpc`).
///
/// # Errors
/// The option is another one.
pub(super) fn are_calls(spec: &Spec) -> Result<bool, Refusal> {
    match spec.options.get("grpc").map(String::as_str) {
        None => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => Err(Refusal::BadSpec(format!("\"options.grpc\" is \"yes\" or absent: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_in_pieces_of_any_length() {
        let answer = [&[0, 0, 0, 0, 3][..], b"one", &[0; 5], &[0, 0, 0, 1, 0], &[7; 256]].concat();
        for length in 1..answer.len() {
            let mut messages = Messages::default();
            let ended: u32 = answer.chunks(length).map(|piece| messages.take(piece)).sum();
            assert_eq!(ended, 3);
            assert_eq!(messages.complete(), Ok(3), "pieces of {length}");
        }
    }

    #[test]
    fn a_message_that_is_cut_or_compressed_is_malformed() {
        for answer in [&[0][..], &[0, 0, 0, 0, 2, 9], &[1, 0, 0, 0, 0]] {
            let mut messages = Messages::default();
            messages.take(answer);
            assert_eq!(messages.complete(), Err(ErrorKind::Malformed), "{answer:?}");
        }
        assert_eq!(Messages::default().complete(), Ok(0));
    }
}
