//! Request, response over connections with lanes, closed loop: persistent ones with several operations under
//! way on each, or a new one for each operation.
//!
//! Each lane of a connection begins its next operation when its response is complete. What begins at the same
//! time is sent together. An operation that fails alone leaves the connection to the others; a connection
//! that the peer ends is replaced when its last operation is over.
//!
//! With a connection for each operation, one lasts from the first datagram of the handshake until its
//! response is complete; its layer lets no second one begin.

use crate::engine::{Context, Phase, Slot, Workload};
use crate::layer::{Flow, Lanes};
use linerate_contract::ErrorKind;

/// The state machine of this workload.
#[derive(Debug)]
pub struct Multiplexed<const PERSISTENT: bool>;

impl<L: Lanes, const PERSISTENT: bool> Workload<L> for Multiplexed<PERSISTENT> {
    const PERSISTENT: bool = PERSISTENT;
    const LANES: bool = true;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if !context.begin(slot) {
                        return;
                    }
                }
                Phase::Connecting => match context.establish(slot) {
                    Ok(Flow::Done) => {
                        let now = context.now();
                        context.connected(slot, now, PERSISTENT);
                        slot.phase = Phase::Sending;
                    }
                    Ok(Flow::Blocked) => return,
                    Err(kind) => return context.fail_and_pause(slot, kind),
                },
                Phase::Sending => match context.start_lanes(slot) {
                    Ok(()) => return,
                    Err(kind) if slot.phase == Phase::Sending => {
                        context.fail(slot, kind);
                        if !slot.is_again {
                            return context.pause(slot);
                        }
                    }
                    Err(kind) => {
                        context.fail_lanes(slot, kind);
                    }
                },
                Phase::Receiving => match context.exchange(slot) {
                    Ok(()) if !context.is_idle(slot) => return,
                    Ok(()) => {}
                    Err(kind) => {
                        context.fail_lanes(slot, kind);
                    }
                },
                Phase::Closing => unreachable!("this workload closes connections itself"),
            }
        }
    }

    fn expire(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        match slot.phase {
            Phase::Connecting if context.is_late(slot) => {
                context.fail_and_pause(slot, ErrorKind::ConnectTimeout);
            }
            Phase::Sending if context.is_late(slot) => context.fail_and_pause(slot, ErrorKind::Timeout),
            Phase::Receiving => {
                context.expire_lanes(slot);
                if context.is_idle(slot) {
                    <Self as Workload<L>>::step(slot, context);
                }
            }
            _ => {}
        }
    }
}
