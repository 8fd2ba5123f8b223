//! Open loop: operations begin when they are due, whether or not earlier ones have ended.
//!
//! `KEEP`: over persistent connections. All of them are established before the schedule begins, so an
//! operation is a request on an idle connection. Otherwise each operation opens its own connection and closes
//! it.
//!
//! The steps of a slot are here; the engine's pacer decides which slot begins an operation, and when.

use crate::engine::{Context, Phase, Sent, Slot, Workload};
use crate::layer::{Flow, Layer};

/// The state machine of this workload.
#[derive(Debug)]
pub struct Paced<const KEEP: bool>;

impl<L: Layer, const KEEP: bool> Workload<L> for Paced<KEEP> {
    const PERSISTENT: bool = KEEP;
    const PACED: bool = true;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle if KEEP || slot.assigned => {
                    if let Err(kind) = context.open_paced(slot) {
                        return context.fail_connect(slot, kind);
                    }
                }
                Phase::Idle => return context.park(slot),
                Phase::Connecting => match context.establish(slot) {
                    Ok(Flow::Done) => {
                        slot.phase = Phase::Sending;
                        if !slot.assigned {
                            context.watch(slot);
                            return context.park(slot);
                        }
                        let now = context.now();
                        context.connected(slot, now, false);
                    }
                    Ok(Flow::Blocked) => return,
                    Err(kind) => return context.fail_connect(slot, kind),
                },
                // The peer has closed an idle connection: the next operation opens another, as with other
                // clients.
                Phase::Sending if !slot.assigned && slot.peer_closed => {
                    context.closed_idle(slot);
                    return context.park(slot);
                }
                // The edge is spurious.
                Phase::Sending if !slot.assigned => return context.park(slot),
                Phase::Sending => match context.ask(slot) {
                    Ok(Sent::Whole) => return context.expect_response(slot),
                    Ok(Sent::Answered) => context.expect_response(slot),
                    Ok(Sent::Blocked) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Receiving => match context.receive_any(slot) {
                    Ok(Some(response)) => {
                        let now = context.now();
                        let reusable = context.end::<true>(slot, response, now);
                        slot.assigned = false;
                        if KEEP && reusable {
                            slot.phase = Phase::Sending;
                            if slot.peer_closed {
                                context.closed_idle(slot);
                            }
                            return context.park(slot);
                        }
                        slot.close();
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Closing => unreachable!("an open loop does not wait for the peer to close"),
            }
        }
    }
}
