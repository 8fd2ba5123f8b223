//! CPU time, of processes with all their descendants and of the machine's CPUs.

use crate::lab::protocol::CpuTime;
use linerate_contract::Nanos;
use nix::unistd::{Pid, SysconfVar, sysconf};
use perf_event::events::Software;
use perf_event::{Builder, Counter};
use std::fs;

/// The CPU time of a process and of every process that descends from it.
///
/// A perf counter that children inherit (perf_event_open(2), `task-clock`) also counts children that have died
/// unwaited for, as those of sslh-fork do; `/proc` forgets them. Where perf is not allowed, `/proc` has to do.
pub(super) enum ProcessClock {
    Perf(Box<Counter>),
    Proc(Pid),
}

impl ProcessClock {
    pub(super) fn attach(pid: Pid) -> Self {
        counter(pid.as_raw()).map_or(Self::Proc(pid), |counter| Self::Perf(Box::new(counter)))
    }

    pub(super) fn read(&mut self) -> Option<Nanos> {
        match self {
            Self::Perf(counter) => counter.read().ok().map(Nanos),
            Self::Proc(pid) => proc_time(*pid),
        }
    }
}

fn counter(pid: i32) -> std::io::Result<Counter> {
    // A software clock counts all of a task's time whatever is excluded; excluding the kernel is what makes
    // it available at perf_event_paranoid 2.
    Builder::new(Software::TASK_CLOCK)
        .observe_pid(pid)
        .any_cpu()
        .inherit(true)
        .exclude_kernel(true)
        .exclude_hv(true)
        .enabled(true)
        .build()
}

pub(super) fn perf_works() -> bool {
    counter(std::process::id() as i32).is_ok()
}

/// User and system time of all processes of the session that `leader` leads, and of their waited-for children.
fn proc_time(leader: Pid) -> Option<Nanos> {
    let mut ticks = 0;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        if entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())
            && let Ok(stat) = fs::read_to_string(entry.path().join("stat"))
        {
            ticks += session_ticks(&stat, leader.as_raw()).unwrap_or(0);
        }
    }
    Some(Nanos(ticks * tick_nanos()))
}

/// Fields of proc_pid_stat(5), counted after the command in parentheses: session (6), utime to cstime (14 to 17).
fn session_ticks(stat: &str, session: i32) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    if fields.get(3)?.parse() != Ok(session) {
        return None;
    }
    fields.get(11..15)?.iter().map(|f| f.parse::<u64>().ok()).sum()
}

/// `/proc/stat` of every CPU.
pub(super) fn cpu_times() -> Vec<CpuTime> {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines().filter_map(|line| cpu_time(line, tick_nanos())).collect()
}

/// `cpuN user nice system idle iowait irq softirq steal ...`, in ticks; guest time is part of user time.
fn cpu_time(line: &str, tick: u64) -> Option<CpuTime> {
    let mut fields = line.split_ascii_whitespace();
    let cpu = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    let times: Vec<u64> = fields.take(8).filter_map(|f| f.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = times[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTime {
        cpu,
        total: Nanos((busy + idle + iowait + steal) * tick),
        busy: Nanos(busy * tick),
        interrupts: Nanos((irq + softirq) * tick),
        steal: Nanos(steal * tick),
    })
}

/// A hundredth of a second on every Linux of today, but the kernel is asked.
fn tick_nanos() -> u64 {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_line_is_read() {
        let time = cpu_time("cpu1 10 1 5 100 7 2 3 4 0 0", 10).unwrap();
        assert_eq!((time.cpu, time.busy, time.total), (1, Nanos(210), Nanos(1_320)));
        assert_eq!((time.interrupts, time.steal), (Nanos(50), Nanos(40)));
    }

    #[test]
    fn the_sum_line_and_other_lines_are_no_cpu() {
        assert_eq!(cpu_time("cpu  10 1 5 100 7 2 3 4 0 0", 10), None);
        assert_eq!(cpu_time("intr 5", 10), None);
    }

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 2 3 4 100 50 7 3 20 0 1 0";
        assert_eq!(session_ticks(stat, 7), Some(160));
        assert_eq!(session_ticks(stat, 8), None);
    }
}
