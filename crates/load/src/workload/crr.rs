//! Connect, request, response: a new connection for each operation, closed loop.
//!
//! An operation lasts from before `connect(2)` until the answer is complete; closing is not part of it, but the next
//! one begins only after it.

use super::Workload;
use crate::engine::{Context, Phase, Slot};
use crate::layer::{Flow, Layer};

/// See the module.
#[derive(Debug)]
pub struct Crr;

impl Workload for Crr {
    const PERSISTENT: bool = false;

    #[inline]
    fn step<L: Layer>(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if !context.begin(slot) {
                        return;
                    }
                    if let Err(kind) = context.open(slot) {
                        return context.fail_and_rest(slot, kind);
                    }
                }
                Phase::Connecting | Phase::Sending => {
                    // Before the send that succeeds: the connection stood by then.
                    let stood = context.now();
                    match context.send(slot) {
                        Ok(Flow::Done) => {
                            context.meter.connected(stood.since(slot.began));
                            // The answer cannot be there yet: asking for it would be a wasted system call.
                            return context.expect_answer(slot);
                        }
                        Ok(Flow::Blocked) => return,
                        Err(kind) => return context.fail_and_rest(slot, kind),
                    }
                }
                Phase::Receiving => match context.receive(slot) {
                    Ok(Some(answer)) => {
                        let now = context.now();
                        context.meter.succeed(slot.began, now, answer.bytes, answer.verified);
                        slot.close();
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
            }
        }
    }
}
