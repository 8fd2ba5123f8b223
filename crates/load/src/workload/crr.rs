//! Connect, request, response: a new connection for each operation, closed loop.
//!
//! An operation lasts from before `connect(2)` until the response is complete. Closing is not part of it, but
//! the next one begins only afterwards. A peer that announces its close closes first (RFC 9112, section 9.6),
//! as with other clients: the end that closes first keeps the port in TIME_WAIT, and the order determines the
//! work of a relay.

use crate::engine::{Context, Phase, Sent, Slot, Workload};
use crate::layer::Layer;

/// The state machine of this workload.
#[derive(Debug)]
pub struct Crr;

impl<L: Layer> Workload<L> for Crr {
    const PERSISTENT: bool = false;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if !context.begin(slot) {
                        return;
                    }
                }
                Phase::Connecting | Phase::Sending => {
                    // Read before the send that succeeds: the connection is established by then.
                    let established = context.now();
                    match context.ask(slot) {
                        Ok(Sent::Whole) => {
                            context.meter.connected(established.since(slot.began));
                            // The response cannot have arrived: a recv(2) now would be wasted.
                            return context.expect_response(slot);
                        }
                        Ok(Sent::Answered) => {
                            context.meter.connected(established.since(slot.began));
                            context.expect_response(slot);
                        }
                        Ok(Sent::Blocked) => return,
                        Err(kind) => return context.fail_and_pause(slot, kind),
                    }
                }
                Phase::Receiving => match context.receive_any(slot) {
                    Ok(Some(response)) => {
                        let now = context.now();
                        let reusable = context.end::<false>(slot, response, now);
                        if slot.peer_closed {
                            context.leave(slot);
                        } else if reusable {
                            slot.close();
                        } else {
                            // The next edge reports the close.
                            slot.phase = Phase::Closing;
                            return;
                        }
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Closing if slot.peer_closed => context.leave(slot),
                Phase::Closing => return,
            }
        }
    }
}
