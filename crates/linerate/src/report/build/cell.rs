//! One cell: its trials, its numbers and its flags.

use super::journal::CellTrials;
use super::{path, transport};
use crate::measurement::{Measurement, Metric, Outcome, PlannedCell, Stage, Trial};
use crate::report::model::{CellReport, CpuCost, OutcomeWord, UsageReport};
use crate::report::words::{self, FailedTrial, Flag};
use crate::stats::bound::{Bottleneck, Placement, bound, disturbance};
use crate::stats::by_round::ByRound;
use crate::stats::check::littles_law;
use crate::stats::cost::{Consumer, Per, cost};
use crate::stats::estimate::{Estimate, FEWEST_ROUNDS};
use crate::stats::latency::{Pool, sound};
use crate::stats::outliers::{drift, outliers, stolen};
use crate::stats::usage::{Typical, leak, usage};
use linerate_contract::{Errors, Role};
use std::collections::{BTreeMap, BTreeSet};

/// A cell of the plan with its trials; numbers are by the metric of the first table that contains it.
pub(super) struct Cell<'a> {
    pub(super) planned: &'a PlannedCell,
    pub(super) metric: Metric,
    pub(super) outcome: OutcomeWord,
    detail: Option<String>,
    /// Measured trials, whatever their outcome.
    measured: Vec<(u32, &'a Trial)>,
    /// Measurements of the successful ones.
    good: Vec<(u32, &'a Measurement)>,
}

impl<'a> Cell<'a> {
    /// Why it has no number.
    pub(super) fn why_no_number(&self) -> String {
        self.detail.clone().unwrap_or_else(|| words::outcome_name(self.outcome).to_owned())
    }

    pub(super) fn of(planned: &'a PlannedCell, trials: Option<&CellTrials<'a>>, metric: Metric) -> Self {
        let by_round =
            |rounds: &BTreeMap<u32, &'a Trial>| rounds.iter().map(|(r, t)| (*r, *t)).collect::<Vec<_>>();
        let measured = trials.map_or_else(Vec::new, |trials| by_round(&trials.measured));
        let good: Vec<_> =
            measured.iter().filter_map(|(r, t)| Some((*r, success(t, metric).ok()?))).collect();
        let failures: Vec<FailedTrial> =
            measured.iter().filter_map(|(r, t)| failure(*r, t, metric)).collect();
        let warmup = trials.and_then(|t| t.warmups.iter().find_map(|(r, t)| failure(*r, t, metric)));
        let (outcome, detail) = match &planned.absent {
            Some(Outcome::Ok) | None if measured.is_empty() => {
                (OutcomeWord::Failed, Some(words::not_measured(warmup.as_ref())))
            }
            Some(Outcome::Ok) | None => judge(&failures, measured.len()),
            Some(absent) => (words::outcome(absent), words::reason(absent)),
        };
        Self { planned, metric, outcome, detail, measured, good }
    }

    /// Values by any metric, for tables and comparisons; none of a cell that is not `ok`.
    pub(super) fn values(&self, metric: Metric) -> ByRound {
        if self.outcome == OutcomeWord::Ok {
            metric.values(self.good.iter().copied())
        } else {
            ByRound::new()
        }
    }

    /// Everything but the comparisons, which need other cells.
    pub(super) fn report(&self) -> CellReport {
        let good = || self.good.iter().map(|(_, measurement)| *measurement);
        let values = self.metric.values(self.good.iter().copied());
        let estimate = Estimate::of(self.values(self.metric).into_values());
        let threads = self.planned.parameters.threads.unwrap_or(1);
        let spinning: Vec<Role> =
            self.planned.systems.iter().filter(|system| system.spins).map(|system| system.role).collect();
        let has_router = self.planned.path.has_router();
        let bound = bound(good(), Placement { threads, has_router, spinning: &spinning });
        let tried = || self.measured.iter().filter_map(|(_, trial)| trial.measurement.as_ref());
        let pool = Pool::of(good().filter_map(|m| sound(&m.latency)));
        let mut errors = Errors::default();
        tried().for_each(|measurement| merge(&mut errors, &measurement.errors));
        CellReport {
            id: self.planned.id.clone(),
            axes: self.planned.axes.clone(),
            systems: self.planned.systems.clone(),
            path: path::path(&self.planned.path, good()),
            unit: words::unit(self.metric, self.planned.parameters.operations),
            better: self.metric.better(),
            outcome: self.outcome,
            detail: self.detail.clone(),
            n: u32::try_from(values.len()).unwrap_or(u32::MAX),
            median: estimate.map(|e| e.median),
            ci95: estimate.map(|e| e.interval),
            flags: self.flags(&values, bound),
            values: values.into_values().collect(),
            vs_baseline: None,
            vs_limit: None,
            vs_reference: None,
            vs_truth: None,
            bound_by: bound.map(words::bound),
            sensitivity: BTreeMap::new(),
            cpu: self.costs(),
            latency_us: pool.latency(),
            latency_curve: pool.curve(),
            connect_us: Pool::of(good().filter_map(|m| sound(&m.connect))).latency(),
            tls: distinct(good().filter_map(|m| m.tls.as_ref())),
            datagrams: transport::datagrams(good()),
            tcp: transport::tcp(good()),
            series: transport::series(good()),
            usage: usage(good().filter_map(|m| m.usage)).map(usage_report),
            operations: tried().fold(0, |sum, m| sum.saturating_add(m.operations)),
            errors: errors.0.into_iter().map(|(kind, count)| (kind.name(), count)).collect(),
        }
    }

    /// Whether each connection always has exactly one operation in flight.
    fn is_closed_loop(&self) -> bool {
        // With a rate, connections are idle between operations.
        self.planned.parameters.rate.is_none() && ["rr", "crr"].contains(&self.planned.workload.as_str())
    }

    /// Connections that the trial opened: one for each operation in `crr`.
    fn connections_of(&self, measurement: &Measurement) -> u64 {
        if self.planned.workload == "crr" {
            // Saturating, because a damaged journal may contain any number.
            measurement.errors.0.values().fold(measurement.operations, |sum, n| sum.saturating_add(*n))
        } else {
            self.planned.parameters.connections.unwrap_or(1)
        }
    }

    fn costs(&self) -> BTreeMap<String, CpuCost> {
        let per = Per::of(self.metric);
        let report = |estimate: Estimate| CpuCost {
            us_per_op: (per == Per::Operation).then_some(estimate.median),
            us_per_mb: (per == Per::Megabyte).then_some(estimate.median),
            ci95: Some(estimate.interval),
        };
        let costs = cost(self.good.iter().map(|(_, m)| *m), per);
        costs.into_iter().map(|(consumer, estimate)| (consumer_name(consumer), report(estimate))).collect()
    }

    fn flags(&self, values: &ByRound, bound: Option<Bottleneck>) -> Vec<String> {
        let n = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let mut flags = Vec::new();
        if self.measured.is_empty() && self.outcome == OutcomeWord::Failed {
            flags.push(Flag::NotMeasured);
        }
        if self.outcome == OutcomeWord::Ok && n < FEWEST_ROUNDS {
            flags.push(Flag::FewRounds(n));
        }
        if bound == Some(Bottleneck::Role(Role::Client)) && !self.planned.own_client {
            flags.push(Flag::BoundByGenerator);
        }
        if let Some(connections) = self.planned.parameters.connections.filter(|_| self.is_closed_loop()) {
            let in_flight = littles_law(self.good.iter().map(|(_, m)| *m), connections);
            flags.extend(in_flight.map(|in_flight| Flag::LittlesLaw { in_flight, connections }));
        }
        let apart = outliers(values);
        if !apart.is_empty() {
            flags.push(Flag::Outliers(apart));
        }
        let stolen: Vec<(u32, f64)> = self.good.iter().filter_map(|(r, m)| Some((*r, stolen(m)?))).collect();
        if !stolen.is_empty() {
            flags.push(Flag::Steal(stolen));
        }
        flags.extend(disturbance(self.good.iter().map(|(_, m)| *m)).map(Flag::Disturbed));
        flags.extend(drift(values).map(Flag::Drift));
        let leaks =
            self.good.iter().filter_map(|(_, m)| leak(m, self.connections_of(m)).map(|grown| (grown, *m)));
        if let Some((descriptors, m)) = leaks.max_by_key(|(grown, _)| *grown) {
            flags.push(Flag::Leak { descriptors, connections: self.connections_of(m) });
        }
        let of_lab: BTreeSet<&String> = self.good.iter().flat_map(|(_, m)| &m.flags).collect();
        flags.extend(of_lab.into_iter().map(|flag| Flag::Lab(flag.clone())));
        flags.iter().map(Flag::text).collect()
    }
}

fn usage_report([before, after]: [Typical; 2]) -> UsageReport {
    UsageReport {
        descriptors_before: before.descriptors,
        descriptors_after: after.descriptors,
        memory_mib_before: before.memory_mib,
        memory_mib_after: after.memory_mib,
    }
}

/// The text that all trials have in common; where they differ, each different text.
fn distinct<'t>(texts: impl Iterator<Item = &'t String>) -> Option<String> {
    let different: BTreeSet<&str> = texts.map(String::as_str).collect();
    (!different.is_empty()).then(|| different.into_iter().collect::<Vec<_>>().join("; "))
}

