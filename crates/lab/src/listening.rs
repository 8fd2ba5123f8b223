//! CPU time of the processes that listen on a port of this machine: servers that linerate did not start.
//!
//! [`serve`] answers questions on standard input, here or over ssh; no agent and no namespace is needed.

use linerate_contract::Nanos;
use nix::sys::time::TimeValLike;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, alarm, sysconf};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, Write};

/// The hidden subcommand that serves.
pub const WATCH: &str = "lab-watch";
/// Without a question for this time, in seconds, the near end is gone: after a cut network neither side gets
/// an error. A question is asked before and after each unit, which takes seconds.
const SILENCE: u32 = 600;
/// The states of sockets in `/proc/net`: one that listens for TCP, one of UDP without a peer.
const LISTENS: &str = "0A";
const HAS_NO_PEER: &str = "07";

/// A port that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub number: u16,
    pub is_udp: bool,
}

/// A response: the CPU time so far, or why it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Response {
    Time(Nanos),
    Refused(String),
}

/// Answers a line of JSON with another one, until there are none.
///
/// # Errors
/// Standard input or output fails.
#[allow(clippy::disallowed_methods, reason = "standard output is the channel to the near end")]
pub fn serve() -> io::Result<()> {
    alarm::set(SILENCE);
    for line in io::stdin().lock().lines() {
        alarm::set(SILENCE);
        let response = match serde_json::from_str(&line?) {
            Ok(port) => cpu_time(port).map_or_else(Response::Refused, Response::Time),
            Err(e) => Response::Refused(format!("not a question of this version: {e}")),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&response).map_err(io::Error::other)?)?;
        out.flush()?;
    }
    Ok(())
}

/// User and system time of the processes that have a socket of the port, of those that descend from them, and
/// of the children that they waited for.
///
/// # Errors
/// Nothing listens there, or its process belongs to another user.
fn cpu_time(port: Port) -> Result<Nanos, String> {
    let sockets = sockets(port);
    let number = port.number;
    if sockets.is_empty() {
        return Err(format!(
            "nothing listens on port {number} of this host's own network (a container has another one)"
        ));
    }
    let processes = processes();
    let holds = |pid: &i32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| {
            let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
            inode.is_some_and(|inode| sockets.contains(inode))
        })
    };
    let holders: BTreeSet<i32> = processes.keys().copied().filter(holds).collect();
    if holders.is_empty() {
        return Err(format!(
            "the process that listens on port {number} is another user's: be that user, or root"
        ));
    }
    let descends = |pid: i32| {
        let ancestors = std::iter::successors(Some(pid), |pid| processes.get(pid).map(|one| one.parent));
        // Longer than any real chain: processes that end while the list is made could close a circle.
        ancestors.take(64).any(|pid| holders.contains(&pid))
    };
    let all = processes.iter().filter(|(pid, _)| descends(**pid));
    Ok(all.fold(Nanos::ZERO, |sum, (pid, process)| sum + own_time(*pid) + process.children))
}

/// Inodes of the sockets of a port.
fn sockets(port: Port) -> BTreeSet<String> {
    let (tables, state) = match port.is_udp {
        true => (["udp", "udp6"], HAS_NO_PEER),
        false => (["tcp", "tcp6"], LISTENS),
    };
    let read = |table| fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
    let inode = |line: &str| {
        // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, _, found, _, _, _, _, _, inode, ..] = fields[..] else { return None };
        let (_, number) = local.rsplit_once(':')?;
        let is_it = found == state && u16::from_str_radix(number, 16) == Ok(port.number);
        is_it.then(|| inode.to_owned())
    };
    tables.map(read).iter().flat_map(|table| table.lines().filter_map(inode)).collect()
}

struct Process {
    parent: i32,
    /// CPU time of the children that it waited for.
    children: Nanos,
}

fn processes() -> BTreeMap<i32, Process> {
    let tick = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    let tick = 1_000_000_000 / u64::try_from(tick).unwrap_or(100);
    let read = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The command may itself contain spaces and parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some((
            pid,
            Process {
                parent: fields.get(1)?.parse().ok()?,
                children: Nanos((ticks(13)? + ticks(14)?) * tick),
            },
        ))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(read).collect()
}

/// To the nanosecond, with threads that have ended; 0 for a process that has.
fn own_time(pid: i32) -> Nanos {
    let clock = clock_getcpuclockid(Pid::from_raw(pid)).and_then(clock_gettime);
    clock.map_or(Nanos::ZERO, |time| Nanos(u64::try_from(time.num_nanoseconds()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::time::{Duration, Instant};

    #[test]
    fn the_time_of_the_process_that_listens_grows_with_its_work() {
        let listener = TcpListener::bind("[::1]:0").or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = |number, is_udp| Port { number, is_udp };
        let ports = [
            port(listener.local_addr().unwrap().port(), false),
            port(socket.local_addr().unwrap().port(), true),
        ];
        for port in ports {
            let (before, start) = (cpu_time(port).unwrap(), Instant::now());
            while start.elapsed() < Duration::from_millis(20) {}
            let used = cpu_time(port).unwrap().since(before);
            assert!(used > Nanos(1_000_000), "{used:?}");
        }
    }

    #[test]
    fn a_port_on_which_nothing_listens_is_refused() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let reason = cpu_time(Port { number: free, is_udp: false }).unwrap_err();
        assert!(reason.contains("nothing listens on port"), "{reason}");
    }
}
