//! `CLOCK_MONOTONIC`, as the contract wants it.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds.
pub fn now() -> u64 {
    let t = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has had this clock since 2.6");
    t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
}
