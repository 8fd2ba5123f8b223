//! Failed operations by kind. Kinds are words of the report, so the set is closed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why one operation failed, as seen by its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// `ECONNREFUSED`: no listener.
    ConnectRefused,
    /// `ETIMEDOUT`, or no handshake within the operation's deadline.
    ConnectTimeout,
    /// Any other failure before the connection was established.
    ConnectFailed,
    /// The TLS handshake failed, or a record could not be read.
    TlsFailed,
    /// `ECONNRESET` or `EPIPE` on an established connection.
    Reset,
    /// The peer closed before the first byte of the response.
    #[serde(rename = "empty_reply")]
    EmptyResponse,
    /// The peer closed in the middle of the response.
    Truncated,
    /// Bytes that are not the protocol.
    Malformed,
    /// A well-formed response with another status than expected.
    WrongStatus,
    /// The right status, another length.
    WrongLength,
    /// The right length, other bytes.
    WrongContent,
    /// No complete response within the operation's deadline.
    Timeout,
    /// `EADDRNOTAVAIL`: the generator ran out of ports; never the system's fault.
    AddressExhausted,
    /// `EMFILE` or `ENFILE`: the generator ran out of descriptors; never the system's fault.
    DescriptorExhausted,
    /// Reported as failed without a kind by another load generator.
    Failed,
}

/// Why a TLS handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsFailure {
    /// The certificate is signed by an authority that the client does not trust.
    UnknownAuthority,
    /// The certificate is for another name.
    OtherName,
    /// The certificate has expired, or is not valid yet.
    Expired,
    /// The server asked for a certificate of the client, or refused the one that it got.
    ClientCertificate,
    /// The peer does not speak TLS.
    NotTls,
    /// The peer closed the connection in the middle of the handshake.
    Closed,
    /// Anything else.
    Other,
}

/// Why an operation has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// In words, without the end of a sentence.
    pub text: String,
    /// The first bytes of the peer that show it, escaped as in Rust.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// The kind of a failure of TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFailure>,
}

impl Cause {
    /// More bytes are cut.
    pub const MOST_BYTES: usize = 120;

    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// With the first of these bytes.
    #[must_use]
    pub fn showing(text: impl Into<String>, bytes: &[u8]) -> Self {
        let shown = &bytes[..bytes.len().min(Self::MOST_BYTES)];
        Self { text: text.into(), bytes: shown.escape_ascii().to_string(), tls: None }
    }

    #[must_use]
    pub fn of_tls(failure: TlsFailure, text: impl Into<String>) -> Self {
        Self { tls: Some(failure), ..Self::new(text) }
    }
}

/// The first cause of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Causes(pub BTreeMap<ErrorKind, Cause>);

impl Causes {
    /// Keeps the cause if it is the first of its kind.
    pub fn note(&mut self, kind: ErrorKind, cause: impl FnOnce() -> Cause) {
        self.0.entry(kind).or_insert_with(cause);
    }

    /// Adds those of another task.
    pub fn merge(&mut self, other: &Self) {
        for (kind, cause) in &other.0 {
            self.note(*kind, || cause.clone());
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The causes of kinds that were counted.
    #[must_use]
    pub fn counted_in(&self, errors: &Errors) -> Self {
        let counted = self.0.iter().filter(|(kind, _)| errors.0.contains_key(kind));
        Self(counted.map(|(kind, cause)| (*kind, cause.clone())).collect())
    }
}

/// Faults of the peers of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerFailures {
    pub errors: Errors,
    pub causes: Causes,
}

/// Counts by kind. Kinds with a count of 0 are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errors(pub BTreeMap<ErrorKind, u64>);

impl Errors {
    pub fn add(&mut self, kind: ErrorKind, count: u64) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            self.add(*kind, *count);
        }
    }

    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl ErrorKind {
    /// The kind's name in JSON and in reports, such as `empty_reply`.
    #[must_use]
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            other => unreachable!("a unit variant serialises to a string, not {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_of_each_counted_kind_is_kept() {
        let mut causes = Causes::default();
        causes.note(ErrorKind::Malformed, || Cause::showing("not HTTP", b"SSH-2.0\r\n\xff"));
        causes.note(ErrorKind::Malformed, || Cause::new("another"));
        causes.note(ErrorKind::Reset, || Cause::new("reset"));
        let mut errors = Errors::default();
        errors.add(ErrorKind::Malformed, 2);
        let json = serde_json::to_value(causes.counted_in(&errors)).unwrap();
        let bytes = r"SSH-2.0\r\n\xff";
        assert_eq!(json, serde_json::json!({"malformed": {"text": "not HTTP", "bytes": bytes}}));
        assert_eq!(Cause::showing("long", &[b'x'; 1000]).bytes.len(), Cause::MOST_BYTES);
    }
}
