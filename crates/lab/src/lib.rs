//! The lab: namespaces, links, packet-filter rules, processes, CPU pins. It has no suite, no manifest of a
//! system and no report: a [`Launch`] describes a process completely.
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | messages between linerate and its agent inside the namespaces |
//! | [`agent`] | the agent: pid 1 of the lab |
//! | [`namespaces`] | the real lab, from outside: controls the agent |
//! | [`hosts`] | the lab over several hosts, by ssh; servers there that run already |
//! | [`pair`] | two labs at the same time |
//! | [`listening`] | CPU time of what listens on a port |
//! | [`scripted`] | the lab of the tests: responses from a file, no network |
//! | `others` | CPU time that processes of others use |
//! | `processes` | The processes of this machine, from `/proc` |
//! | [`host`], [`program`] | facts of a machine, its programs and folders |
//!
//! All labs implement [`Lab`], and a [`Site`] raises them; all other code runs unchanged on any.

pub mod agent;
pub mod host;
pub mod hosts;
pub mod listening;
pub mod namespaces;
mod others;
pub mod pair;
mod processes;
pub mod program;
pub mod protocol;
pub mod scripted;

use hosts::{Hosts, Server, Watched};
use linerate_contract::{Bytes, Nanos, Role};
use linerate_model::path::NetworkPath;
use linerate_model::{Host, LabFlag, Place, PlannedHost, Usage};
use listening::Port;
use namespaces::Namespaces;
use protocol::{ExitStatus, File, HostName, Turns, UserProcess, WindowRecord};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The hidden subcommand with which linerate starts itself inside the namespaces.
pub const AGENT: &str = "lab-agent";
/// The folder of the lab's files, inside its own mount namespace.
pub const SCRATCH: &str = "/run/linerate";
/// The folder of the web servers' pages, relative to [`SCRATCH`].
pub const DOCROOT: &str = "docroot";

/// Runs trials. A lab is raised once, a topology in it for each trial.
pub trait Lab: Send + std::fmt::Debug {
    /// Facts about the machine, for the report.
    fn host(&self) -> Host;
    /// The machines of the roles, where they are on several; else none.
    fn hosts(&self) -> Vec<PlannedHost> {
        Vec::new()
    }
    /// Runs linerate with these arguments and this input on another machine that plays a role, and returns
    /// its output; `None` if the role is on this machine.
    fn ask_host(&self, _: Role, _arguments: &str, _input: &[u8]) -> Option<Result<String, LabError>> {
        None
    }
    /// True if the kernel shares a CPU between two labs and not between their processes.
    fn is_grouped(&self) -> bool;
    /// The numbers of the CPUs that roles may be pinned to.
    fn cpus(&self) -> Vec<u32>;
    /// Time since the start of the run.
    fn now(&self) -> Nanos;
    /// Makes new namespaces for a trial; every role can read `files`.
    ///
    /// # Errors
    /// [`LabError`], as for every method of this trait.
    fn raise(&mut self, label: &Label, path: NetworkPath, files: Vec<File>) -> Result<(), LabError>;
    /// Runs a server's or relay's setup, starts it and waits until it is ready: the time from its start.
    fn start(&mut self, launch: &Launch) -> Result<Nanos, LabError>;
    /// Where processes of the server's host listen for TCP connections; with [`Ready::Datagrams`], where they
    /// have UDP sockets without a peer.
    fn listeners(&mut self, ready: Ready) -> Result<Vec<SocketAddr>, LabError>;
    /// Runs a client to its end.
    fn run(&mut self, launch: &Launch, purpose: Purpose, deadline: Duration) -> Result<ClientRun, LabError>;
    /// Resource usage of the servers' processes, after a short time for closing connections; `None` if it
    /// cannot be read.
    fn usage(&mut self) -> Result<Option<Usage>, LabError>;
    /// From the next [`Lab::run`] to its end, the processes of this lab run only in their turns.
    fn take_turns(&mut self, turns: Turns);
    /// From the next [`Lab::run`] to its end, CPU time is taken from a role.
    fn brake(&mut self, force: BrakeForce);
    /// Whether servers that are started from now on, and clients that run, have samples of the servers.
    fn sample(&mut self, _: Sampling) {}
    /// Text that servers and relays wrote on stderr until they were ready, since the topology was raised
    /// last.
    fn written(&self) -> Vec<Written> {
        Vec::new()
    }
    /// Raises a topology, runs a program in it as a system is run, and returns what it prints, whatever its
    /// exit status is; `None` if the lab cannot.
    fn output_of(&mut self, _command: &CommandLine, _deadline: Duration) -> Option<Result<String, LabError>> {
        None
    }
    /// False if a server or relay has ended.
    fn is_running(&mut self) -> bool {
        true
    }
    /// Ends all processes and removes the topology.
    fn stop(&mut self) -> Result<(), LabError>;
}

/// Where the processes of a run are.
#[derive(Debug, Clone)]
pub enum Site {
    /// All on this machine, in a network of their own or in that of the machine, beside the servers that run
    /// already and have these ports.
    Here(Place, Vec<Port>),
    /// Each role on a machine.
    Roles(Vec<PlannedHost>),
    /// The client on this machine; the CPU time of these servers, which run already, is read.
    Watched(Vec<Server>),
}

