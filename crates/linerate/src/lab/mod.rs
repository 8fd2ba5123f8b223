//! The lab: namespaces, links, packet-filter rules, processes, CPU pins.
//!
//! | module | holds |
//! |---|---|
//! | [`protocol`] | what linerate and its agent inside the namespaces say to each other |
//! | [`agent`] | the agent: pid 1 of the lab |
//! | [`namespaces`] | the real lab, from outside: drives the agent |
//! | [`scripted`] | the lab of the tests: answers from a file, no network |
//!
//! [`Lab`] is the seam between the two: everything above it runs the same on both.

pub mod agent;
pub mod namespaces;
pub mod protocol;
pub mod scripted;

use crate::measurement::{Host, Usage};
use crate::system::manifest::{Ready, StopSignal};
use linerate_contract::{Bytes, Nanos, Role};
use protocol::{CpuTimes, ExitStatus, File, HostName, NetworkPath};
use std::path::PathBuf;
use std::time::Duration;

/// Where the lab's files are, inside its own mount namespace.
pub const SCRATCH: &str = "/run/linerate";
/// What the web servers serve, relative to [`SCRATCH`].
pub const DOCROOT: &str = "docroot";

/// Where trials happen. A lab is raised once; a topology in it for each trial.
pub trait Lab {
    /// The machine, for the report.
    fn host(&self) -> Host;
    /// The CPUs that roles may be pinned to, by number.
    fn cpus(&self) -> Vec<u32>;
    /// Time since the start of the run.
    fn now(&self) -> Nanos;
    /// New namespaces for a trial; `files` are there for every role to read.
    ///
    /// # Errors
    /// [`LabError`]; so for every method here.
    fn raise(&mut self, label: &Label, path: NetworkPath, files: Vec<File>) -> Result<(), LabError>;
    /// Runs a server's or relay's setup, starts it and waits until it is ready.
    fn start(&mut self, launch: &Launch) -> Result<(), LabError>;
    /// Runs a client to its end.
    fn run(&mut self, launch: &Launch, purpose: Purpose, deadline: Duration) -> Result<ClientRun, LabError>;
    /// What the servers' processes hold, once connections that are ending have had a moment; `None` where nobody can tell.
    fn usage(&mut self) -> Result<Option<Usage>, LabError>;
    /// Ends all processes and forgets the topology.
    fn stop(&mut self) -> Result<(), LabError>;
}

/// Which trial this is: what the scripted lab looks its answers up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub suite: String,
    pub cell: String,
    pub round: u32,
    pub warmup: bool,
}

/// What a client runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Verify,
    Measure,
}

/// A process to be, with nothing left to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub role: Role,
    /// The variant's name.
    pub system: String,
    pub host: HostName,
    pub folder: PathBuf,
    pub files: Vec<File>,
    /// Program and arguments of commands that run to their end before.
    pub setup: Vec<CommandLine>,
    /// Absent where nothing is started: a relay that is all rules, or none.
    pub process: Option<CommandLine>,
    pub ready: Ready,
    pub stop: StopSignal,
    /// The port that it will listen on.
    pub port: u16,
    pub cpus: Vec<u32>,
    /// It joins two TUN devices, which it is given.
    pub tuns: bool,
}

/// A program and its arguments.
pub type CommandLine = (PathBuf, Vec<String>);

/// What a client left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRun {
    pub status: ExitStatus,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
    /// What servers printed meanwhile.
    pub server_stdout: Vec<String>,
    /// CPU time of each role's processes during the run; the client's from its start to its end.
    pub cpu: Vec<(Role, Nanos)>,
    /// CPU times of the machine before and after.
    pub before: CpuTimes,
    pub after: CpuTimes,
    /// The most memory that the client had; a lab may not know.
    pub peak_memory: Option<Bytes>,
    pub flags: Vec<String>,
}

/// Why a trial did not come to its end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LabError {
    /// A system, or the way it was set up, failed. `log` is the tail of what it said.
    #[error("{reason}")]
    System { reason: String, log: String },
    /// A program said that it does not do this (exit status 127 of the contract), or this machine lacks what it takes.
    #[error("{0}")]
    Unsupported(String),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The lab itself is gone or was refused; no trial can follow.
    #[error("{0}")]
    Lost(String),
}

impl LabError {
    pub fn system(reason: impl Into<String>) -> Self {
        Self::System { reason: reason.into(), log: String::new() }
    }
}
