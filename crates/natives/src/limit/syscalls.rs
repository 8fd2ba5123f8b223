//! `stream` without moving anything: one empty system call for each write and one for each read. No program
//! that makes a call for each can be faster, whatever the calls do.

use linerate_contract::{Bytes, Done, Nanos, Spec, clock};
use linerate_load::Refusal;

/// Writes between two readings of the clock.
const TURN: u64 = 1_024;

/// Runs `spec` to its end. `bytes` are those that would have passed.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn run(spec: &Spec) -> Result<Done, Refusal> {
    let repeats = super::repeats(spec);
    let transfers = if repeats { 1 } else { spec.transfers()? };
    let ways = super::ways(spec)? * u64::from(spec.connections) * transfers;
    let writes = spec.bytes.map(|bytes| bytes.div_ceil(spec.size.max(1)) * ways);
    if spec.size == 0 || (writes.is_none() && spec.duration_ns.is_none()) {
        let text = "needs \"size\" above 0, and \"bytes\" or \"duration_ns\"";
        return Err(Refusal::BadSpec(text.into()));
    }
    let cpu = clock::process_cpu();
    let start_ns = clock::now();
    let end = spec.duration_ns.map_or(Nanos(u64::MAX), |time| start_ns + time);
    let mut most = writes.unwrap_or(u64::MAX);
    let (mut done, mut rounds) = (0, 1);
    while done < most && (repeats || clock::now() < end) {
        let turn = TURN.min(most - done);
        for _ in 0..turn {
            // The shortest there is: no argument, no lock, one number back.
            nix::unistd::getppid();
            nix::unistd::getppid();
        }
        done += turn;
        if done == most && repeats && clock::now() < end {
            (most, rounds) = (most + writes.unwrap_or(0), rounds + 1);
        }
    }
    Ok(Done {
        operations: done,
        bytes: Bytes(spec.bytes.map_or(done * spec.size, |bytes| bytes * ways * rounds)),
        datagrams: super::datagrams(spec, done),
        start_ns,
        end_ns: clock::now(),
        cpu_ns: clock::process_cpu().since(cpu),
        ..Done::default()
    })
}
