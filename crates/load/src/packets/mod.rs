//! Datagrams in and out of the kernel, one or many per call: common to UDP, KCP and QUIC.
//!
//! | mode | out | in |
//! |---|---|---|
//! | `single` | one `sendmsg(2)` each | one `recvmsg(2)` each |
//! | `batch` | `sendmmsg(2)` | `recvmmsg(2)` |
//! | `gso` | `UDP_SEGMENT`: up to 64 KiB per `sendmsg(2)` | `UDP_GRO`: joined by the kernel |
//!
//! `gso` crosses the network stack as one packet where the path allows it; that is its purpose.

#![allow(
    unsafe_code,
    reason = "sendmmsg(2), recvmmsg(2), UDP_SEGMENT and control messages over buffers that are prepared once"
)]

mod burst;
mod inbox;
mod own;
mod queue;
mod received;
mod send;
mod serve;
mod socket;

pub(crate) use burst::Burst;
pub use inbox::Inbox;
pub(crate) use own::OwnAddresses;
pub(crate) use queue::SendQueue;
pub(crate) use received::{Received, ReceiverSampler};
pub(crate) use send::{SegmentSize, send_many, send_one};
pub(crate) use serve::{DatagramServer, DatagramService};
pub(crate) use socket::{bind, connect, widen_buffers};

use crate::refusal::Refusal;
use linerate_contract::Spec;

/// How datagrams enter and leave the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Single,
    Batch,
    Gso,
}

impl Mode {
    /// `options.mode`, default `single`.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] for any other value.
    pub(crate) fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        match spec.options.get("mode").map(String::as_str) {
            None | Some("single") => Ok(Self::Single),
            Some("batch") => Ok(Self::Batch),
            Some("gso") => Ok(Self::Gso),
            Some(other) => Err(Refusal::Unsupported(format!(
                "\"options.mode\" {other:?}; supported: single, batch, gso"
            ))),
        }
    }

    /// The largest number of datagrams of `size` bytes that one call sends.
    pub(crate) fn max_datagrams(self, size: usize) -> usize {
        match self {
            Self::Single => 1,
            Self::Batch => (BATCH_BYTES / size).clamp(1, BATCH),
            Self::Gso => (linerate_contract::datagram::LARGEST / size).clamp(1, MAX_SEGMENTS),
        }
    }
}

/// Datagrams per `sendmmsg` or `recvmmsg`: 1/64 of the cost of a system call remains for each. Twice as many
/// save 1 % more and fill the cache.
pub(crate) const BATCH: usize = 64;
/// The buffers of a batch stay within a second-level cache.
const BATCH_BYTES: usize = 256 << 10;
/// The largest number of segments that every kernel with `UDP_SEGMENT` accepts (`UDP_MAX_SEGMENTS`; 128 since
/// 6.9).
pub(crate) const MAX_SEGMENTS: usize = 64;
