//! Messages between linerate and its agent inside the namespaces: one JSON document per line, over a socket
//! pair that is the agent's standard input, or over ssh. The agent ends when linerate closes the channel or
//! ends.

use crate::{Launch, Sampling, StopSignal};
use linerate_contract::{Bytes, Nanos};
use linerate_model::path::NetworkPath;
use linerate_model::{Count, Host, StackSample, Usage, WireCounts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// A network namespace of the lab.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostName {
    #[default]
    Client,
    /// Counted from the client, from 0.
    Router(u8),
    Server,
}

impl HostName {
    /// # Panics
    /// There are at most [`linerate_model::path::MOST_ROUTERS`].
    pub fn router(index: usize) -> Self {
        Self::Router(u8::try_from(index).expect("the path's description is checked"))
    }
}

/// Identifies a process of a trial; valid until the topology is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// Makes namespaces, links, addresses, routes and sysctls; writes files below [`super::SCRATCH`].
    Raise {
        path: NetworkPath,
        files: Vec<File>,
    },
    /// Makes the files of the user's own processes that are started next: all of the user's, and what is
    /// written ends with the topology. Once for each root folder.
    Own(OwnFiles),
    Spawn(Box<Spawn>),
    /// Where TCP sockets listen, or UDP sockets have no peer.
    Listeners {
        host: HostName,
        #[serde(default)]
        udp: bool,
    },
    /// Starts to record CPU times, for the client that is started next.
    Record {
        /// Until [`Request::Window`], the processes run only in these turns.
        turns: Option<Turns>,
        /// Until then, it takes CPU time from one of them.
        #[serde(default)]
        brake: Option<Brake>,
        /// Until then, the processes are sampled that can be.
        #[serde(default)]
        sampled: bool,
    },
    /// Ends the recording; the CPU times at these times of `CLOCK_MONOTONIC`.
    Window {
        start: Nanos,
        end: Nanos,
    },
    /// Facts of the host's interface with this address.
    Interface {
        address: Ipv4Addr,
    },
    /// Current resource usage of each running process and its session.
    Usage,
    Signal {
        process: ProcessId,
        signal: StopSignal,
    },
    /// Kills every process; removes namespaces and files.
    Drop,
}

/// Turns of two labs on the same CPUs: all processes of one are stopped while those of the other run. Both
/// labs get the same but for the side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Turns {
    /// When the first turn begins, on `CLOCK_MONOTONIC`.
    pub start: Nanos,
    /// The length of a turn.
    pub length: Nanos,
    /// The seed of the order, which is drawn for each two turns.
    pub seed: u64,
    /// True for the second of the two labs.
    pub second: bool,
}

/// A process that takes CPU time from a role's process and its children.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Brake {
    pub process: ProcessId,
    /// The role's process. It may be one that is started later.
    pub of: ProcessId,
    /// The part of the CPU time that both use together.
    pub share: f64,
}

/// A file to write, with a path relative to [`super::SCRATCH`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: PathBuf,
    pub contents: String,
}

/// A process of a launch: its own, or one of its setup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spawn {
    pub process: ProcessId,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The kind of record that can be made of it from now on.
    #[serde(default)]
    pub sampled: Sampling,
    pub launch: Launch,
}

/// A process that runs as the user would run it: with the user's rights, files and environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserProcess {
    /// The files of the process, and its working folder.
    pub files: OwnFiles,
    /// Variables besides those that linerate has; of an image, all.
    pub environment: BTreeMap<String, String>,
}

/// The files of the user's own processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnFiles {
    /// The working folder.
    pub folder: PathBuf,
    /// Folders and files to which writes last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<PathBuf>,
    /// The files of an image, in place of the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageFiles>,
}

/// An image that was unpacked.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImageFiles {
    pub root: PathBuf,
    /// Folders and files of the host, and where they are in the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<(PathBuf, PathBuf)>,
    /// The numbers of its user and group.
    pub user: (u32, u32),
}

/// The environment variable with the numbers of inherited TUN descriptors, separated by commas. They are
/// inherited because a process cannot open devices of another namespace.
pub const TUN_DESCRIPTORS: &str = "LINERATE_TUN";

