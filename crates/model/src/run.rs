//! `run.json`: the plan of a run and the machine it ran on.

use crate::axes::Axes;
use crate::parameters::Parameters;
use crate::path::NetworkPath;
use crate::{
    Learned, Metric, Outcome, Place, PlannedComparison, PlannedLoad, Published, Sharing, Subject, pair_id,
};
use linerate_contract::{Layer, Nanos, Role, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The plan of a run and the machine it ran on. Written before the first trial; the versions of a suite's
/// systems are added before the suite's first trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// `linerate.run/2`.
    pub schema: String,
    /// Names the run: its start and the start of its seed in hex.
    pub id: String,
    /// The exact command that makes this run again.
    pub command: String,
    pub seed: u64,
    /// The largest number of measured rounds of a suite; the journal contains the rounds that were made.
    pub rounds: u32,
    pub quick: bool,
    /// Only the tables that repeat a document's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub published: bool,
    /// Chosen among all tables and rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_rows: bool,
    /// Rounds are added where a verdict is open, until this time is used; `None`: a fixed number of
    /// rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// Set where a verdict on its subjects ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<PlannedComparison>,
    /// The facts about the servers of the comparison.
    #[serde(default, skip_serializing_if = "Learned::is_empty")]
    pub learned: Learned,
    /// RFC 3339, UTC.
    pub started: String,
    /// The version of linerate that planned it.
    pub linerate: String,
    /// The machine on which linerate ran.
    pub host: Host,
    /// The machines of the roles, where they are on several; empty: all on `host`, in a lab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<PlannedHost>,
    pub suites: Vec<PlannedSuite>,
}

/// The rule that ends the measurements of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy<'a> {
    /// A fixed number of rounds, or intervals that are as narrow as the suites ask for.
    Tables,
    /// A verdict on each pair of subjects.
    Verdict(&'a PlannedComparison),
}

impl Run {
    pub fn policy(&self) -> Policy<'_> {
        self.comparison.as_ref().map_or(Policy::Tables, Policy::Verdict)
    }

    /// The user's own servers with their load.
    pub fn servers(&self) -> Option<(&[Subject], &PlannedLoad)> {
        self.policy().verdict()?.servers()
    }
}

impl<'a> Policy<'a> {
    /// The comparison that is decided.
    pub fn verdict(self) -> Option<&'a PlannedComparison> {
        match self {
            Self::Tables => None,
            Self::Verdict(comparison) => Some(comparison),
        }
    }

    /// Units are looked at one after the other, and a pair may be decided after each.
    pub fn is_sequential(self) -> bool {
        self.verdict().is_some()
    }
}

/// A machine that plays roles, in a run over several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedHost {
    /// `local`, `ssh:NAME`, or the URL of a server that runs there already.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: Place,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub roles: Vec<Role>,
    /// Where the other roles reach it; absent until the run has begun, if it was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// The CPUs that roles may use; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The destination for ssh(1); absent: the name of the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Further options of ssh(1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_options: Vec<String>,
    /// linerate on that machine, where it is not copied there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub host: Host,
}

impl PlannedHost {
    /// The host as the user asked for it, and how it is reached: without what a run has learned, its address
    /// and its CPUs.
    #[must_use]
    pub fn as_asked(&self) -> Self {
        let Self { place, roles, destination, ssh_options, agent, .. } = self.clone();
        Self { place, roles, destination, ssh_options, agent, ..Self::default() }
    }

    /// The destination for ssh(1); `None` for this machine.
    pub fn ssh_destination(&self) -> Option<&str> {
        let Place::Ssh(name) = &self.place else { return None };
        Some(self.destination.as_deref().unwrap_or(name))
    }
}

pub const RUN_SCHEMA: &str = "linerate.run/2";

/// The machine, as far as it bears on the numbers. Open-ended: a fact is a name and a value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// The machine's name in reports of several hosts; a scripted lab may have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub kernel: String,
    pub cpu_model: String,
    /// CPUs that the run may use.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// `root`, or `user namespace`.
    pub privileges: String,
    /// Everything else: mitigations, governor, congestion control, socket buffers, MTU, offloads,
    /// virtualisation.
    pub facts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSuite {
    pub name: String,
    pub question: String,
    /// Measured rounds.
    pub rounds: u32,
    pub warmup_rounds: u32,
    /// Solo trials of a cell that is measured in duet; `None`: one in each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solos: Option<u32>,
    /// Units of each pair in a round; `None`: by the form of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// After the rounds, units are added to pairs whose intervals are wider; `None`: the rounds alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    pub tables: Vec<PlannedTable>,
    /// The document whose tables it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    pub cells: Vec<PlannedCell>,
    /// Pairs of cells whose ratios the tables show; empty where the run has no duets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PlannedPair>,
    /// With `--probe`: the roles from which CPU time is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<PlannedProbe>,
}

/// The width of the intervals that a suite asks for, and the most time that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half the width of a ratio's 95 % interval, as a share of the ratio.
    pub half_width: f64,
    /// Time of all trials and units of the suite together.
    pub time: Nanos,
}

/// A role of a cell whose share in the result is probed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedProbe {
    pub cell: String,
    pub role: Role,
    /// Why it cannot be probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_probe: Option<String>,
}

