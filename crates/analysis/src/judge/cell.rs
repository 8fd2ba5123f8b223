//! One cell: its trials, and whether they are a result.

use super::journal::Units;
use crate::stats::ByRound;
use crate::stats::bound::{Bottleneck, Placement, bound};
use crate::stats::cost::{Per, total};
use crate::stats::estimate::Estimate;
use crate::stats::metric::Value;
use linerate_contract::Role;
use linerate_model::{Measurement, Metric, Outcome, PlannedCell, PlannedSuite, Stage, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutcomeWord {
    Ok,
    Failed,
    Unsupported,
    Missing,
}

impl From<&Outcome> for OutcomeWord {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Ok,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Unsupported { .. } => Self::Unsupported,
            Outcome::Missing { .. } => Self::Missing,
        }
    }
}

/// A cell of the plan with its trials; numbers are by the metric of the first table that contains it.
#[derive(Debug)]
pub struct CellSummary<'a> {
    /// The index in its suite.
    pub place: usize,
    pub planned: &'a PlannedCell,
    pub metric: Metric,
    pub outcome: OutcomeWord,
    /// Measured trials, whatever their outcome.
    pub measured: Vec<(u32, &'a Unit)>,
    /// Measurements of the successful ones.
    pub good: Vec<(u32, &'a Measurement)>,
    /// The others.
    pub failures: Vec<FailedTrial>,
    /// The first warm-up trial that failed.
    pub failed_warmup: Option<FailedTrial>,
}

/// A trial that did not succeed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedTrial {
    pub round: u32,
    pub outcome: Outcome,
}

impl<'a> CellSummary<'a> {
    /// `units`: those of the cell alone.
    pub fn from_units(
        suite: &'a PlannedSuite,
        place: usize,
        units: Option<&Units<'a>>,
        metric: Metric,
    ) -> Self {
        let planned = &suite.cells[place];
        let by_round =
            |rounds: &BTreeMap<u32, &'a Unit>| rounds.iter().map(|(r, t)| (*r, *t)).collect::<Vec<_>>();
        let measured = units.map_or_else(Vec::new, |units| by_round(&units.measured));
        let failure = |round: u32, trial: &Unit| {
            success(trial, metric).err().map(|outcome| FailedTrial { round, outcome })
        };
        let good = measured.iter().filter_map(|(r, t)| Some((*r, success(t, metric).ok()?))).collect();
        let failures: Vec<FailedTrial> = measured.iter().filter_map(|(r, t)| failure(*r, t)).collect();
        let failed_warmup = units.and_then(|units| units.warmups.iter().find_map(|(r, t)| failure(*r, t)));
        let outcome = match &planned.absent {
            Some(Outcome::Ok) | None if measured.is_empty() => OutcomeWord::Failed,
            Some(Outcome::Ok) | None => judge(&failures, measured.len()),
            Some(absent) => absent.into(),
        };
        Self { place, planned, metric, outcome, measured, good, failures, failed_warmup }
    }

    /// The bottleneck of the cell's trials.
    pub fn bound(&self) -> Option<Bottleneck> {
        let systems = &self.planned.systems;
        let spinning: Vec<Role> =
            systems.iter().filter(|system| system.spins).map(|system| system.role).collect();
        let placement = Placement {
            threads: self.planned.parameters.threads.unwrap_or(1),
            has_router: self.planned.path.has_router(),
            spinning: &spinning,
        };
        bound(self.good.iter().map(|(_, measurement)| *measurement), placement)
    }

    /// Whether the load generator is the limit, and no system under test.
    pub fn is_bound_by_generator(&self) -> bool {
        !self.planned.own_client && self.bound() == Some(Bottleneck::Role(Role::Client))
    }

    pub fn is_ok(&self) -> bool {
        self.outcome == OutcomeWord::Ok
    }

    /// The CPU time per operation, or per megabyte, of some roles together, or without any of all; `None` of
    /// a cell that is not `ok`.
    pub fn cost(&self, per: Per, roles: &[Role]) -> Option<Estimate> {
        total(self.good.iter().map(|(_, measurement)| *measurement), per, roles).filter(|_| self.is_ok())
    }

    /// Values by any metric, for tables and comparisons; none of a cell that is not `ok`.
    pub fn values(&self, metric: Metric) -> ByRound {
        if self.is_ok() { metric.values(self.good.iter().copied()) } else { ByRound::new() }
    }
}

/// A cell is `ok` if at most one in ten of its measured trials failed: what hangs is slow, and to leave it
/// out would make the cell look fast.
fn judge(failures: &[FailedTrial], measured: usize) -> OutcomeWord {
    match failures.first() {
        Some(first) if failures.len() * 10 > measured => OutcomeWord::from(&first.outcome),
        _ => OutcomeWord::Ok,
    }
}

/// The measurement of a successful trial, or the outcome of a failed one. A trial with an empty measurement
/// has failed.
fn success(trial: &Unit, metric: Metric) -> Result<&Measurement, Outcome> {
    let empty = |reason: &str| {
        let reason = reason.to_owned();
        Err(Outcome::Failed { stage: Stage::Measure, reason, log: String::new() })
    };
    match (&trial.outcome, trial.measurement()) {
        (Outcome::Ok, Some(measurement)) if metric.value(measurement).is_some() => Ok(measurement),
        (Outcome::Ok, Some(_)) => {
            empty("the measurement is empty: no work, no time or no latency was recorded")
        }
        (Outcome::Ok, None) => empty("there is no measurement"),
        (outcome, _) => Err(outcome.clone()),
    }
}
