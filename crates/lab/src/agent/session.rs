//! The processes of a system, from `/proc`: a system may have more than the one that was started.

use linerate_contract::Bytes;
use linerate_model::{Count, Usage};
use nix::errno::Errno;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Lines of proc_pid_status(5).
const SWITCHES: [(&str, Count); 2] = [
    ("voluntary_ctxt_switches:", Count::VoluntarySwitches),
    ("nonvoluntary_ctxt_switches:", Count::InvoluntarySwitches),
];

/// One process of the system.
pub(super) struct Member {
    folder: PathBuf,
    stat: String,
}

/// The processes of `leader`'s process group, and all descendants of `leader`.
pub(super) fn members(leader: Pid) -> io::Result<Vec<Member>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        if entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())
            && let Ok(stat) = fs::read_to_string(entry.path().join("stat"))
        {
            all.push(Member { folder: entry.path(), stat });
        }
    }
    let parents: BTreeMap<i32, i32> =
        all.iter().filter_map(|member| Some((member.pid()?, member.parent()?))).collect();
    let leader = leader.as_raw();
    let descends = |pid: i32| {
        let ancestors = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        // Longer than any real chain: processes that end while the list is made could close a circle.
        ancestors.take(64).any(|pid| pid == leader)
    };
    all.retain(|member| member.group() == Some(leader) || member.pid().is_some_and(descends));
    Ok(all)
}

/// The sum of their resource usage; `None` if that of one process cannot be read.
pub(super) fn usage(leader: Pid) -> Option<Usage> {
    let members = members(leader).ok().filter(|members| !members.is_empty())?;
    let mut sum = Usage::default();
    for member in members {
        match member.usage() {
            Ok(usage) => {
                sum.descriptors += usage.descriptors;
                sum.memory.0 += usage.memory.0;
            }
            // It has ended since the list was made.
            Err(e)
                if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(Errno::ESRCH as i32) => {}
            Err(_) => return None,
        }
    }
    Some(sum)
}

impl Member {
    /// Fields of proc_pid_stat(5) after the command, which may itself contain spaces and parentheses.
    fn fields(&self) -> impl Iterator<Item = &str> {
        self.stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace()
    }

    fn pid(&self) -> Option<i32> {
        self.stat.split_ascii_whitespace().next()?.parse().ok()
    }

    fn parent(&self) -> Option<i32> {
        self.fields().nth(1)?.parse().ok()
    }

    fn group(&self) -> Option<i32> {
        self.fields().nth(2)?.parse().ok()
    }

    /// User and system time of the process and of the children that it waited for.
    pub(super) fn ticks(&self) -> Option<u64> {
        let times: Vec<u64> = self.fields().skip(11).take(4).map_while(|f| f.parse().ok()).collect();
        (times.len() == 4).then(|| times.iter().sum())
    }

    /// Faults, also of the children that it waited for, and context switches of its threads.
    pub(super) fn counts(&self) -> Vec<(Count, u64)> {
        let faults: Vec<u64> = self.fields().skip(7).take(4).map_while(|field| field.parse().ok()).collect();
        let [minor, of_children, major, major_of_children] = faults[..] else { return Vec::new() };
        let mut counts =
            vec![(Count::MinorFaults, minor + of_children), (Count::MajorFaults, major + major_of_children)];
        for thread in fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            for (name, count) in SWITCHES {
                let number = status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
                counts.extend(number.map(|number| (count, number)));
            }
        }
        counts
    }

    fn usage(&self) -> io::Result<Usage> {
        let descriptors = fs::read_dir(self.folder.join("fd"))?.count() as u64;
        // The sum over all mappings is exact; the counters of `status` lag behind by some pages for each CPU.
        let rollup = fs::read_to_string(self.folder.join("smaps_rollup"))?;
        let memory = in_memory(&rollup).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Usage { descriptors, memory })
    }
}

/// The line `Pss: 1234 kB` of proc_pid_smaps_rollup(5): pages that processes share, such as those of a server
/// that forks, are counted once in their sum. Kernels without it have `Rss`.
fn in_memory(rollup: &str) -> Option<Bytes> {
    let kib_of = |name: &str| {
        rollup
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
    };
    Some(Bytes(kib_of("Pss:").or_else(|| kib_of("Rss:"))? * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a (b) c) S 1 7 9 0 -1 4194304 1 2 3 4 100 50 7 3 20 0 1 0".to_owned();
        let member = Member { folder: PathBuf::new(), stat };
        assert_eq!(
            (member.pid(), member.parent(), member.group(), member.ticks()),
            (Some(7), Some(1), Some(7), Some(160))
        );
    }

    #[test]
    fn shared_pages_are_counted_once_where_the_kernel_says_which_are() {
        let rollup =
            "55d0-7fff ---p 00000000 00:00 0 [rollup]\nRss:                4988 kB\nPss:    100 kB\n";
        assert_eq!(in_memory(rollup), Some(Bytes(100 * 1024)));
        assert_eq!(in_memory("Rss: 7 kB\nPss_Dirty: 1 kB\n"), Some(Bytes(7 * 1024)));
        assert_eq!(in_memory("Size: 7 kB\n"), None);
    }

    #[test]
    fn an_open_file_counts_until_it_is_closed() {
        let me = nix::unistd::getpid();
        let own = |members: Vec<Member>| {
            let me = PathBuf::from(format!("/proc/{}", std::process::id()));
            members.into_iter().find(|member| member.folder == me).unwrap().usage().unwrap().descriptors
        };
        let before = own(members(me).unwrap());
        let files: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close files at the same time.
        assert!(own(members(me).unwrap()) >= before + 25);
        drop(files);
        assert!(own(members(me).unwrap()) < before + 25);
    }
}