impl Site {
    /// Raises the lab. `home` has the program that is copied to other machines.
    ///
    /// # Errors
    /// [`LabError::Lost`]: the kernel refuses it, or a machine cannot be reached; with the remedy.
    pub fn raise(&self, home: &Path, interrupted: Arc<AtomicBool>) -> Result<Box<dyn Lab>, LabError> {
        Ok(match self {
            Self::Here(place, servers) => {
                Box::new(Namespaces::raise(place, interrupted)?.beside(servers.clone()))
            }
            Self::Roles(hosts) => Box::new(Hosts::raise(hosts.clone(), home, interrupted)?),
            Self::Watched(servers) => Box::new(Watched::raise(servers, home, interrupted)?),
        })
    }
}

/// The first lines that a system wrote on stderr, until it was ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub role: Role,
    /// The variant's name.
    pub system: String,
    pub lines: Vec<String>,
    /// The lines are the lab's own, about the files that the system has.
    pub is_of_lab: bool,
}

/// How much CPU time is taken from a role.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrakeForce {
    pub role: Role,
    /// The part of the CPU time that the role would need.
    pub share: f64,
}

/// Identifies a trial; the scripted lab selects its responses by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub suite: String,
    pub cell: String,
    pub round: u32,
    pub warmup: bool,
}

/// The purpose of a client's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Verify,
    Measure,
}

/// The kind of record of a lab's servers while a client measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sampling {
    #[default]
    Off,
    /// The functions that they run, by samples of their stacks.
    Stacks,
    /// Each system call.
    Calls,
}

/// A complete description of a process to start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub role: Role,
    /// A process that its server needs, such as a database. It belongs to no role's CPU time.
    pub is_companion: bool,
    /// The variant's name.
    pub system: String,
    pub host: HostName,
    /// The working folder, relative to [`SCRATCH`]. Unless the process is the user's own, it may write to no
    /// other one.
    pub folder: PathBuf,
    pub files: Vec<File>,
    /// Commands that run to their end before the process starts.
    pub setup: Vec<CommandLine>,
    /// `None` if nothing is started: a relay that consists of rules, or no relay.
    pub process: Option<CommandLine>,
    pub ready: Ready,
    /// How long it may take until it is; `None`: as long as any system needs.
    pub ready_within: Option<Duration>,
    pub stop: StopSignal,
    /// The port on which it listens; 0: it is ready when there is a listener that was not there before.
    pub port: u16,
    pub cpus: Vec<u32>,
    /// True if no other role has one of these CPUs. It then has a session of its own: the kernel's autogroup
    /// spreads the weight of a session over CPUs by load, and a part that is mostly idle would get next to
    /// none.
    pub own_session: bool,
    /// Time slice to request from the kernel, in a duet.
    pub slice: Option<Nanos>,
    /// True if it joins two TUN devices; it inherits the descriptors of both, the client's side first; see
    /// [`protocol::TUN_DESCRIPTORS`].
    pub tuns: bool,
    /// Set for a command of the user's own.
    pub user: Option<UserProcess>,
}

/// How a started system signals that it is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// A TCP socket listens on its port (read from the kernel's socket table, without a connection).
    #[default]
    Listen,
    /// A UDP socket has its port, and no peer.
    Datagrams,
    /// The process prints the contract's `ready` event.
    Event,
}

/// The signal that asks a system to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    #[default]
    Term,
    Int,
    Quit,
    Kill,
}

/// A program and its arguments.
pub type CommandLine = (PathBuf, Vec<String>);

/// The result of a client's run.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRun {
    pub status: ExitStatus,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
    /// Lines that servers printed during the run.
    pub server_stdout: Vec<String>,
    /// CPU time of each role's processes in the client's window: from its first to its last operation, or its
    /// whole run if it does not implement the contract.
    pub cpu: Vec<(Role, Nanos)>,
    pub record: WindowRecord,
    /// The length of the window, on the client's clock.
    pub window: Nanos,
    /// The role that had a brake, and the brake's CPU time in the window.
    pub brake: Option<(Role, Nanos)>,
    /// The share of this machine's CPU time that processes of others used meanwhile, by their own clocks;
    /// `None` where they are not seen.
    pub others: Option<f64>,
    /// The client's peak memory; `None` if the lab cannot measure it.
    pub peak_memory: Option<Bytes>,
    pub flags: Vec<LabFlag>,
}

/// The reason why a trial did not complete.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LabError {
    /// A system, or its setup, failed. `log` contains the last lines of its output.
    #[error("{reason}")]
    System { reason: String, log: String },
    /// The program does not support this (exit status 127 of the contract), or the machine lacks something.
    #[error("{0}")]
    Unsupported(String),
    /// Interrupted by the user.
    #[error("interrupted")]
    Interrupted,
    /// The lab has ended or could not be raised; no further trial is possible.
    #[error("{0}")]
    Lost(String),
}

impl LabError {
    pub fn system(reason: impl Into<String>) -> Self {
        Self::System { reason: reason.into(), log: String::new() }
    }
}
