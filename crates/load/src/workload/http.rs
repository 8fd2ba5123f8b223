//! Request, response over connections that stay open (keep-alive), closed loop.
//!
//! An operation lasts from before its request is sent until the answer is complete. The first one on a connection
//! begins when the connection stands; if it never does, that operation has failed. A connection that the peer
//! ends with an answer (`Connection: close`) is opened anew without an error.
//!
//! Where the layer pipelines, several requests leave together, and the next ones when all of them are answered. Each is an operation;
//! all of them begin when the first one does.

use super::Workload;
use crate::engine::{Context, Phase, Slot};
use crate::layer::{Flow, Layer};

/// See the module.
#[derive(Debug)]
pub struct KeepAlive;

impl Workload for KeepAlive {
    const PERSISTENT: bool = true;

    #[inline]
    fn step<L: Layer>(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if !context.begin(slot) {
                        return;
                    }
                    context.take_along(slot);
                }
                Phase::Connecting => {
                    let stood = context.now();
                    match context.send(slot) {
                        Ok(Flow::Done) => {
                            context.meter.connected(stood.since(slot.began));
                            slot.began = stood;
                            return context.expect_answer(slot);
                        }
                        Ok(Flow::Blocked) => return,
                        Err(kind) => return context.fail_and_rest(slot, kind),
                    }
                }
                Phase::Sending => match context.send(slot) {
                    Ok(Flow::Done) => return context.expect_answer(slot),
                    Ok(Flow::Blocked) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Parting => {
                    unreachable!("keep-alive closes a connection itself when it cannot be used again")
                }
                Phase::Receiving => match context.receive(slot) {
                    Ok(Some(answer)) => {
                        // One reading ends this operation and begins the next: nothing happens in between.
                        let now = context.now();
                        context.meter.succeed(slot.began, now, answer.bytes, answer.verified);
                        if !answer.reusable {
                            context.withdraw(slot);
                            slot.close();
                        } else if slot.more > 0 {
                            slot.more -= 1;
                        } else if context.meter.begin() {
                            slot.began = now;
                            slot.phase = Phase::Sending;
                            context.take_along(slot);
                        } else {
                            // It stays until the window is over: goodbyes take their time.
                            slot.phase = Phase::Idle;
                            return;
                        }
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
            }
        }
    }
}
