//! Traffic patterns, a file each: `workload/<name>.rs`.
//!
//! A workload is the state machine of one connection: what to do first, what after an answer, what after a
//! failure. It tells the meter what happened, and knows nothing of the bytes: that is the layer's.

pub mod crr;
pub mod dispatch;
pub mod fanout;
pub mod http;
pub mod paced;
pub mod timers;

use crate::engine::{Context, Slot};
use crate::layer::Layer;

/// One connection's state machine.
pub trait Workload: Send + 'static {
    /// Whether connections outlive an operation; a layer may have to say so to its peer.
    const PERSISTENT: bool;

    /// Whether operations begin by the schedule of the spec's rate and not when the last one has ended.
    const PACED: bool = false;

    /// Goes on as far as possible without waiting. Called at the start, whenever the socket may have become ready,
    /// and after the engine failed an operation; a call without reason must do no harm.
    fn step<L: Layer>(slot: &mut Slot<L::Connection>, context: &mut Context<L>);
}
