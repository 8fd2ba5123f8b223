//! A unit: cells of a suite measured once, one by itself or two at the same time on the same CPUs.

use crate::{Histogram, Measurement, Outcome, PlannedSuite, Stage};
use linerate_contract::{Bytes, Errors, Nanos, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The cells of a unit, by their indices in [`PlannedSuite::cells`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sides {
    /// A cell by itself.
    One(usize),
    /// A cell and its baseline at the same time. Equal for an A/A control.
    Two([usize; 2]),
    /// Two cells under the second load of a comparison, on the same launch.
    AtRate([usize; 2]),
    /// A cell beside itself; CPU time is taken from this role of one side.
    Probed(usize, Role),
}

impl Sides {
    /// The cell, or the first of two.
    pub fn cell(self) -> usize {
        match self {
            Self::One(cell) | Self::Two([cell, _]) | Self::AtRate([cell, _]) | Self::Probed(cell, _) => cell,
        }
    }

    /// The cell at the same time; `None` of a cell by itself.
    pub fn beside(self) -> Option<usize> {
        match self {
            Self::One(_) => None,
            Self::Two([_, other]) | Self::AtRate([_, other]) => Some(other),
            Self::Probed(cell, _) => Some(cell),
        }
    }

    pub fn is_one(self) -> bool {
        matches!(self, Self::One(_))
    }

    /// A cell compared with itself.
    pub fn is_control(self) -> bool {
        matches!(self, Self::Two([cell, other]) if cell == other)
    }

    /// The role from which CPU time is taken.
    pub fn probed(self) -> Option<Role> {
        match self {
            Self::Probed(_, role) => Some(role),
            Self::One(_) | Self::Two(_) | Self::AtRate(_) => None,
        }
    }

    /// The name in the journal's messages and in plans: the ids of the cells.
    pub fn id(self, suite: &PlannedSuite) -> String {
        let id = |cell: usize| suite.cells[cell].id.as_str();
        match self {
            Self::One(cell) => id(cell).to_owned(),
            Self::Two([cell, other]) => pair_id([id(cell), id(other)]),
            Self::AtRate([cell, other]) => pair_id([id(cell), id(other)]) + AT_RATE,
            Self::Probed(cell, role) => probe_id(id(cell), role),
        }
    }
}

/// One unit: fresh processes in fresh namespaces, measured once. Of two cells it is a duet (Bulej et al.,
/// "Duet Benchmarking", ICPE 2020).
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The index in [`crate::Run::suites`].
    pub suite: usize,
    pub sides: Sides,
    /// 1-based: of a cell the round, of a pair or probe the number of its unit. Warm-up units count from 1 on
    /// their own.
    pub number: u32,
    /// A warm-up unit is not in the numbers; the CPU times of a pair's decide about [`Sharing`].
    pub warmup: bool,
    /// Since the start of the run, when this unit began.
    pub at: Nanos,
    pub outcome: Outcome,
    pub found: Found,
    /// Wall time by stage; only `measure` is measuring.
    pub stages: BTreeMap<Stage, Nanos>,
}

/// The numbers of a unit.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "most units have a measurement, and few are in memory")]
pub enum Found {
    /// A cell by itself; `None` where it failed.
    Alone(Option<Measurement>),
    /// Two cells at the same time.
    Together(Together),
}

impl From<Measurement> for Found {
    fn from(measurement: Measurement) -> Self {
        Self::Alone(Some(measurement))
    }
}

impl From<Together> for Found {
    fn from(together: Together) -> Self {
        Self::Together(together)
    }
}

/// The numbers of two cells at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    pub sharing: Sharing,
    /// The second load of a comparison, of which the cells know nothing.
    pub second_load: Option<SecondLoadRate>,
    /// Set where CPU time was taken from a role of one side.
    pub probe: Option<Probe>,
    /// In the order of the unit's cells. `None` unless the outcome is `ok`.
    pub sides: Option<[SideWindow; 2]>,
    /// The windows of this launch, one after the other, where it has several; `sides` has their sums.
    pub windows: Vec<[SideWindow; 2]>,
    /// The share of the CPUs' time in the window that processes of neither side used.
    pub strangers: Option<f64>,
    /// The share of the CPUs' time in the window that the hypervisor gave to other guests.
    pub stolen: Option<f64>,
}

/// The open loop of a second load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SecondLoadRate {
    pub per_second: u64,
    /// The part of the baseline's capacity, and the capacity; absent where the other side could not do that
    /// much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_capacity: Option<[f64; 2]>,
}

impl Together {
    /// Two cells that have no numbers yet.
    pub fn new(sharing: Sharing) -> Self {
        Self {
            sharing,
            second_load: None,
            probe: None,
            sides: None,
            windows: Vec::new(),
            strangers: None,
            stolen: None,
        }
    }
}

impl Unit {
    /// The first unit of these cells of the first suite, which went well.
    pub fn new(sides: Sides, found: Found) -> Self {
        let (outcome, stages) = (Outcome::Ok, BTreeMap::new());
        Self { suite: 0, sides, number: 1, warmup: false, at: Nanos::ZERO, outcome, found, stages }
    }

    /// The measurement of a cell by itself.
    pub fn measurement(&self) -> Option<&Measurement> {
        match &self.found {
            Found::Alone(measurement) => measurement.as_ref(),
            Found::Together(_) => None,
        }
    }

