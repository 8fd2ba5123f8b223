//! The measurement that a user asks for, without the flags that say it.

use super::Why;
use crate::measurement::Place;
use crate::placement::RolePlace;
use crate::plan::Choice;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// A new run, or one to go on with.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// With a comparison of two builds, its rounds end by its own rule.
    pub choice: Choice,
    /// As text: the command line that makes the run again.
    pub command: String,
    pub seed: u64,
    /// After the first rounds, units are made of what is open, until this time is used.
    pub budget: Option<Duration>,
    pub hosts: HostRequest,
    /// The folder of a new run; `None`: named after its start.
    pub out: Option<PathBuf>,
    /// The folder of a run to go on with.
    pub resume: Option<PathBuf>,
    /// The user says nothing about builds and servers, so a run that goes on has those of its own plan, if
    /// these are linerate's.
    pub is_bare: bool,
    /// Missing packages of systems are installed first.
    pub install: bool,
    /// Without progress.
    pub quiet: bool,
    /// Whether profiles say where a difference comes from.
    pub why: Why,
}

/// Roles on machines of their own; none: all on this one, in a lab.
#[derive(Debug, Clone, Default)]
pub struct HostRequest {
    pub places: Vec<RolePlace>,
    /// Where servers run that linerate does not start, by name: `--host NAME=WHERE`.
    pub servers: Vec<(String, Place)>,
    /// Addresses, CPUs and ssh options of the machines.
    pub file: Option<PathBuf>,
    /// The path is the real network.
    pub network: bool,
}

/// A seed for a run whose user gives none.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 & u64::from(u32::MAX)
}
