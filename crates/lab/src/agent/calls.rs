//! System calls of servers, by name: each is a record of a tracepoint.

use linerate_contract::Nanos;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use syscalls::Sysno;

/// Where the kernel has its tracepoints, once they are mounted.
const TRACING: &str = "/sys/kernel/tracing";
/// The record of the end of a system call.
const NUMBER: &str = "events/raw_syscalls/sys_exit/id";

/// A system call that has ended.
pub(super) struct Call {
    time: Nanos,
    number: i64,
    result: i64,
}

/// The number of the tracepoint at the end of a system call; mounts the kernel's list in the agent's own
/// namespace if it has to.
pub(super) fn tracepoint() -> Result<u64, String> {
    let path = format!("{TRACING}/{NUMBER}");
    if !fs::exists(&path).unwrap_or(false) {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("tracefs"), TRACING, Some("tracefs"), flags, None::<&str>)
            .map_err(|e| format!("{TRACING}: {}", e.desc()))?;
    }
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    text.trim().parse().map_err(|_| format!("{path} has no number"))
}

impl Call {
    /// By the tracepoint's record: a header of eight bytes, the number of the call, its result.
    pub(super) fn new(time: Option<Nanos>, record: &[u8]) -> Option<Self> {
        let field = |at: usize| Some(i64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
        Some(Self { time: time?, number: field(8)?, result: field(16)? })
    }
}

/// Numbers of calls in a window by name: `write(2)`. Those that would have had to wait are counted once
/// more, as `read(2) with EAGAIN`.
pub(super) fn by_name(calls: &[Call], window: Range<Nanos>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for call in calls.iter().filter(|call| window.contains(&call.time)) {
        let known = usize::try_from(call.number).ok().and_then(Sysno::new);
        let name = known.map_or_else(|| format!("system call {}", call.number), |one| format!("{one}(2)"));
        if call.result == -i64::from(Errno::EAGAIN as i32) {
            *counts.entry(format!("{name} with EAGAIN")).or_default() += 1;
        }
        *counts.entry(name).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: i64, result: i64) -> Vec<u8> {
        [0, number, result].into_iter().flat_map(i64::to_ne_bytes).collect()
    }

    #[test]
    fn calls_of_a_window_are_counted_by_name_and_those_that_would_wait_once_more() {
        let read = Sysno::read as i64;
        let at = |time: u64, result| Call::new(Some(Nanos(time)), &record(read, result)).unwrap();
        let all = [at(0, 5), at(10, 5), at(19, -11), at(20, 5)];
        let counts = by_name(&all, Nanos(10)..Nanos(20));
        assert_eq!(counts, BTreeMap::from([("read(2)".into(), 2), ("read(2) with EAGAIN".into(), 1)]));
        assert!(Call::new(Some(Nanos(0)), &[0; 20]).is_none(), "a record that is cut off");
    }
}
