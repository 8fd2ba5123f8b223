//! The comparison of two builds, as part of the plan of a run.

use crate::{PlannedLoad, Subject};
use linerate_contract::Role;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Subjects that are compared until there is a verdict: `linerate compare` and `linerate gate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedComparison {
    pub kind: ComparisonKind,
    /// The baseline first.
    pub subjects: Vec<Subject>,
    /// The system or variant that has two builds; `None`: of each cell the relay, else the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The relative difference that matters.
    pub margin: f64,
    /// The margin of latencies.
    #[serde(default)]
    pub latency_margin: LatencyMargin,
    /// The highest percentile of open loops that has to be decided.
    #[serde(default, skip_serializing_if = "DecidingPercentile::is_default")]
    pub percentile: DecidingPercentile,
    /// The load of open loops; `None`: closed loops, and the cells' own rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<PlannedRate>,
    /// Where the revisions of arms with `git=` come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlannedSource>,
    /// The load on the user's own servers; builds of a system have the cells of suites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<PlannedLoad>,
    /// About programs and commands that the user gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Text that subjects wrote on stderr when they were started first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<WrittenBySubject>,
}

impl PlannedComparison {
    /// The comparison as the user asked for it: without what a run has learned since.
    #[must_use]
    pub fn as_asked(&self) -> Self {
        Self {
            subjects: self.subjects.iter().map(Subject::as_asked).collect(),
            remarks: Vec::new(),
            written: Vec::new(),
            ..self.clone()
        }
    }

    /// The baseline, and all that is compared with it.
    pub fn arms(&self) -> [PlannedArm; 2] {
        let together = |subjects: &[Subject]| match subjects {
            [one] => one.arm(),
            several => {
                let names: Vec<&str> = several.iter().map(Subject::name).collect();
                PlannedArm { arm: names.join(", "), resolved: None }
            }
        };
        let (base, heads) = self.subjects.split_at(self.subjects.len().min(1));
        [together(base), together(heads)]
    }

    /// The role of the subjects in all cells; builds of a system have that of their system in each cell.
    pub fn role(&self) -> Option<Role> {
        self.subjects.first()?.role()
    }

    /// The user's own servers with their load.
    pub fn servers(&self) -> Option<(&[Subject], &PlannedLoad)> {
        Some((&self.subjects[..], self.load.as_ref()?)).filter(|(subjects, _)| !subjects.is_empty())
    }
}

/// The first lines that a subject wrote on stderr, until it was ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBySubject {
    /// The name of a command, or a variant with its build.
    pub subject: String,
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ComparisonKind {
    Compare,
    /// With an exit status, and a second series for each suspect.
    Gate,
}

/// The difference of latencies that matters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LatencyMargin {
    /// A share of the baseline's latency.
    Share(f64),
    Microseconds(f64),
}

impl Default for LatencyMargin {
    /// With 1 % most equal builds stay open: in an experiment (docs/evidence/latency.md) a minute of machine
    /// time left half-widths of 0.7 % at p50 and 1.7 % at p90.
    fn default() -> Self {
        Self::Share(0.05)
    }
}

/// A comparison of open loops is open while p50 is, or p50 or p90 (docs/decisions/latency.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DecidingPercentile {
    #[default]
    P50,
    P90,
}

impl DecidingPercentile {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Operations per second of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlannedRate {
    PerSecond(u64),
    /// A share of the baseline's rate in a closed loop with the same connections.
    Share(f64),
}

impl PlannedRate {
    /// Operations per second; `None` for a share of what is not measured yet.
    pub fn per_second(self, capacity: Option<f64>) -> Option<u64> {
        match self {
            Self::PerSecond(rate) => Some(rate),
            Self::Share(share) => capacity.map(|capacity| (capacity * share).round().max(1.0) as u64),
        }
    }
}

/// The builds of the two arms of a comparison.
pub const BASE: &str = "base";
pub const HEAD: &str = "head";

/// One of the two arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PlannedArm {
    /// As on the command line.
    pub arm: String,
    /// The identity of the arm at the time of the run: the commit of a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
}

/// A repository that both arms are built from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedSource {
    pub checkout: String,
    /// A shell command, run in a worktree of the revision.
    pub build: String,
    /// The program's path in the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}
