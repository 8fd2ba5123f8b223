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
    /// The peer closed before the first byte of the answer.
    EmptyReply,
    /// The peer closed in the middle of the answer.
    Truncated,
    /// Bytes that are not the protocol.
    Malformed,
    /// A well-formed answer with another status than expected.
    WrongStatus,
    /// The right status, another length.
    WrongLength,
    /// The right length, other bytes.
    WrongContent,
    /// No complete answer within the operation's deadline.
    Timeout,
    /// `EADDRNOTAVAIL`: the generator ran out of ports; never the system's fault.
    AddressExhausted,
    /// `EMFILE` or `ENFILE`: the generator ran out of descriptors; never the system's fault.
    DescriptorExhausted,
    /// Reported as failed without a kind by another load generator.
    Failed,
}

/// Why a TLS handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Anything else, in the words of the TLS library.
    Other(String),
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
