//! Request, response over persistent connections, closed loop.
//!
//! An operation lasts from before its request is sent until the response is complete. The first one on a
//! connection begins when the connection is established; if that fails, the operation has failed. A
//! connection that the peer closes with a response (`Connection: close`) or after it is opened again without
//! an error.
//!
//! Where the layer pipelines, several requests are sent together, and the next ones after all of their
//! responses. Each is an operation; all of them begin with the first.

use crate::engine::{Context, Phase, Sent, Slot, Workload};
use crate::layer::Layer;

/// The state machine of this workload.
#[derive(Debug)]
pub struct Rr;

impl<L: Layer> Workload<L> for Rr {
    const PERSISTENT: bool = true;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if !context.begin(slot) {
                        return;
                    }
                    context.begin_pipelined(slot);
                }
                Phase::Connecting => {
                    let established = context.now();
                    match context.ask(slot) {
                        Ok(Sent::Whole) => {
                            context.connected(slot, established, true);
                            return context.expect_response(slot);
                        }
                        Ok(Sent::Answered) => {
                            context.connected(slot, established, true);
                            context.expect_response(slot);
                        }
                        Ok(Sent::Blocked) => return,
                        Err(kind) => return context.fail_and_pause(slot, kind),
                    }
                }
                Phase::Sending => match context.ask(slot) {
                    Ok(Sent::Whole) => return context.expect_response(slot),
                    Ok(Sent::Answered) => context.expect_response(slot),
                    Ok(Sent::Blocked) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Closing => {
                    unreachable!("this workload closes a connection itself when it cannot be reused")
                }
                Phase::Receiving => match context.receive_any(slot) {
                    Ok(Some(response)) => {
                        // One clock reading ends this operation and begins the next: nothing happens in
                        // between.
                        let now = context.now();
                        if !context.end::<false>(slot, response, now) {
                            context.withdraw(slot);
                            slot.close();
                        } else if slot.more > 0 {
                            slot.more -= 1;
                        } else if slot.peer_closed {
                            context.closed_idle(slot);
                        } else if context.meter.begin_at(now, false) {
                            slot.began = now;
                            slot.phase = Phase::Sending;
                            context.begin_pipelined(slot);
                        } else {
                            // It stays open until the window is over: closing handshakes take time.
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
