//! What linerate and its agent inside the namespaces say to each other: a JSON document a line, over a
//! socket pair that is the agent's standard input. When linerate is gone the socket is at its end, and so is the agent.

use crate::measurement::Usage;
use crate::system::manifest::{StopSignal, Topology};
use linerate_contract::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A network namespace of the lab, named by what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostName {
    Client,
    Router,
    Server,
}

/// Names a process of a trial for as long as the topology stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// Namespaces, links, addresses, routes, sysctls; files are written below [`super::SCRATCH`].
    Raise {
        path: NetworkPath,
        files: Vec<File>,
    },
    Spawn(Box<Spawn>),
    /// Does a TCP socket listen on this port?
    Listening {
        host: HostName,
        port: u16,
    },
    /// CPU times now.
    Cpu,
    /// What each running process and all of its session hold now.
    UsagePair,
    Signal {
        process: ProcessId,
        signal: StopSignal,
    },
    /// Kills every process, forgets namespaces and files.
    Drop,
}

/// What is to lie between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPath {
    pub topology: Topology,
    /// Of every link, in bytes.
    pub mtu: u32,
}

/// Ethernet's, so that segments are those of a real network; a suite may say otherwise.
const MTU: u32 = 1_500;
/// What the kernel gives `lo`.
const LOOPBACK_MTU: u32 = 65_536;

impl From<Topology> for NetworkPath {
    fn from(topology: Topology) -> Self {
        Self { topology, mtu: if topology == Topology::Loopback { LOOPBACK_MTU } else { MTU } }
    }
}

/// A file to write, with a path relative to [`super::SCRATCH`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: PathBuf,
    pub contents: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spawn {
    pub process: ProcessId,
    pub host: HostName,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Its working folder and only place to write, relative to [`super::SCRATCH`].
    pub folder: PathBuf,
    pub files: Vec<File>,
    /// CPUs to pin it to; empty: no pin.
    pub cpus: Vec<u32>,
    /// It is given both TUN devices of [`Topology::TunPair`], the one nearer to the client first: [`TUN_DESCRIPTORS`].
    pub tuns: bool,
}

/// The variable that holds the numbers of inherited TUN descriptors, separated by commas: a process cannot open devices
/// of a namespace that it is not in.
pub const TUN_DESCRIPTORS: &str = "LINERATE_TUN";

/// What the agent says: one reply to each request, events in between.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase")]
pub enum Message {
    /// Once, before the first request.
    Up(AgentFacts),
    Done,
    Refused {
        reason: String,
    },
    /// This machine, or this user, has not what the request needs; the reason says who can change that.
    Lacking {
        reason: String,
    },
    Listening {
        yes: bool,
    },
    Cpu(CpuTimes),
    /// Of those of which `/proc` tells.
    UsagePair {
        processes: Vec<(ProcessId, Usage)>,
    },
    /// A line that a process wrote.
    Output {
        process: ProcessId,
        stream: Stream,
        line: String,
    },
    /// A process ended, and all its output is told.
    Exited {
        process: ProcessId,
        status: ExitStatus,
        cpu: Option<Nanos>,
        /// The most memory it had at once, its dead children's included if that was more.
        peak: Bytes,
    },
}

/// How the agent came to be, for the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    pub privileges: String,
    /// True if per-process CPU time comes from perf counters, false if from `/proc`.
    pub perf: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(name) => write!(f, "killed by {name}"),
                Err(_) => write!(f, "killed by signal {signal}"),
            },
        }
    }
}

/// CPU time used until now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Of each running process and all its descendants, dead ones included.
    pub processes: Vec<(ProcessId, Nanos)>,
    /// Of each CPU, from `/proc/stat`.
    pub cpus: Vec<CpuTime>,
}

/// A CPU's line of `/proc/stat`, see proc_stat(5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    pub cpu: u32,
    pub total: Nanos,
    pub busy: Nanos,
    pub interrupts: Nanos,
    pub steal: Nanos,
}

/// The addresses of the lab: RFC 5735's private range, inside namespaces that no packet leaves.
pub mod address {
    use super::Ipv4Addr;

    /// The client's addresses: `CLIENT_SOURCES` of them, so that 64,511 ports each outlast any trial.
    pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
    pub const CLIENT_SOURCES: u8 = 8;
    pub const ROUTER_CLIENT_SIDE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
    pub const ROUTER_SERVER_SIDE: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);
    pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);
    /// The name of each TUN device.
    pub const TUN: &str = "tun0";
    /// The server's address where no router lies between.
    pub const SERVER_ON_LINK: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 100);

    /// Every address that the client may call from.
    #[must_use]
    pub fn client_sources() -> Vec<Ipv4Addr> {
        let [a, b, c, d] = CLIENT.octets();
        (0..CLIENT_SOURCES).map(|i| Ipv4Addr::new(a, b, c, d + i)).collect()
    }
}
