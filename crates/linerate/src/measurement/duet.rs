//! A line of `journal.jsonl`: two cells measured at the same time on the same CPUs.

use super::{Outcome, Stage, Trial};
use linerate_contract::{Bytes, Errors, Nanos, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(clippy::large_enum_variant, reason = "nearly all entries are trials")]
pub enum Entry {
    Trial(Trial),
    Duet(Duet),
}

/// One unit of a comparison: a fresh pair of topologies that run at the same time (Bulej et al., "Duet
/// Benchmarking", ICPE 2020).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Duet {
    pub suite: String,
    /// Ids of the cells: the subject and its baseline. Equal for an A/A control.
    pub cells: [String; 2],
    /// 1-based, by pair of cells.
    pub unit: u32,
    /// Since the start of the run, when this duet began.
    pub at: Nanos,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Empty unless the outcome is `ok`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<DuetWindow>,
    /// Such as `sides-not-grouped`: the rates of this unit are biased by the number of processes and not
    /// used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Wall time by stage; only `measure` is measuring.
    pub stages: BTreeMap<Stage, Nanos>,
}

impl Duet {
    /// Wall time of all stages.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.stages.values().fold(Nanos::ZERO, |sum, time| sum + *time)
    }
}

/// The time in which both clients of a duet were at work, in the order of [`Duet::cells`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuetWindow {
    pub sides: [SideWindow; 2],
}

/// One side of a duet in one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SideWindow {
    /// First operation begun to last operation ended.
    pub elapsed: Nanos,
    /// Operations that succeeded.
    pub operations: u64,
    /// Payload bytes of those.
    pub bytes: Bytes,
    #[serde(default)]
    pub errors: Errors,
    /// CPU time (user and system) of each role's processes.
    pub cpu: BTreeMap<Role, Nanos>,
}

/// The flag of a duet whose sides share CPUs by process and not by side: its rates are not used.
pub const SIDES_NOT_GROUPED: &str = "sides-not-grouped";
