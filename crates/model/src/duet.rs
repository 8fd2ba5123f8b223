//! A line of `journal.jsonl`: two cells measured at the same time on the same CPUs.

use crate::{Histogram, Outcome, Stage};
use linerate_contract::{Bytes, Errors, Nanos, Role};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One unit of a comparison: a fresh pair of topologies that run at the same time (Bulej et al., "Duet
/// Benchmarking", ICPE 2020).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Duet {
    pub suite: String,
    /// Ids of the cells: the subject and its baseline. Equal for an A/A control.
    pub cells: [String; 2],
    /// 1-based, by pair of cells; warm-up units count from 1 on their own.
    pub unit: u32,
    /// A warm-up unit is not in the numbers; its CPU times decide about [`Sharing`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    pub sharing: Sharing,
    /// Set in a duet of a cell with itself in which CPU time was taken from a role of one side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// Since the start of the run, when this duet began.
    pub at: Nanos,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// In the order of `cells`. `None` unless the outcome is `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<[SideWindow; 2]>,
    /// The windows of this launch, one after the other, where it has several; `sides` has their sums.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<[SideWindow; 2]>,
    /// The share of the CPUs' time in the window that processes of neither side used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strangers: Option<f64>,
    /// The share of the CPUs' time in the window that the hypervisor gave to other guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen: Option<f64>,
    /// Wall time by stage; only `measure` is measuring.
    pub stages: BTreeMap<Stage, Nanos>,
}

impl Duet {
    /// The id of its step in the plan.
    pub fn id(&self) -> String {
        match &self.probe {
            None => pair_id([&self.cells[0], &self.cells[1]]),
            Some(probe) => probe_id(&self.cells[0], probe.role),
        }
    }

    /// Wall time until its systems are ready.
    pub fn preparation(&self) -> Nanos {
        self.time_of(Stage::Raise) + self.time_of(Stage::Start) + self.time_of(Stage::Verify)
    }

    /// Wall time of one stage; zero where the unit did not get there.
    pub fn time_of(&self, stage: Stage) -> Nanos {
        self.stages.get(&stage).copied().unwrap_or(Nanos::ZERO)
    }

    /// Wall time of all stages.
    pub fn time(&self) -> Nanos {
        self.stages.values().fold(Nanos::ZERO, |sum, time| sum + *time)
    }
}

impl SideWindow {
    /// Several windows of one launch, one after the other, as one.
    #[must_use]
    pub fn followed_by(mut self, next: &Self) -> Self {
        self.elapsed += next.elapsed;
        self.operations += next.operations;
        self.bytes.0 += next.bytes.0;
        self.uncounted += next.uncounted;
        next.errors.0.iter().for_each(|(kind, count)| self.errors.add(*kind, *count));
        next.counts.iter().for_each(|(count, number)| *self.counts.entry(*count).or_default() += number);
        next.cpu.iter().for_each(|(role, time)| *self.cpu.entry(*role).or_default() += *time);
        self
    }

    /// Successful operations within and outside of `elapsed`, in those within it; 1 if there are no others.
    pub fn all_over_counted(&self) -> f64 {
        (self.operations + self.uncounted) as f64 / self.operations as f64
    }
}

/// The id of a pair of cells.
pub fn pair_id(cells: [&str; 2]) -> String {
    cells.join(" | ")
}

/// The id of the probe of a cell's role.
pub fn probe_id(cell: &str, role: Role) -> String {
    format!("{cell} probe {role}")
}

/// CPU time taken from a role of one side; what was really taken is in [`SideWindow::brake`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    pub role: Role,
    /// The index of the side from which time was taken; drawn at random.
    pub side: usize,
    /// The planned share of the CPU time that the role would need.
    pub share: f64,
}

/// How the sides of a duet share the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Both run all the time, and the scheduler gives either side half of each CPU.
    Together,
    /// They run by turns of some milliseconds: either has all CPUs, or none.
    Turns,
    /// Both run all the time, and their clients send requests by turns: what is idle needs no CPU.
    Alternating,
}

/// What the kernel counts of processes and of their network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// TCP segments sent in the namespace, by server and client.
    Segments,
    Retransmissions,
    DelayedAcks,
    /// UDP datagrams sent in the namespace.
    Datagrams,
    /// A thread of the server waited.
    VoluntarySwitches,
    /// A thread of the server had to leave its CPU to another.
    InvoluntarySwitches,
    MinorFaults,
    MajorFaults,
}

/// One side of a duet in the window of a unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SideWindow {
    /// The window; without the other side's turns, and without the guards of alternating loads.
    pub elapsed: Nanos,
    /// Operations that succeeded.
    pub operations: u64,
    /// Payload bytes of those.
    pub bytes: Bytes,
    /// Operations that succeeded outside of `elapsed`; their CPU time is in `cpu`.
    #[serde(default, skip_serializing_if = "crate::trial::is_zero")]
    pub uncounted: u64,
    #[serde(default)]
    pub errors: Errors,
    /// Latencies of an open loop: from the times at which operations were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
    /// CPU time (user and system) of each role's processes.
    pub cpu: BTreeMap<Role, Nanos>,
    /// What the kernel counted of the servers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<Count, u64>,
    /// CPU time that the brake used in place of the probed role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brake: Option<Nanos>,
}
