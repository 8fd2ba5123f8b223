//! Traffic patterns, one file each: `workload/<name>.rs`.
//!
//! A workload is the state machine of one connection: its first step, and the steps after an answer and after
//! a failure. It reports to the meter. The layer handles the bytes.

pub mod crr;
pub mod dispatch;
pub mod fanout;
pub mod paced;
pub mod rr;
pub mod timers;

use crate::engine::{Context, Slot};
use crate::layer::Layer;

/// One connection's state machine.
pub trait Workload: Send + 'static {
    /// Whether connections outlive an operation; some layers announce it to the peer.
    const PERSISTENT: bool;

    /// Whether operations begin by the schedule of the spec's rate and not after the previous one.
    const PACED: bool = false;

    /// Continues as far as possible without waiting. The engine calls it at the start, whenever the socket
    /// may have become ready, and after it failed an operation; a spurious call has no effect.
    fn step<L: Layer>(slot: &mut Slot<L::Connection>, context: &mut Context<L>);
}
