//! Open loop over connections with several operations under way: operations begin when they are due, in the
//! lanes of connections that are used in turn.
//!
//! As in [`super::paced`], all connections are established before the schedule begins. A connection is free
//! as long as the peer lets another operation begin on it. What is due by the same time on one connection is
//! sent together, as in a closed loop. What the peer has not looked at when it ends a connection is sent
//! again on another one, and is as late as that makes it.

use crate::engine::{Context, Phase, Slot, Workload};
use crate::layer::{Flow, Lanes};
use linerate_contract::ErrorKind;

/// The state machine of this workload.
#[derive(Debug)]
pub struct PacedLanes;

impl<L: Lanes> Workload<L> for PacedLanes {
    const PERSISTENT: bool = true;
    const PACED: bool = true;
    const LANES: bool = true;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if let Err(kind) = context.open_paced(slot) {
                        return context.fail_connect(slot, kind);
                    }
                }
                Phase::Connecting => match context.establish(slot) {
                    Ok(Flow::Done) => {
                        slot.phase = Phase::Receiving;
                        if !slot.assigned {
                            return context.offer(slot);
                        }
                        let now = context.now();
                        context.connected(slot, now, false);
                    }
                    Ok(Flow::Blocked) => return,
                    Err(kind) => return context.fail_connect(slot, kind),
                },
                Phase::Receiving => {
                    let outcome = if slot.assigned {
                        context.start_lane(slot);
                        Ok(())
                    } else if slot.unsent {
                        context.send_unsent(slot)
                    } else {
                        context.exchange(slot)
                    };
                    match outcome {
                        Ok(()) if !context.is_spent(slot) => return context.offer(slot),
                        Ok(()) => slot.close(),
                        // A peer that ends idle connections would be connected to without a pause.
                        Err(kind) if context.fail_lanes(slot, kind) == 0 => return context.pause(slot),
                        Err(_) => {}
                    }
                }
                Phase::Sending | Phase::Closing => unreachable!("the lanes send, and close nothing"),
            }
        }
    }

    fn expire(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        match slot.phase {
            Phase::Connecting if context.is_late(slot) => {
                context.fail_connect(slot, ErrorKind::ConnectTimeout);
            }
            Phase::Receiving => {
                context.expire_lanes(slot);
                if context.is_spent(slot) {
                    slot.close();
                    Self::step(slot, context);
                }
            }
            _ => {}
        }
    }
}