/// Two cells that a table compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedPair {
    /// Ids: the subject and its baseline. Equal for an A/A control.
    pub cells: [String; 2],
    /// Why the pair is not measured in duet, but compared by its solo trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_duet: Option<String>,
}

impl PlannedSuite {
    /// The index of the cell with this id.
    pub fn place(&self, id: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.id == id)
    }

    /// The indices of a pair's cells; `None` where one was left out.
    pub fn places(&self, pair: &PlannedPair) -> Option<[usize; 2]> {
        Some([self.place(&pair.cells[0])?, self.place(&pair.cells[1])?])
    }
}

impl PlannedPair {
    pub fn id(&self) -> String {
        pair_id([&self.cells[0], &self.cells[1]])
    }
}

/// How a table of the report is laid out, and what its cells are compared with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedTable {
    pub name: String,
    pub title: String,
    pub metric: Metric,
    /// Further metrics of the same cells, each with rows of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Metric>,
    /// The axis whose values are the rows, and the one whose values are the columns.
    pub rows: String,
    pub columns: String,
    /// Rows and columns in the order of the suite.
    pub row_values: Vec<String>,
    pub column_values: Vec<String>,
    /// Ids of the cells, in the order of the suite. A cell can be in several tables; it runs once.
    pub cells: Vec<String>,
    /// Compare each cell with the one that differs from it by these axes alone.
    pub baseline: Axes,
    /// Values of the compared axes that nobody chooses between: a baseline with nothing in place of the
    /// others, such as a tunnel, and references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_choice: Vec<String>,
    /// The known true values, in place of a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
    /// The cell whose work is a strict subset of that of every row.
    pub limit: Option<Axes>,
    /// The cell of another honest mark, which rows may exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Axes>,
    /// The cells that scaling factors are of, such as those with one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Axes>,
    /// One system against the best of others, row by row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_of: Option<BestOf>,
    /// Sentences under the table.
    pub notes: Vec<String>,
}

/// The right values, by metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The share of the truth by which a right value may differ from it.
    pub tolerance: f64,
    pub values: BTreeMap<Metric, Nanos>,
}

/// The subject, a value of the axis, is compared with the best of the competitors by each metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestOf {
    pub axis: String,
    pub subject: String,
    pub competitors: Vec<String>,
    pub metrics: Vec<Metric>,
}

impl PlannedTable {
    /// The first is what its cells are compared by elsewhere.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.also.iter().copied())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Such as `nginx/haproxy-http`.
    pub id: String,
    pub axes: Axes,
    pub layer: Layer,
    pub workload: Workload,
    pub path: NetworkPath,
    pub parameters: Parameters,
    /// Parameters in place of these while the systems are verified, and while they are warmed up (empty: not
    /// at all).
    #[serde(default = "default_verify")]
    pub verify: Parameters,
    #[serde(default = "default_warmup")]
    pub warmup: Parameters,
    /// How long the systems are loaded before they are measured, in place of `warmup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_for: Option<Nanos>,
    /// Parameters of the workload that are not numbers, such as `direction`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The client is the system's own, and what bounds it bounds the system: it is no load generator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_client: bool,
    /// How its duets share the CPUs. Absent: the warm-up units of a comparison decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Sharing>,
    /// Operations per second in a closed loop, its own (`load`) or its baseline's, where the rate is a share
    /// of it. Before that is measured, the rate is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// The work of the cell is a part of that of other rows: no competitor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_limit: bool,
    pub systems: Vec<PlannedSystem>,
    /// Set where the cell cannot run: nothing is tried, and this is its outcome.
    pub absent: Option<Outcome>,
}

impl PlannedCell {
    /// The plan as the suite and the manifests define it, without what was found on the machine: versions,
    /// and systems that are missing.
    pub fn definition(&self) -> Self {
        let mut cell = Self { absent: None, ..self.clone() };
        cell.systems.iter_mut().for_each(|system| system.version = None);
        if cell.capacity.take().is_some() {
            cell.parameters.rate = Some(0);
        }
        cell
    }

    /// The duets of the cell are open loops that alternate: they have latencies in place of a rate.
    pub fn is_paced_in_turns(&self) -> bool {
        self.parameters.rate.is_some() && self.pairs == Some(Sharing::Alternating)
    }
}

/// Checked byte for byte, one after the other, before anything is timed.
pub fn default_verify() -> Parameters {
    Parameters { operations: Some(10), connections: Some(1), ..Parameters::default() }
}

/// Run at full concurrency after that, so that caches, pools and child processes are there.
pub fn default_warmup() -> Parameters {
    Parameters { operations: Some(200), ..Parameters::default() }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedSystem {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub role: Role,
    /// The variant's name, such as `haproxy-http`.
    pub name: String,
    /// Which build of the variant: `default`, or an arm of a comparison.
    #[serde(default = "default_build")]
    pub build: String,
    /// Probed from the program; `None` where there is no program (an empty path) or it is missing.
    pub version: Option<String>,
    /// Values in place of those that its manifest has for templates, of an arm with `set:`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The system's CPU is busy whatever there is to do, by its manifest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spins: bool,
    /// The description of one of linerate's own systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
}

/// The build of a variant that no comparison names.
pub const DEFAULT_BUILD: &str = "default";

/// The axis of the columns of a table that compares builds.
pub const BUILD_AXIS: &str = "build";

fn default_build() -> String {
    DEFAULT_BUILD.to_owned()
}
