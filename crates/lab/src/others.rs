//! CPU time that processes outside of linerate use, by their own clocks: a lab's clocks and the ticks of
//! `/proc/stat` differ by more than what is asked for, where processes sleep and wake up often.

use crate::listening::{Port, holders};
use crate::processes::{Key, Process, Processes, ticks};
use std::collections::{BTreeMap, BTreeSet};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// A socket of a service that is started on demand is also init's, and all processes descend from init.
const INIT: u32 = 1;

/// The processes of other programs at an instant.
#[derive(Debug)]
pub(crate) struct Others {
    at: Instant,
    processes: BTreeMap<Key, Process>,
}

impl Others {
    /// `servers`: the ports of servers that run already, and are measured.
    pub(crate) fn now(servers: &[Port]) -> Self {
        let all = Processes::now();
        let mut known = BTreeSet::from([process::id()]);
        if !servers.is_empty() {
            known.extend(holders(servers, &all).into_iter().filter(|number| *number != INIT));
        }
        Self { at: Instant::now(), processes: without(&known, all) }
    }

    /// The share of this machine's CPU time that they have used since an earlier instant.
    pub(crate) fn share_since(&self, before: &Self) -> f64 {
        let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let time = (self.at - before.at).max(Duration::from_millis(1)).as_secs_f64() * cpus as f64;
        let used = ticks(used(&before.processes, &self.processes));
        (used.as_secs_f64() / time).min(1.0)
    }
}

/// Without some processes and their descendants.
fn without(known: &BTreeSet<u32>, mut all: Processes) -> BTreeMap<Key, Process> {
    let known = all.with_descendants(known);
    all.0.retain(|(number, _), _| !known.contains(number));
    all.0
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

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    fn process(parent: u32, own: u64, of_children: u64) -> Process {
        Process { parent, own, of_children }
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
    fn neither_own_children_nor_servers_that_are_measured_are_others() {
        let listens = "import os, socket, time; s = socket.create_server(('127.0.0.1', 0)); \
                       print(s.getsockname()[1], os.getpid(), flush=True); time.sleep(5)";
        // Its parent ends at once, so that it does not descend from this process.
        let mut parent = Command::new("setsid");
        parent.args(["-f", "python3", "-c", listens]).stdout(Stdio::piped());
        let mut parent = parent.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        parent.wait().unwrap();
        let (port, server) = line.trim().split_once(' ').unwrap();
        let (port, server) =
            (Port { number: port.parse().unwrap(), is_udp: false }, server.parse::<u32>().unwrap());
        let is_seen =
            |ports: &[Port]| Others::now(ports).processes.keys().any(|(number, _)| *number == server);
        assert_eq!([is_seen(&[]), is_seen(&[port])], [true, false]);
        kill(Pid::from_raw(i32::try_from(server).unwrap()), Signal::SIGKILL).unwrap();

        let mut child = Command::new("sleep").arg("5").spawn().unwrap();
        let seen = Others::now(&[]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!seen.processes.keys().any(|(number, _)| *number == child.id() || *number == process::id()));
    }
}
