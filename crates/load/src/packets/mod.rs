//! Datagrams in and out of the kernel, one or many for a call: what UDP and KCP have in common.
//!
//! | mode | out | in |
//! |---|---|---|
//! | `single` | `sendmsg(2)` for each | `recvmsg(2)` for each |
//! | `batch` | `sendmmsg(2)` | `recvmmsg(2)` |
//! | `gso` | one `sendmsg(2)` of up to 64 KiB that the kernel cuts (`UDP_SEGMENT`, udp(7)) | what the kernel joined (`UDP_GRO`) |
//!
//! The last crosses the network stack as one packet where the path allows it; that is its whole point.

#![allow(
    unsafe_code,
    reason = "sendmmsg(2), recvmmsg(2) and control messages over buffers that are prepared once"
)]

mod inbox;
mod outbox;
mod socket;

pub use inbox::Inbox;
pub use outbox::Burst;
pub use socket::{bind, connect, explain_buffer};

use crate::refusal::Refusal;
use linerate_contract::Spec;

/// How datagrams pass the border of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Single,
    Batch,
    Gso,
}

impl Mode {
    /// # Errors
    /// A mode that there is not: unsupported, says the contract.
    pub fn of(spec: &Spec) -> Result<Self, Refusal> {
        match spec.options.get("mode").map(String::as_str) {
            None | Some("single") => Ok(Self::Single),
            Some("batch") => Ok(Self::Batch),
            Some("gso") => Ok(Self::Gso),
            Some(other) => Err(Refusal::Unsupported(format!(
                "\"options.mode\" {other:?}; there are single, batch and gso"
            ))),
        }
    }

    /// How many datagrams of `size` bytes go out with one call at most.
    #[must_use]
    pub fn most(self, size: usize) -> usize {
        match self {
            Self::Single => 1,
            Self::Batch => (BATCH_BYTES / size).clamp(1, BATCH),
            Self::Gso => (linerate_contract::datagram::LARGEST / size).clamp(1, SEGMENTS),
        }
    }
}

/// Datagrams of one `sendmmsg` or `recvmmsg`. Of a system call's cost 1/64 is left; twice saves 1 % more and fills the cache.
const BATCH: usize = 64;
/// Buffers of a batch stay within a second-level cache.
const BATCH_BYTES: usize = 256 << 10;
/// What every kernel with `UDP_SEGMENT` takes (`UDP_MAX_SEGMENTS`; 128 since 6.9).
const SEGMENTS: usize = 64;
