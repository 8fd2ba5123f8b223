//! One message to every connection, and one response from each: an operation ends with the slowest response.
//!
//! An operation spans all connections, so one thread has them all. If one connection fails, the operation has
//! failed, and all are opened again: late responses must not count for the next one.

use crate::client;
use crate::engine::{Context, Phase, Slot, Workload};
use crate::layer::{Flow, Layer};
use crate::refusal::Refusal;
use linerate_contract::{Done, Spec};

/// The state machine of this workload.
#[derive(Debug)]
pub struct Fanout;

impl<L: Layer> Workload<L> for Fanout {
    const PERSISTENT: bool = true;
    const SPANS: bool = true;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        let outcome = match slot.phase {
            // Answered, or the operation has failed.
            _ if !context.round.is_open() => return,
            Phase::Idle | Phase::Closing => return,
            Phase::Connecting | Phase::Sending => context.send(slot).map(|flow| {
                if flow == Flow::Done {
                    context.expect_response(slot);
                }
            }),
            Phase::Receiving => context.receive(slot).map(|response| {
                if let Some(response) = response {
                    slot.phase = Phase::Idle;
                    context.end_part(response.bytes);
                }
            }),
        };
        if let Err(kind) = outcome {
            context.fail_round(kind);
        }
    }
}

/// Runs `spec` on one thread.
///
/// # Errors
/// An invalid spec, or a refused system call.
pub fn run<L: Layer>(spec: &Spec) -> Result<Done, Refusal> {
    let done = client::run::<L, Fanout>(&Spec { threads: 1, ..spec.clone() })?;
    Ok(Done { connect: None, ..done })
}
