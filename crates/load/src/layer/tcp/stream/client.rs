//! The client of `stream` over TCP: every thread drives its share of the connections until each has carried
//! its transfers.
//!
//! Transfers do not wait for one another, so this is not the engine's loop. The receiver's counts are
//! reported: the server's number for written bytes, the client's own for read bytes.

use super::sampler::TcpInfoSampler;
use super::worker::{ThreadTotals, Worker};
use super::{Payload, UNTIL_TIME_IS_OVER};
use crate::clock;
use crate::process::{Stop, together};
use crate::refusal::Refusal;
use crate::socket::{Dialer, connect_all, connect_error};
use crate::waiter::Waiter;
use linerate_contract::{Bytes, Direction, Done, Errors, Nanos, Recorder, Spec, TcpEnds};
use nix::sys::socket::{setsockopt, sockopt};
use std::os::fd::OwnedFd;

/// Runs `spec` to its end.
///
/// # Errors
/// An invalid spec, or a failing system call.
pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let direction = spec.direction()?;
    let payload = Payload::new(spec)?;
    let until = StreamStopCondition::of(spec, direction)?;
    if spec.connections == 0 || spec.threads == 0 || until.bytes == 0 || spec.timeout_ns == Nanos::ZERO {
        let text = "\"connections\", \"threads\", \"bytes\" and \"timeout_ns\" must be above 0";
        return Err(Refusal::BadSpec(text.into()));
    }
    let stop = Stop::on_signal()?;
    let (sockets, mut errors) = open(spec)?;
    let threads = (spec.threads as usize).min(sockets.len()).max(1);
    let sampler = spec.sample_ns.map(|every| TcpInfoSampler::start(every, &sockets)).transpose()?;
    let mut workers: Vec<Worker> = (0..threads)
        .map(|_| Worker::new(direction, &payload, until, spec.timeout_ns, stop.clone(), Waiter::of(spec)?))
        .collect::<Result<_, _>>()?;
    for (index, socket) in sockets.into_iter().enumerate() {
        workers[index % threads].add(socket)?;
    }
    let start = clock::now();
    let totals = together(workers.iter_mut().map(|worker| move || worker.run(start)).collect())?;
    drop(sampler);
    let stall = Nanos(u64::MAX);
    let mut sum = ThreadTotals { end: start, stall, ..ThreadTotals::default() };
    totals.iter().for_each(|each| sum.merge(each));
    errors.merge(&sum.errors);
    // Where a connection has failed, the others may end before the time is over.
    let window_end = until.time.filter(|_| errors.total() > 0).map_or(Nanos::ZERO, |time| start + time);
    Ok(Done {
        operations: sum.writes,
        bytes: Bytes(sum.good),
        start_ns: start,
        end_ns: sum.end.max(window_end),
        stall_ns: Some(sum.stall),
        errors,
        latency: sum.latency.as_ref().map(Recorder::counts),
        cpu_ns: sum.cpu,
        verified: if payload.mode.compares() { sum.good } else { 0 },
        tcp: sum.tcp.map(|client| TcpEnds { client: Some(client), server: None }),
        ..Done::default()
    })
}

/// When a connection is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamStopCondition {
    /// N of each transfer.
    pub(super) bytes: u64,
    pub(super) transfers: u64,
    /// Without `bytes`: the time after which the only transfer ends. With `bytes`: no transfer begins after
    /// it.
    pub(super) time: Option<Nanos>,
}

impl StreamStopCondition {
    fn of(spec: &Spec, direction: Direction) -> Result<Self, Refusal> {
        match (spec.bytes, spec.duration_ns) {
            (Some(UNTIL_TIME_IS_OVER), _) => Err(Refusal::BadSpec("\"bytes\" must be below 2^64-1".into())),
            (Some(bytes), None) => Ok(Self { bytes, transfers: spec.transfers()?, time: None }),
            (Some(bytes), time) => Ok(Self { bytes, transfers: u64::MAX, time }),
            (None, Some(_)) if direction == Direction::Both => {
                Err(Refusal::Unsupported("a stream both ways that ends by time".into()))
            }
            (None, Some(time)) => Ok(Self { bytes: UNTIL_TIME_IS_OVER, transfers: 1, time: Some(time) }),
            (None, None) => Err(Refusal::BadSpec("a stream needs \"bytes\" or \"duration_ns\"".into())),
        }
    }

    pub(super) fn is_by_time(&self) -> bool {
        self.bytes == UNTIL_TIME_IS_OVER
    }
}

/// Establishes all connections before the first byte of any; those that fail count as errors.
fn open(spec: &Spec) -> Result<(Vec<OwnedFd>, Errors), Refusal> {
    let mut dialer = Dialer::new(spec)?;
    let (mut sockets, mut errors) = (Vec::new(), Errors::default());
    for _ in 0..spec.connections {
        match dialer.open() {
            Ok(socket) => sockets.push(socket),
            Err(kind) => errors.add(kind, 1),
        }
    }
    let mut outcomes = connect_all(&sockets, spec.timeout_ns).into_iter();
    sockets.retain(|socket| {
        let outcome = outcomes.next().expect("one for each socket");
        let outcome =
            outcome.and_then(|()| setsockopt(socket, sockopt::TcpNoDelay, &true).map_err(connect_error));
        if let Err(kind) = outcome {
            errors.add(kind, 1);
        }
        outcome.is_ok()
    });
    Ok((sockets, errors))
}