/// A cell is `ok` if at most one in ten of its measured trials failed: what hangs is slow, and to leave it
/// out would make the cell look fast.
fn judge(failures: &[FailedTrial], measured: usize) -> (OutcomeWord, Option<String>) {
    let Some(first) = failures.first() else { return (OutcomeWord::Ok, None) };
    let outcome = if failures.len() * 10 <= measured { OutcomeWord::Ok } else { first.word };
    (outcome, Some(words::failures(failures, measured)))
}

/// The measurement of a successful trial, or the outcome of a failed one. A trial with an empty measurement
/// has failed.
fn success(trial: &Trial, metric: Metric) -> Result<&Measurement, Outcome> {
    let empty = |reason: &str| {
        let reason = reason.to_owned();
        Err(Outcome::Failed { stage: Stage::Measure, reason, log: String::new() })
    };
    match (&trial.outcome, &trial.measurement) {
        (Outcome::Ok, Some(measurement)) if metric.value(measurement).is_some() => Ok(measurement),
        (Outcome::Ok, Some(_)) => {
            empty("the measurement is empty: no work, no time or no latency was recorded")
        }
        (Outcome::Ok, None) => empty("there is no measurement"),
        (outcome, _) => Err(outcome.clone()),
    }
}

fn failure(round: u32, trial: &Trial, metric: Metric) -> Option<FailedTrial> {
    let outcome = success(trial, metric).err()?;
    Some(FailedTrial { round, word: words::outcome(&outcome), reason: words::reason(&outcome)? })
}

/// [`Errors::merge`], saturating: a damaged journal may contain any number.
fn merge(sum: &mut Errors, errors: &Errors) {
    for (kind, count) in &errors.0 {
        let entry = sum.0.entry(*kind).or_default();
        *entry = entry.saturating_add(*count);
    }
}

fn consumer_name(consumer: Consumer) -> String {
    match consumer {
        Consumer::Role(role) => role.to_string(),
        Consumer::Machine => "machine".to_owned(),
    }
}
