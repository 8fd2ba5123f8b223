//! The clocks of the contract: time on `CLOCK_MONOTONIC`, cost on the CPU clocks of threads and processes.
//!
//! Both are read through the vDSO or one cheap system call. The CPU clocks count the same user and system
//! time as `getrusage(2)`, but in nanoseconds.

use crate::Nanos;
use nix::time::{ClockId, clock_gettime};

/// Now on `CLOCK_MONOTONIC` (about 25 ns a read).
#[inline]
#[must_use]
pub fn now() -> Nanos {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The time of day on `CLOCK_REALTIME`: only for kernel timestamps on that clock, since it may be set.
#[must_use]
pub fn time_of_day() -> Nanos {
    read(ClockId::CLOCK_REALTIME)
}

/// User and system CPU time of the calling thread: that of an engine without the threads that set up and
/// report.
#[must_use]
pub fn thread_cpu() -> Nanos {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// User and system CPU time of all threads of the process.
#[must_use]
pub fn process_cpu() -> Nanos {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let t = clock_gettime(clock).expect("Linux has had these clocks since 2.6.12");
    Nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn clocks_advance() {
        let (wall, cpu) = (super::now(), super::thread_cpu());
        let mut x = 1_u64;
        while super::thread_cpu() <= cpu {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(super::now() > wall);
        assert!(super::process_cpu() >= super::thread_cpu());
    }
}
