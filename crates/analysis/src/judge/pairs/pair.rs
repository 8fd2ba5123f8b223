//! Two subjects under one load: what was found, the verdict on all of it, and why there is none.

use super::finding::{Confirmation, Finding, Findings, Measure};
use super::second::SecondLoad;
use crate::judge::{Alone, Comparison, DuetReport, OutcomeWord, SoloRatio, rounded_unit};
use crate::stats::verdict::Verdict;
use linerate_contract::Role;
use linerate_model::{Metric, Outcome, Sharing, Stage};
use serde::Serialize;

/// The two builds in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPair {
    /// The index of its suite.
    pub suite: usize,
    /// The indices of the two cells: head and base.
    pub places: [usize; 2],
    pub metric: Metric,
    /// Rate of head by that of base in each unit of which both sides succeeded, and the number of all units.
    pub ratios: Vec<f64>,
    pub tried: u32,
    /// Time of its units.
    pub seconds: f64,
    /// The CPU time is that of the subject, or of all roles where the kernel does its work.
    pub findings: Findings,
    /// The roles whose CPU time it is; empty: all.
    pub cpu_of: Vec<Role>,
    /// The CPU time of head and base in their trials alone, in microseconds per operation or megabyte.
    pub cpu_alone: [Option<Alone>; 2],
    /// The ratio of one or two trials alone; more are compared like those of any cell.
    pub alone: Option<SoloRatio>,
    /// A role used a CPU all the time in the trials alone: the CPU time is the first finding.
    pub is_cpu_first: bool,
    /// The client used a CPU all the time, so that equal rates show nothing about the subject.
    pub client_is_limit: bool,
    /// The CPU time decides, and the rate hints at no slowdown that matters.
    pub is_by_cpu: bool,
    /// Open loops, whose latencies are asked for. CPU time at a fixed rate contains wake-ups, and has three
    /// times the spread: it counts where it is certain to be more.
    pub is_paced: bool,
    /// The load of an open loop, and what the units did of it.
    pub load: Option<OfferedLoad>,
    /// The second load of the same launches: shown, and no part of the verdict.
    pub second_load: Option<SecondLoad>,
    /// Why the findings have no say.
    pub obstacle: Option<Obstacle>,
}

/// Why a pair has no verdict by its findings.
#[derive(Debug, Clone, PartialEq)]
pub enum Obstacle {
    /// The head (side 0) or the base (1) is not `ok` in its trials alone.
    Lost { side: usize, outcome: OutcomeWord },
    /// More than a tenth of the units: what fails is not left out of a comparison.
    Units { failed: u32, last: Option<FailedUnit> },
    /// The control differs from itself.
    Control,
}

/// The last unit that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedUnit {
    pub outcome: Outcome,
    pub sharing: Sharing,
}

impl FailedUnit {
    /// Whether a side may have failed because it was stopped by turns: trials without pauses went well.
    pub fn was_paused(&self) -> bool {
        let is_measured = matches!(self.outcome, Outcome::Failed { stage: Stage::Measure, .. });
        is_measured && self.sharing == Sharing::Turns
    }
}

/// The load of an open loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfferedLoad {
    pub per_second: u64,
    /// The part of the capacity that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Operations per second of the baseline in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<f64>,
    /// The part of the capacity of base and of head that it is; absent where no closed loop measured both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_capacities: Option<[f64; 2]>,
    /// Operations per second of base and head in all units together.
    pub done: [f64; 2],
    /// Whether they are as many as were due.
    pub keeps_up: [bool; 2],
}

impl JudgedPair {
    /// Units of which both sides succeeded.
    pub fn units(&self) -> u32 {
        self.ratios.len() as u32
    }

    /// The rate, or the latencies that decide.
    fn main(&self) -> impl Iterator<Item = &Finding> {
        self.findings.0.iter().filter(|found| found.decides)
    }

    /// The pair has a rate, or a latency.
    fn is_read(&self) -> bool {
        self.main().next().is_some()
    }

