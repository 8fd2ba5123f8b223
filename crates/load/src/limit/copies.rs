//! `stream` without sockets: what is left is the copy from the writer to the kernel, the copy from the kernel to the reader,
//! and the reader's comparison.
//!
//! The buffer in between is as large as a write: a kernel that needs more is slower, not faster.

use crate::clock;
use crate::process::{Signals, emit};
use crate::refusal::Refusal;
use crate::socket;
use linerate_contract::{Bytes, Done, ErrorKind, Event, Spec, page};
use std::hint::black_box;

/// The contract's: content repeats with this period.
const PERIOD: usize = 65_536;
/// As the engine's own stream.
const LARGEST_WRITE: u64 = 16 << 20;

/// There is nothing to serve, but a trial has a server: this one is there, and that is all.
pub(super) fn serve(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let signals = Signals::claim()?;
    let (_listener, address) = socket::listener(address, false)?;
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something.
pub(super) fn run(spec: &Spec) -> Result<Done, Refusal> {
    let ways = match spec.options.get("direction").map(String::as_str) {
        Some("both") => 2,
        Some("client-writes" | "client-reads") => 1,
        _ => {
            return Err(Refusal::BadSpec(
                "\"options.direction\" must be client-writes, client-reads or both".into(),
            ));
        }
    };
    let bytes = spec.bytes.filter(|n| *n > 0 && (1..=LARGEST_WRITE).contains(&spec.size));
    let Some(bytes) = bytes else {
        return Err(Refusal::BadSpec(format!(
            "needs \"bytes\" above 0 and \"size\" of 1 to {LARGEST_WRITE}"
        )));
    };
    let all = bytes * u64::from(spec.connections) * ways;
    let size = spec.size as usize;
    let content: Vec<u8> = page(PERIOD).into_iter().cycle().take(PERIOD + size).collect();
    let (mut kernel, mut reader) = (vec![0; size], vec![0; size]);
    let (mut at, mut good) = (0_u64, 0_u64);
    let cpu = clock::process_cpu();
    let start_ns = clock::now();
    while at < all {
        let length = (all - at).min(spec.size) as usize;
        let start = (at % PERIOD as u64) as usize;
        let piece = &content[start..start + length];
        // black_box: the compiler must not see through the copy in the middle.
        black_box(&mut kernel)[..length].copy_from_slice(piece);
        black_box(&mut reader)[..length].copy_from_slice(&black_box(&kernel)[..length]);
        if black_box(&reader)[..length] == *piece {
            good += length as u64;
        }
        at += length as u64;
    }
    let end_ns = clock::now();
    let mut done = Done {
        operations: good.div_ceil(spec.size),
        bytes: Bytes(good),
        start_ns,
        end_ns,
        cpu_ns: clock::process_cpu().since(cpu),
        verified: good,
        ..Done::default()
    };
    done.errors.add(ErrorKind::WrongContent, (all - good).div_ceil(spec.size));
    Ok(done)
}
