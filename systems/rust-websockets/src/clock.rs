//! `CLOCK_MONOTONIC` and the CPU time of the process, as the contract wants them.

use linerate_contract::Nanos;
use nix::time::{ClockId, clock_gettime};

pub fn now() -> Nanos {
    read(ClockId::CLOCK_MONOTONIC)
}

/// User and system time of all threads.
pub fn cpu() -> Nanos {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: ClockId) -> Nanos {
    let t = clock_gettime(clock).expect("Linux has had both clocks since 2.6.12");
    Nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}