/// A message of the agent: one response to each request, with events in between.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase")]
pub enum Message {
    /// Sent once, before the first request.
    Up(AgentFacts),
    Done,
    Refused {
        reason: String,
    },
    /// The machine or the user lacks a requirement; the reason names the remedy.
    Lacking {
        reason: String,
    },
    Listeners {
        addresses: Vec<SocketAddr>,
    },
    /// Remarks about what could not be done for the user's own files.
    Own {
        remarks: Vec<String>,
    },
    Window(WindowRecord),
    Interface {
        facts: BTreeMap<String, String>,
    },
    /// Processes whose usage cannot be read from `/proc` are left out.
    Usage {
        processes: Vec<(ProcessId, Usage)>,
    },
    /// A line of a process's output.
    Output {
        process: ProcessId,
        stream: Stream,
        line: String,
    },
    /// A process ended; all its output was sent before.
    Exited {
        process: ProcessId,
        status: ExitStatus,
        /// The peak memory of the process, or that of its dead children where that is more (`ru_maxrss` of
        /// getrusage(2)).
        peak: Bytes,
    },
}

/// Facts about the agent, for the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// The version of linerate.
    #[serde(default)]
    pub version: String,
    /// The machine, as the agent sees it.
    #[serde(default)]
    pub host: Host,
    /// The CPUs that the agent may use.
    #[serde(default)]
    pub cpus: Vec<u32>,
    pub privileges: String,
    /// True if the CPU time of processes comes from perf counters, false if from `/proc`.
    pub perf: bool,
    /// The version of the kernel's Landlock; `None` without it.
    #[serde(default)]
    pub landlock: Option<u32>,
    /// Settings of the lab's namespaces, by name, as the kernel reports them.
    pub sysctls: BTreeMap<String, String>,
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

/// The agent's record of a client's window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// CPU times at its ends.
    pub before: CpuTimes,
    pub after: CpuTimes,
    /// The share of it in which the processes ran: 1, or less where they take [`Turns`].
    pub running: f64,
    /// The counts of impaired links of the path.
    pub wires: Vec<WireCounts>,
    /// Packets that the server had sent, at times since the start of the window in which the processes ran.
    /// Empty where they are not counted: impaired paths, several hosts.
    pub progress: Vec<(Nanos, u64)>,
    /// The kernel's counts of the servers.
    #[serde(default)]
    pub counts: BTreeMap<Count, u64>,
    /// The functions of the servers, where they were sampled.
    #[serde(default)]
    pub sample: Option<StackSample>,
}

/// CPU time used since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Each process with all its descendants, dead ones included.
    pub processes: Vec<(ProcessId, Nanos)>,
    /// Each CPU, from `/proc/stat`.
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

/// The addresses of the lab: private (RFC 1918), inside namespaces that no packet leaves.
pub mod address {
    use super::Ipv4Addr;

    /// The first of the client's `CLIENT_SOURCES` addresses, with 64,511 ports each: enough for any trial.
    pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
    pub const CLIENT_SOURCES: u8 = 8;
    /// The name of each TUN device.
    pub const TUN: &str = "tun0";
    /// The network of a default route.
    pub const ALL: (Ipv4Addr, u8) = (Ipv4Addr::UNSPECIFIED, 0);

    /// All source addresses of the client.
    pub fn client_sources() -> Vec<Ipv4Addr> {
        let [a, b, c, d] = CLIENT.octets();
        (0..CLIENT_SOURCES).map(|i| Ipv4Addr::new(a, b, c, d + i)).collect()
    }

    /// The addresses of a link's end on the client's side; links are counted from the client, from 0.
    pub fn near(link: usize) -> Vec<Ipv4Addr> {
        if link == 0 { client_sources() } else { vec![on_link(link, 1)] }
    }

    /// The address of a link's other end. The server has one that is not among the client's.
    pub fn far(link: usize, is_server: bool) -> Ipv4Addr {
        on_link(
            link,
            if link > 0 {
                2
            } else if is_server {
                100
            } else {
                1
            },
        )
    }

    /// The network of a link.
    pub fn network(link: usize) -> (Ipv4Addr, u8) {
        (on_link(link, 0), 24)
    }

    fn on_link(link: usize, host: u8) -> Ipv4Addr {
        let network = u8::try_from(link + 1).expect("a path has few links");
        Ipv4Addr::new(10, 77, network, host)
    }
}
