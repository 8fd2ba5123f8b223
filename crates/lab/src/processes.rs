//! The processes of this machine, as `/proc` has them.

use linerate_contract::Nanos;
use nix::unistd::{SysconfVar, sysconf};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// `PF_KTHREAD` of `proc_pid_stat(5)`'s flags: threads of the kernel work for everybody.
const KERNEL: u64 = 0x0020_0000;

/// A process, by its number and its start, since numbers are used again.
pub(crate) type Key = (u32, u64);

/// A process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) parent: u32,
    /// Ticks of its own, and those of ended children that it waited for.
    pub(crate) own: u64,
    pub(crate) of_children: u64,
}

impl Process {
    pub(crate) fn all(self) -> u64 {
        self.own + self.of_children
    }
}

/// The processes of an instant, without threads of the kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Processes(pub(crate) BTreeMap<Key, Process>);

impl Processes {
    pub(crate) fn now() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let all = numbers.filter_map(|number| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            let (start, process) = parsed(&stat)?;
            Some(((number, start), process))
        });
        Self(all.collect())
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.keys().map(|(number, _)| *number)
    }

    /// The numbers of these processes and of all that descend from one.
    pub(crate) fn with_descendants(&self, roots: &BTreeSet<u32>) -> BTreeSet<u32> {
        let parents: BTreeMap<u32, u32> =
            self.0.iter().map(|((number, _), process)| (*number, process.parent)).collect();
        let descends = |number: &u32| {
            let mut line = std::iter::successors(Some(*number), |number| parents.get(number).copied());
            // Longer than any real line: processes that end while the list is made could close a circle.
            line.by_ref().take(parents.len() + 1).any(|one| roots.contains(&one))
        };
        self.numbers().filter(descends).collect()
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

/// The time of as many ticks of the clock in `/proc`.
pub(crate) fn ticks(count: u64) -> Nanos {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    Nanos(count * (1_000_000_000 / u64::try_from(per_second).unwrap_or(100)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name_is() {
        let line = "7 (a) b) R 3 1 1 0 -1 4194304 0 0 0 0 10 5 2 1 20 0 1 0 900 0 0";
        assert_eq!(parsed(line), Some((900, Process { parent: 3, own: 15, of_children: 3 })));
        let of_kernel = line.replace("4194304", "2129984");
        assert_eq!(parsed(&of_kernel), None);
    }

    #[test]
    fn descendants_of_any_depth_are_found_and_a_circle_ends() {
        let of = |parent| Process { parent, own: 1, of_children: 0 };
        let all = [(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (20, 21), (21, 20)];
        let all = Processes(all.map(|(number, parent)| ((number, 0), of(parent))).into());
        assert_eq!(Vec::from_iter(all.with_descendants(&BTreeSet::from([5]))), [5, 6, 7]);
    }
}
