//! What a user asks to be measured, without the flags that say it.

use crate::measurement::Place;
use crate::placement::RolePlace;
use crate::plan::Choice;
use std::path::PathBuf;
use std::time::Duration;

/// A new run, or one to go on with.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// With a comparison of two builds, its rounds end by its own rule.
    pub choice: Choice,
    /// `None`: drawn.
    pub seed: Option<u64>,
    /// After the first rounds, units are made of what is open, until this time is used.
    pub budget: Option<Duration>,
    pub hosts: HostRequest,
    /// The folder of a new run; `None`: named after its start.
    pub out: Option<PathBuf>,
    /// The folder of a run to go on with.
    pub resume: Option<PathBuf>,
    /// Missing packages of systems are installed first.
    pub install: bool,
    /// Without progress.
    pub quiet: bool,
    /// Both arms of a comparison may be the same build, to calibrate.
    pub allows_equal_arms: bool,
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
