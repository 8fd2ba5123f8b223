//! CPU time of the processes that listen on a port of this machine: servers that linerate did not start.
//!
//! [`serve`] answers questions on standard input, here or over ssh; no agent and no namespace is needed.

use crate::processes::{Processes, ticks};
use linerate_contract::Nanos;
use nix::sys::time::TimeValLike;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, alarm};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
    let number = port.number;
    if sockets(port).is_empty() {
        return Err(format!(
            "nothing listens on port {number} of this host's own network (a container has another one)"
        ));
    }
    let processes = Processes::now();
    let holders = holders(&[port], &processes);
    if holders.is_empty() {
        return Err(format!(
            "the process that listens on port {number} is another user's: be that user, or root"
        ));
    }
    let all = processes.with_descendants(&holders);
    let of_children = processes.0.iter().filter(|((number, _), _)| all.contains(number));
    let of_children = of_children.fold(Nanos::ZERO, |sum, (_, process)| sum + ticks(process.of_children));
    Ok(all.into_iter().fold(of_children, |sum, number| sum + own_time(number)))
}

/// The processes that have a socket of one of the ports, as far as this user may see them.
pub(crate) fn holders(ports: &[Port], all: &Processes) -> BTreeSet<u32> {
    let sockets: BTreeSet<String> = ports.iter().flat_map(|port| sockets(*port)).collect();
    let holds = |number: &u32| {
        let files = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| {
            let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
            inode.is_some_and(|inode| sockets.contains(inode))
        })
    };
    all.numbers().filter(holds).collect()
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

/// To the nanosecond, with threads that have ended; 0 for a process that has.
fn own_time(number: u32) -> Nanos {
    let number = i32::try_from(number).unwrap_or(i32::MAX);
    let clock = clock_getcpuclockid(Pid::from_raw(number)).and_then(clock_gettime);
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
            while cpu_time(port).unwrap().since(before) <= Nanos(1_000_000) {
                assert!(start.elapsed() < Duration::from_secs(30), "no time of {port:?}");
            }
        }
    }

    #[test]
    fn a_port_on_which_nothing_listens_is_refused() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let reason = cpu_time(Port { number: free, is_udp: false }).unwrap_err();
        assert!(reason.contains("nothing listens on port"), "{reason}");
    }
}
