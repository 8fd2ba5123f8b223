//! Calls of gRPC over HTTP/2 (PROTOCOL-HTTP2.md of gRPC): messages each way, and a status at the end.

use crate::cause::note;
use crate::refusal::Refusal;
use linerate_contract::{Cause, ErrorKind, Spec};

/// OK.
const DONE: u32 = 0;
const DEADLINE_EXCEEDED: u32 = 4;
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
    /// Each call has one message of the server.
    is_unary: bool,
}

impl Calls {
    /// The calls of a client (`options.grpc`); `None`: operations are requests.
    ///
    /// # Errors
    /// The option is another one.
    pub(super) fn of_client(spec: &Spec) -> Result<Option<Self>, Refusal> {
        let is_unary = spec.options.get("grpc").is_some_and(|kind| kind == UNARY);
        Ok(are_calls(spec)?.then(|| Self { is_unary, ..Self::default() }))
    }

    #[inline]
    pub(super) fn count(&mut self, status: Option<u32>) {
        if let Some(status) = status {
            self.by_status[(status as usize).min(STATUSES - 1)] += 1;
        }
    }

    /// The response of a call is complete. One with another status than OK has failed, one without a status
    /// is not over, and one without a message has answered nothing.
    ///
    /// # Errors
    /// The kind of failure.
    #[inline]
    pub(super) fn complete(&mut self, status: Option<u32>, messages: &Messages) -> Result<(), ErrorKind> {
        match status {
            Some(DONE) => match messages.complete()? {
                0 => return Err(malformed("a successful call without a message")),
                2.. if self.is_unary => return Err(malformed("several messages for a unary call")),
                count => self.messages += u64::from(count),
            },
            Some(DEADLINE_EXCEEDED) => {
                let text = "status 4 of gRPC (DEADLINE_EXCEEDED): the server ended the call at its deadline";
                return Err(note(ErrorKind::Timeout, || Cause::new(text)));
            }
            Some(status) => {
                let name = NAMES.get(status as usize).unwrap_or(&"no status of gRPC");
                let text = format!("status {status} of gRPC ({name}) in place of 0");
                return Err(note(ErrorKind::WrongStatus, || Cause::new(text)));
            }
            None => return Err(malformed("a response without grpc-status, so of no server of gRPC")),
        }
        Ok(())
    }

    pub(super) fn by_status(&self) -> impl Iterator<Item = (String, u64)> {
        self.by_status.iter().enumerate().map(|(status, count)| (format!("grpc-{status}"), *count))
    }
}

#[cold]
fn malformed(text: &'static str) -> ErrorKind {
    note(ErrorKind::Malformed, || Cause::new(text))
}

/// A byte that says whether a message is compressed, and its length in four bytes.
const PREFIX: usize = 5;

/// The messages of a response, in pieces as they arrive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Messages {
    prefix: [u8; PREFIX],
    /// Bytes of the prefix of the message under way, and bytes that it still lacks.
    have: u8,
    left: u32,
    /// Messages that are complete.
    count: u32,
    is_compressed: bool,
    /// The content says that it consists of messages.
    is_typed: bool,
    /// A second status has arrived.
    has_two_statuses: bool,
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

    /// The content type is that of messages.
    #[inline]
    pub(super) fn are_typed(&mut self) {
        self.is_typed = true;
    }

    /// A call has one status.
    #[cold]
    pub(super) fn have_two_statuses(&mut self) {
        self.has_two_statuses = true;
    }

    /// How many there were.
    ///
    /// # Errors
    /// The last one has no end, one is compressed, which no call allows, the content is no messages, or their
    /// call has two statuses.
    #[inline]
    pub(super) fn complete(&self) -> Result<u32, ErrorKind> {
        Err(malformed(match self {
            _ if self.have > 0 => "a message of gRPC without its end",
            _ if self.is_compressed => "a compressed message of gRPC",
            _ if self.has_two_statuses => "two statuses of gRPC for one call",
            _ if !self.is_typed => "a response whose content-type is not application/grpc",
            _ => return Ok(self.count),
        }))
    }
}

/// Messages of each call in the direction from this end (`options.messages`).
///
/// # Errors
/// The option is out of range.
pub(super) fn messages(spec: &Spec) -> Result<usize, Refusal> {
    Ok(spec.number("messages", 1..=MOST_MESSAGES)?.unwrap_or(1) as usize)
}

/// The value of `options.grpc` for calls with one message of the server.
const UNARY: &str = "unary";

/// Whether operations are calls (`options.grpc`).
///
/// # Errors
/// The option is another one.
pub(super) fn are_calls(spec: &Spec) -> Result<bool, Refusal> {
    match spec.options.get("grpc").map(String::as_str) {
        None => Ok(false),
        Some("yes" | UNARY) => Ok(true),
        Some(other) => {
            Err(Refusal::BadSpec(format!("\"options.grpc\" is \"yes\", \"unary\" or absent: {other:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Workload};

    #[test]
    fn messages_are_counted_in_pieces_of_any_length() {
        let response = [&[0, 0, 0, 0, 3][..], b"one", &[0; 5], &[0, 0, 0, 1, 0], &[7; 256]].concat();
        for length in 1..response.len() {
            let mut messages = Messages { is_typed: true, ..Messages::default() };
            let ended: u32 = response.chunks(length).map(|piece| messages.take(piece)).sum();
            assert_eq!(ended, 3);
            assert_eq!(messages.complete(), Ok(3), "pieces of {length}");
        }
    }

    #[test]
    fn a_message_that_is_cut_or_compressed_is_malformed() {
        let typed = Messages { is_typed: true, ..Messages::default() };
        for response in [&[0][..], &[0, 0, 0, 0, 2, 9], &[1, 0, 0, 0, 0]] {
            let mut messages = typed;
            messages.take(response);
            assert_eq!(messages.complete(), Err(ErrorKind::Malformed), "{response:?}");
        }
        assert_eq!((typed.complete(), Messages::default().complete()), (Ok(0), Err(ErrorKind::Malformed)));
    }

    #[test]
    fn a_call_that_succeeds_has_a_message_and_a_unary_one_has_one() {
        let of = |grpc: &str, count: usize| {
            let mut spec = Spec::new(linerate_contract::Role::Client, Layer::H2c, Workload::Rr);
            spec.set_option("grpc", grpc);
            let mut calls = Calls::of_client(&spec).unwrap().unwrap();
            let mut messages = Messages { is_typed: true, ..Messages::default() };
            messages.take(&[0; PREFIX].repeat(count));
            calls.complete(Some(DONE), &messages)
        };
        assert_eq!([of("yes", 1), of("yes", 2), of("unary", 1)], [Ok(()); 3]);
        assert_eq!([of("yes", 0), of("unary", 0), of("unary", 2)], [Err(ErrorKind::Malformed); 3]);
    }
}
