//! Transfers of content over persistent connections: a number of them on each, as many as there is time for,
//! or one that lasts as long as the time.
//!
//! An operation is a transfer, and the result counts writes. What has begun is finished and counts. A
//! transfer fails when no byte of it moves for the timeout.

use crate::client;
use crate::engine::{Context, Phase, Slot, Workload};
use crate::layer::{Flow, Layer};
use crate::refusal::Refusal;
use linerate_contract::{Direction, Done, Spec};

/// The state machine of this workload.
#[derive(Debug)]
pub struct Stream;

impl<L: Layer> Workload<L> for Stream {
    const PERSISTENT: bool = true;
    const FINISHES: bool = true;

    #[inline]
    fn step(slot: &mut Slot<L::Connection>, context: &mut Context<L>) {
        loop {
            match slot.phase {
                Phase::Idle => {
                    if !context.has_transfer(slot) || !context.begin(slot) {
                        return;
                    }
                }
                Phase::Connecting => match context.establish(slot) {
                    Ok(Flow::Done) => {
                        slot.began = context.now();
                        slot.phase = Phase::Receiving;
                    }
                    Ok(Flow::Blocked) => return,
                    Err(kind) => return context.fail_and_pause(slot, kind),
                },
                Phase::Sending => slot.phase = Phase::Receiving,
                // Both ways: what is to be sent follows what was received.
                Phase::Receiving => match context.receive(slot) {
                    Ok(Some(response)) => {
                        let now = context.now();
                        context.meter.succeed(slot.began, now, response.bytes, response.verified);
                        // It stays open until the window is over: closing handshakes take time.
                        slot.phase = Phase::Idle;
                    }
                    Ok(None) => return,
                    Err(kind) => context.fail(slot, kind),
                },
                Phase::Closing => unreachable!("a stream does not wait for the peer to close"),
            }
        }
    }
}

/// Runs `spec` over this layer.
///
/// # Errors
/// A spec that lacks something, or a kernel that refuses.
pub fn run<L: Layer>(spec: &Spec) -> Result<Done, Refusal> {
    let wrong = |text: &str| Err(Refusal::BadSpec(text.into()));
    let transfers = match (spec.bytes, spec.duration_ns) {
        (Some(0 | u64::MAX), _) => return wrong("\"bytes\" must be above 0 and below 2^64-1"),
        (None, None) => return wrong("a stream needs \"bytes\" or \"duration_ns\""),
        (None, Some(_)) => Some(1),
        (Some(_), None) => Some(spec.transfers()?),
        (Some(_), Some(_)) => None,
    };
    let operations = transfers.map(|each| each.saturating_mul(spec.connections.into()));
    let done = client::run::<L, Stream>(&Spec { operations, ..spec.clone() })?;
    let ways = if spec.direction().is_ok_and(|direction| direction == Direction::Both) { 2 } else { 1 };
    let writes = match spec.bytes {
        Some(bytes) => done.operations * bytes.div_ceil(spec.size) * ways,
        None => done.bytes.0.div_ceil(spec.size),
    };
    Ok(Done {
        operations: writes,
        verified: if spec.option("mode") == Some("truncate") { 0 } else { done.bytes.0 },
        latency: done.latency.filter(|_| spec.bytes.is_some()),
        connect: None,
        ..done
    })
}

/// Runs a stream over a layer whose connections have one transfer each, which ends by time or by bytes.
///
/// # Errors
/// As [`run`].
pub fn run_once<L: Layer>(spec: &Spec) -> Result<Done, Refusal> {
    let operations = Some(spec.connections.into());
    let done = client::run::<L, Stream>(&Spec { operations, ..spec.clone() })?;
    let (operations, verified) = (done.bytes.0.div_ceil(spec.size), done.bytes.0);
    Ok(Done { operations, verified, latency: None, connect: None, ..done })
}