    /// The comparison that tables show, in place of the `fixed` comparison, whose interval is that of a
    /// number of units that is fixed beforehand. `None` without a unit.
    pub(crate) fn in_table(&self, fixed: Comparison) -> Option<Comparison> {
        let main = self.main().next()?;
        let interval = main.ci95.map(|ends| main.of_performance(ends));
        // A ratio of latencies is none of a table of rates.
        let is_by_metric = !self.is_paced || self.metric.is_latency();
        let ratio = main.performance();
        let denies = |alone: &SoloRatio| interval.is_some_and(|ci95| alone.denies(ratio, ci95));
        let cpu = self.findings.by(Measure::Cpu);
        let duet = DuetReport {
            doubted_by: fixed.denied_by().or(self.alone).filter(denies),
            cpu_of: self.cpu_of.clone(),
            with_cpu_us: self.cpu_alone[1].map(|alone| alone.value).filter(|_| cpu.is_some()),
            cpu_ratio: cpu.map(|cpu| cpu.ratio),
            cpu_ci95: cpu.and_then(|cpu| cpu.ci95),
            cpu_verdict: cpu.map(|cpu| cpu.verdict),
            cpu_first: self.is_cpu_first,
            sharing: fixed.duet.and_then(|duet| duet.sharing),
            ..DuetReport::default()
        };
        Some(Comparison {
            with: fixed.with,
            with_value: fixed.with_value.filter(|_| is_by_metric),
            ratio,
            ci95: main.of_performance(main.ends()),
            ci95_is_range: interval.is_none(),
            ci90: None,
            difference: main.difference,
            p: None,
            q: None,
            smallest_detectable: None,
            n: self.units(),
            units: self.ratios.iter().copied().map(rounded_unit).collect(),
            verdict: self.lost().unwrap_or(main.verdict),
            autocorrelation: fixed.autocorrelation,
            client_is_limit: self.client_is_limit && main.verdict == Verdict::CannotTell,
            duet: Some(duet),
        })
    }

    /// Further units would not change its verdict.
    pub fn is_decided(&self) -> bool {
        // Where latencies were asked for, more CPU time alone is no answer.
        let cpu = self.findings.by(Measure::Cpu);
        let deciding = || self.main().chain(cpu.filter(|_| !self.is_paced));
        let is_slower = deciding().any(|found| found.verdict == Verdict::Slower);
        let is_done = match cpu.filter(|_| self.is_by_cpu) {
            Some(cpu) => cpu.is_decided,
            None => deciding().all(|found| found.is_decided),
        };
        let is_faster = self.main_verdict() == Some(Verdict::Faster);
        self.is_read() && (is_slower || (is_done || is_faster) && !self.is_suspect())
    }

    /// The verdict on the rate, or on the latencies together.
    pub fn main_verdict(&self) -> Option<Verdict> {
        let is_slower = self.findings.latencies().any(|latency| latency.verdict == Verdict::Slower);
        let main = self.main().map(|found| found.verdict).reduce(Verdict::worse);
        if is_slower { Some(Verdict::Slower) } else { main }
    }

    /// A slowdown waits for its second series.
    pub fn is_suspect(&self) -> bool {
        self.has_second_series(Confirmation::Pending)
    }

    /// Whether a finding has a second series that ended so.
    pub fn has_second_series(&self, end: Confirmation) -> bool {
        self.findings.0.iter().any(|found| found.second_series == Some(end))
    }

    /// The verdict on the cell as a whole.
    pub fn verdict(&self) -> Verdict {
        match &self.obstacle {
            Some(Obstacle::Control) => Verdict::CannotTell,
            _ => self.lost().unwrap_or_else(|| self.found()),
        }
    }

    /// The verdict where a cell or too many units failed.
    fn lost(&self) -> Option<Verdict> {
        match self.obstacle.as_ref()? {
            Obstacle::Lost { outcome: OutcomeWord::Missing | OutcomeWord::Unsupported, .. } => {
                Some(Verdict::Missing)
            }
            Obstacle::Lost { .. } | Obstacle::Units { .. } => Some(Verdict::Failed),
            Obstacle::Control => None,
        }
    }

    /// The verdict by all findings: slower where either is, and open where either is. A rate that is open
    /// leaves nothing open where the CPU time decides.
    fn found(&self) -> Verdict {
        let cpu = self.findings.by(Measure::Cpu).map(|cpu| cpu.verdict);
        match (self.main_verdict(), cpu.filter(|cpu| !self.is_paced || *cpu == Verdict::Slower)) {
            (None, _) => Verdict::CannotTell,
            (Some(main), None) => main,
            // A faster system may use more CPU time for it, or as much.
            (Some(Verdict::Faster), _) => Verdict::Faster,
            (Some(Verdict::CannotTell), Some(cpu)) if self.is_by_cpu && !self.is_suspect() => cpu,
            (Some(main), Some(cpu)) if self.is_by_cpu => cpu.worse(main),
            (Some(main), Some(cpu)) => main.worse(cpu),
        }
    }
}
