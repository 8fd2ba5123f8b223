//! Open loop: operations begin when they are due, whether or not earlier ones have ended.
//!
//! `KEEP`: over connections that stay open. All of them stand before the schedule begins, so an operation is a request on a
//! connection that waits for one. Otherwise each operation opens its own connection and closes it.
//!
//! What a slot does is decided here; which slot begins an operation, and when, by the engine's pacer.

use super::Workload;
use crate::engine::{Context, Phase, Slot};
use crate::layer::{Flow, Layer};

/// See the module.
#[derive(Debug)]
pub struct Paced<const KEEP: bool>;

impl<const KEEP: bool> Workload for Paced<KEEP> {
    const PERSISTENT: bool = KEEP;
    const PACED: bool = true;

    #[inline]
    fn step<L: Layer>(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle if KEEP || slot.assigned => {
                    if let Err(kind) = context.open_paced(slot) {
                        return context.lose(slot, kind);
                    }
                }
                Phase::Idle => return context.park(slot),
                Phase::Connecting => match context.establish(slot) {
                    Ok(Flow::Done) => {
                        slot.phase = Phase::Sending;
                        if !slot.assigned {
                            return context.park(slot);
                        }
                        let now = context.now();
                        context.meter.connected(now.since(slot.began));
                    }
                    Ok(Flow::Blocked) => return,
                    Err(kind) => return context.lose(slot, kind),
                },
                // It stands since before the window, or an edge has no meaning, or the peer has closed what nobody uses: the
                // next operation will tell.
                Phase::Sending if !slot.assigned => return context.park(slot),
                Phase::Sending => match context.send(slot) {
                    Ok(Flow::Done) => return context.expect_answer(slot),
                    Ok(Flow::Blocked) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Receiving => match context.receive(slot) {
                    Ok(Some(answer)) => {
                        let now = context.now();
                        context.meter.succeed_paced(slot.due, slot.began, now, answer.bytes, answer.verified);
                        slot.assigned = false;
                        if KEEP && answer.reusable {
                            slot.phase = Phase::Sending;
                            return context.park(slot);
                        }
                        slot.close();
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Parting => unreachable!("an open loop does not wait for the peer to close"),
            }
        }
    }
}
