//! Connect, request, response: a new connection for each operation, closed loop.
//!
//! An operation lasts from before `connect(2)` until the answer is complete; closing is not part of it, but the next
//! one begins only after it. A peer that announces that it will close does so first (RFC 9112, section 9.6), as it does
//! with other clients: who closes first decides who keeps the port in TIME_WAIT, and what a relay has to do.

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
                        if slot.peer_closed {
                            context.leave(slot);
                        } else if answer.reusable {
                            slot.close();
                        } else {
                            // Whatever comes next is an edge, so nothing is asked for before.
                            slot.phase = Phase::Parting;
                            return;
                        }
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Parting if slot.peer_closed => context.leave(slot),
                Phase::Parting => return,
            }
        }
    }
}
