//! The brake: a process that takes a known share of a role's CPU time, for a probe.
//!
//! A brake reads the role's clock every millisecond. For the CPU time that the role has used since, it stops
//! the role and uses the role's CPU itself, until its own CPU time is the share. Its work in between, such as
//! reading clocks, is part of its time. So a brake acts as slower code would: a role that waits has no time
//! taken from it, and two roles on one CPU compete with it as with a slower role.

#![allow(unsafe_code, reason = "fork(2) has no safe wrapper")]

use super::cpu::{Counter, ProcessClock};
use super::process::Process;
use super::slice;
use crate::protocol::Brake;
use linerate_contract::Nanos;
use nix::libc;
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_timerslack;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{ForkResult, Pid, fork, setpgid};

/// Between two looks at the clock of a busy role. Each stop is then longer than an operation, and shorter
/// than the work that a queue of some connections has.
const PERIOD: Nanos = Nanos(1_000_000);
/// The longest period, while the role is mostly idle, so that the looks themselves take no time from it.
const LONGEST_PERIOD: Nanos = Nanos(8_000_000);
/// The shortest stop: signals and wake-ups take a third of it.
const LEAST: Nanos = Nanos(100_000);
/// Runs soon after its sleep; the kernel's slice is 3 ms.
const SLICE: Nanos = Nanos(100_000);

/// A brake at work; ends with this value.
pub(super) struct RunningBrake {
    pid: Pid,
    role: Pid,
}

impl RunningBrake {
    /// Starts it on the CPUs of a role that is already running; also returns it as a process, for its clock.
    pub(super) fn start(brake: &Brake, role: &Process) -> Result<(Self, Process), String> {
        let mut of_role = role.perf_clock().ok_or(
            "a probe needs perf counters: as root, `sysctl kernel.perf_event_paranoid=2`, \
             or run it where the container allows perf_event_open(2)",
        )?;
        let failed = |e: nix::Error| format!("cannot start a brake: {e}");
        let cpus = sched_getaffinity(role.pid).map_err(failed)?;
        // SAFETY: the agent has one thread, so the child may do anything.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Child => {
                let prepare = || {
                    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
                    sched_setaffinity(Pid::from_raw(0), &cpus)?;
                    slice::request(SLICE);
                    set_timerslack(1)
                };
                if prepare().is_ok()
                    && let Ok(mut own) = ProcessClock::of_running(Counter::Now, Pid::from_raw(0))
                {
                    take(brake, role.pid, &mut of_role, &mut own);
                }
                // SAFETY: the end of this process, without the agent's destructors.
                unsafe { libc::_exit(1) }
            }
            ForkResult::Parent { child } => {
                let own = ProcessClock::of_running(Counter::Now, child);
                let own = own.map_err(|e| format!("cannot read the clock of a brake: {e}"))?;
                Ok((Self { pid: child, role: role.pid }, Process::silent(child, own)))
            }
        }
    }
}

impl Drop for RunningBrake {
    fn drop(&mut self) {
        // Either may have ended.
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = killpg(self.role, Signal::SIGCONT);
    }
}

/// Returns when a clock cannot be read.
fn take(brake: &Brake, role: Pid, of_role: &mut ProcessClock, own: &mut ProcessClock) -> Option<()> {
    let begin = of_role.read()?;
    let mut period = PERIOD;
    loop {
        std::thread::sleep(period.into());
        let due = due(brake.share, of_role.read()?.since(begin));
        if due.since(own.read()?) < LEAST {
            period = Nanos(2 * period.0).min(LONGEST_PERIOD);
            continue;
        }
        period = PERIOD;
        // It may have ended.
        let _ = killpg(role, Signal::SIGSTOP);
        while own.read()? < due {}
        let _ = killpg(role, Signal::SIGCONT);
    }
}

/// CPU time of the brake that is this share of what it and the role use together.
fn due(share: f64, used: Nanos) -> Nanos {
    Nanos((used.0 as f64 * share / (1.0 - share)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_time_of_both() {
        let taken = due(0.1, Nanos(900));
        assert_eq!(taken, Nanos(100));
        assert_eq!(due(0.0, Nanos(900)), Nanos::ZERO);
    }
}
