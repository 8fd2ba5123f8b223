//! Unary calls of gRPC over HTTP/2 (PROTOCOL-HTTP2.md of gRPC): a message each way, and a status at the end.

use crate::refusal::Refusal;
use linerate_contract::{ErrorKind, Spec};

/// OK.
const DONE: u32 = 0;
/// Statuses with a name, and one place for all others.
const STATUSES: usize = 18;

/// Calls by status.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls([u64; STATUSES]);

impl Calls {
    #[inline]
    pub(super) fn count(&mut self, status: Option<u32>) {
        if let Some(status) = status {
            self.0[(status as usize).min(STATUSES - 1)] += 1;
        }
    }

    pub(super) fn by_status(&self) -> impl Iterator<Item = (String, u64)> {
        self.0.iter().enumerate().map(|(status, count)| (format!("grpc-{status}"), *count))
    }
}

/// A call with another status has failed, and one without a status is not over.
///
/// # Errors
/// The kind of failure.
#[inline]
pub(super) fn check(status: Option<u32>) -> Result<(), ErrorKind> {
    match status {
        Some(DONE) => Ok(()),
        Some(_) => Err(ErrorKind::WrongStatus),
        None => Err(ErrorKind::Malformed),
    }
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
