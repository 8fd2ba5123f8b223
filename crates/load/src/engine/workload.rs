//! The interface between the engine and a traffic pattern.

use super::{Context, Slot};
use crate::layer::Layer;

/// One connection's state machine over a layer.
pub trait Workload<L: Layer>: Send + 'static {
    /// Whether connections outlive an operation; some layers announce it to the peer.
    const PERSISTENT: bool;

    /// Whether operations begin by the schedule of the spec's rate and not after the previous one.
    const PACED: bool = false;

    /// Whether an operation spans all connections of a thread; the engine then begins them.
    const SPANS: bool = false;

    /// Whether what has begun when the window ends is finished and counts, however long it takes: its timeout
    /// restarts with each byte that moves.
    const FINISHES: bool = false;

    /// Whether a connection has several operations under way, each with its own timeout: [`Self::expire`].
    const LANES: bool = false;

    /// Continues as far as possible without waiting. The engine calls it at the start, whenever the socket
    /// may have become ready, and after it failed an operation; a spurious call has no effect.
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>);

    /// Fails the operations of a connection that have taken too long, where it has lanes.
    fn expire(_slot: &mut Slot<L::Connection>, _context: &mut Context<L>) {}
}
