//! CPU time that processes outside of linerate use, by their own clocks: a lab's clocks and the ticks of
//! `/proc/stat` differ by more than what is asked for, where processes sleep and wake up often.

use linerate_contract::Nanos;
use nix::unistd::{SysconfVar, sysconf};
use std::collections::BTreeMap;
use std::fs;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// `PF_KTHREAD` of `proc_pid_stat(5)`'s flags: threads of the kernel work for everybody.
const KERNEL: u64 = 0x0020_0000;

/// A process, by its number and its start, since numbers are used again.
type Key = (u32, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// Ticks of its own, and those of ended children that it waited for.
    own: u64,
    of_children: u64,
}

impl Process {
    fn all(self) -> u64 {
        self.own + self.of_children
    }
}

/// The processes of other programs at an instant.
#[derive(Debug)]
pub(crate) struct Others {
    at: Instant,
    processes: BTreeMap<Key, Process>,
}

impl Others {
    pub(crate) fn now() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let all = numbers.filter_map(|number| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            let (start, process) = parsed(&stat)?;
            Some(((number, start), process))
        });
        Self { at: Instant::now(), processes: without(process::id(), all.collect()) }
    }

    /// The share of this machine's CPU time that they have used since an earlier instant.
    pub(crate) fn share_since(&self, before: &Self) -> f64 {
        let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let time = (self.at - before.at).max(Duration::from_millis(1)).as_secs_f64() * cpus as f64;
        let ticks = used(&before.processes, &self.processes);
        (Nanos(ticks * tick()).as_secs_f64() / time).min(1.0)
    }
}

/// The start of a process, and the rest of its line.
fn parsed(stat: &str) -> Option<(u64, Process)> {
    // A name may have any characters.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let is_of_kernel = number(6)? & KERNEL != 0;
    let process = Process {
        parent: u32::try_from(number(1)?).ok()?,
        own: number(11)? + number(12)?,
        of_children: number(13)? + number(14)?,
    };
    (!is_of_kernel).then_some((number(19)?, process))
}

/// Without a process and its descendants.
fn without(root: u32, mut all: BTreeMap<Key, Process>) -> BTreeMap<Key, Process> {
    let parents: BTreeMap<u32, u32> =
        all.iter().map(|((number, _), process)| (*number, process.parent)).collect();
    let is_descendant = |number: u32| {
        let mut line = std::iter::successors(Some(number), |number| parents.get(number).copied());
        line.by_ref().take(parents.len() + 1).any(|one| one == root)
    };
    all.retain(|(number, _), _| !is_descendant(*number));
    all
}

/// Ticks that were used between two instants. What an ended process had used before is in its parent's now.
fn used(before: &BTreeMap<Key, Process>, after: &BTreeMap<Key, Process>) -> u64 {
    let since = |(key, now): (&Key, &Process)| {
        now.all().saturating_sub(before.get(key).map_or(0, |known| known.all()))
    };
    let of_number = |of: &BTreeMap<Key, Process>, number: u32| {
        of.range((number, 0)..=(number, u64::MAX)).next().map(|(_, process)| process.of_children)
    };
    let ended = before.iter().filter(|(key, _)| !after.contains_key(key)).map(|(_, known)| {
        let of_children = |of| of_number(of, known.parent).unwrap_or(0);
        known.all().min(of_children(after).saturating_sub(of_children(before)))
    });
    after.iter().map(since).sum::<u64>().saturating_sub(ended.sum())
}

/// In nanoseconds.
fn tick() -> u64 {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn process(parent: u32, own: u64, of_children: u64) -> Process {
        Process { parent, own, of_children }
    }

    #[test]
    fn a_line_is_read_whatever_the_name_is() {
        let line = "7 (a) b) R 3 1 1 0 -1 4194304 0 0 0 0 10 5 2 1 20 0 1 0 900 0 0";
        assert_eq!(parsed(line), Some((900, process(3, 15, 3))));
        let of_kernel = line.replace("4194304", "2129984");
        assert_eq!(parsed(&of_kernel), None);
    }

    #[test]
    fn descendants_are_no_others() {
        let all = [(1, 0), (5, 1), (6, 5), (7, 6), (8, 1)]
            .map(|(number, parent)| ((number, 0), process(parent, 1, 0)));
        let others = without(5, all.into());
        assert_eq!(others.keys().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 8]);
    }

    #[test]
    fn what_processes_that_end_have_used_counts_once() {
        let before = BTreeMap::from([((2, 0), process(1, 10, 0)), ((3, 0), process(2, 50, 0))]);
        // 3 used 20 more, ended, and was waited for; 4 began, and used 5.
        let after = BTreeMap::from([((2, 0), process(1, 11, 70)), ((4, 0), process(2, 5, 0))]);
        assert_eq!(used(&before, &after), 1 + 20 + 5);
        // 3 ended, and nobody waited.
        let alone = BTreeMap::from([((2, 0), process(1, 11, 0))]);
        assert_eq!(used(&before, &alone), 1);
    }

    #[test]
    fn own_children_are_not_seen() {
        let mut child = Command::new("sleep").arg("5").spawn().unwrap();
        let seen = Others::now();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!seen.processes.keys().any(|(number, _)| *number == child.id() || *number == process::id()));
    }
}