    /// The measurements of two cells at the same time.
    pub fn together(&self) -> Option<&Together> {
        match &self.found {
            Found::Alone(_) => None,
            Found::Together(together) => Some(together),
        }
    }

    /// The windows of two cells at the same time.
    pub fn both(&self) -> Option<&[SideWindow; 2]> {
        self.together()?.sides.as_ref()
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
        self.latency = both(self.latency, next.latency.as_ref());
        for (request, next) in self.requests.iter_mut().zip(&next.requests) {
            request.operations += next.operations;
            request.errors.merge(&next.errors);
            request.latency = both(request.latency.take(), next.latency.as_ref());
        }
        self
    }

    /// One of several requests, as the window of a side that sends no other; `None` where it was not counted.
    pub fn of_request(&self, index: usize) -> Option<Self> {
        let RequestWindow { operations, errors, latency } = self.requests.get(index)?.clone();
        Some(Self { elapsed: self.elapsed, operations, errors, latency, ..Self::default() })
    }

    /// Successful operations within and outside of `elapsed`, in those within it; 1 if there are no others.
    pub fn all_over_counted(&self) -> f64 {
        (self.operations + self.uncounted) as f64 / self.operations as f64
    }
}

/// The latencies of two windows, where both have some.
fn both(latency: Option<Histogram>, next: Option<&Histogram>) -> Option<Histogram> {
    latency.zip(next).map(|(latency, next)| latency.with(next))
}

/// The end of the id of a pair under its second load.
pub const AT_RATE: &str = " at a rate";

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

/// How two sides share the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Both run all the time, and the scheduler gives either side half of each CPU.
    Together,
    /// The sides run by turns of some milliseconds: either has all CPUs, or none.
    Turns,
    /// Both run all the time, and their clients send requests by turns: what is idle needs no CPU.
    Alternating,
}

/// An event that the kernel counts of processes and of their network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Count {
    /// TCP segments sent in the namespace, by server and client.
    Segments,
    Retransmissions,
    DelayedAcks,
    /// UDP datagrams sent in the namespace.
    Datagrams,
    /// Bytes of IP packets sent in the namespace, by server and client.
    Bytes,
    /// A thread of the server waited.
    VoluntarySwitches,
    /// A thread of the server had to leave its CPU to another.
    InvoluntarySwitches,
    MinorFaults,
    MajorFaults,
}

/// One of two sides in the window of a unit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SideWindow {
    /// The window; without the other side's turns, and without the guards of alternating loads.
    pub elapsed: Nanos,
    /// Operations that succeeded.
    pub operations: u64,
    /// Payload bytes of those.
    pub bytes: Bytes,
    /// Operations that succeeded outside of `elapsed`; their CPU time is in `cpu`.
    #[serde(default, skip_serializing_if = "crate::measurement::is_zero")]
    pub uncounted: u64,
    #[serde(default)]
    pub errors: Errors,
    /// Latencies of an open loop: from the times at which operations were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
    /// HTTP: each of several requests by itself, in the order of the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestWindow>,
    /// CPU time (user and system) of each role's processes.
    pub cpu: BTreeMap<Role, Nanos>,
    /// The kernel's counts of the servers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<Count, u64>,
    /// CPU time that the brake used in place of the probed role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brake: Option<Nanos>,
    /// How the server was started, in the first window of a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_start: Option<ColdStart>,
}

/// The operations of one of several requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestWindow {
    /// Operations that succeeded.
    pub operations: u64,
    #[serde(default)]
    pub errors: Errors,
    /// Latencies of an open loop, as [`SideWindow::latency`] has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
}

/// The start of a server of the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdStart {
    /// From the start of its process until it listens.
    pub listens: Nanos,
    /// From there until the end of its first expected response.
    pub responds: Nanos,
    /// Starts before that failed, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Counts, ErrorKind};

    /// A window in which one of two requests failed once.
    fn window(micros: u64) -> SideWindow {
        let pairs = vec![(micros * 1_000, 10)];
        let latency = Some(Counts { pairs, min: micros * 1_000, max: micros * 1_000 }.into());
        let good = RequestWindow { operations: 10, latency, ..RequestWindow::default() };
        let errors = Errors([(ErrorKind::Reset, 1)].into());
        let failing = RequestWindow { operations: 3, errors, latency: None };
        SideWindow { elapsed: Nanos(5), requests: vec![good, failing], ..SideWindow::default() }
    }

    #[test]
    fn windows_of_a_launch_add_up_request_by_request() {
        let both = window(100).followed_by(&window(300));
        let [good, failing] = [0, 1].map(|index| both.of_request(index).unwrap());
        assert_eq!((good.operations, good.elapsed, good.errors.total()), (20, Nanos(10), 0));
        assert_eq!(good.latency.and_then(|latency| latency.total()), Some(20));
        assert_eq!((failing.operations, failing.errors.total(), failing.latency), (6, 2, None));
        assert_eq!(both.of_request(2), None);
    }

    #[test]
    fn a_window_of_a_journal_before_requests_had_rows_has_none() {
        let json = serde_json::to_value(SideWindow::default()).unwrap();
        assert!(json.get("requests").is_none(), "{json}");
        assert_eq!(serde_json::from_value::<SideWindow>(json).unwrap().of_request(0), None);
    }
}
