//! `--budget`: rounds are added until the time is used or every interval is narrow enough.

use crate::measurement::{Duet, Outcome, PlannedSuite, Run, Trial};
use crate::plan::Step;
use crate::stats::estimate::Estimate;
use linerate_contract::Nanos;
use std::collections::BTreeMap;

/// The most rounds that a budget can buy; an interval shrinks with the root of their number, so more would
/// buy little.
pub const MOST_ROUNDS: u32 = 1_000;
/// Narrow enough: the interval's half is 1 % of the median. Most machines do not repeat themselves better
/// than that.
pub const TARGET: f64 = 0.01;

/// True if this step would start a round that the suite has no time for, or no need of.
///
/// Every suite of the run gets an equal share of the budget, and what the ones before it left.
#[must_use]
pub fn is_spent(run: &Run, trials: &[Trial], duets: &[Duet], step: &Step) -> bool {
    let Some(budget) = run.budget else { return false };
    let suite = &run.suites[step.suite];
    let of_suite: Vec<&Trial> = trials.iter().filter(|t| t.suite == suite.name).collect();
    let started = |round: u32| of_suite.iter().any(|t| t.round == round && t.warmup == step.warmup);
    if step.warmup || started(step.round) || !started(1) {
        return false; // a round that has begun is finished, and one there must be
    }
    let sum =
        |times: &mut dyn Iterator<Item = Nanos>| times.fold(Nanos::ZERO, |sum, t| sum + t).as_secs_f64();
    let used = sum(&mut trials.iter().map(Trial::time).chain(duets.iter().map(Duet::time)));
    let of_pairs = duets.iter().filter(|duet| duet.suite == suite.name).map(Duet::time);
    let share = budget.as_secs_f64() * (step.suite + 1) as f64 / run.suites.len() as f64;
    let rounds_done = f64::from(step.round - 1);
    let of_cells = of_suite.iter().filter(|t| !t.warmup).map(|t| t.time());
    let a_round = sum(&mut of_cells.chain(of_pairs)) / rounds_done;
    used + a_round > share || is_narrow(suite, &of_suite)
}

/// True if every cell that succeeds at all has a narrow interval.
fn is_narrow(suite: &PlannedSuite, trials: &[&Trial]) -> bool {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for table in &suite.tables {
        for trial in
            trials.iter().filter(|t| !t.warmup && t.outcome == Outcome::Ok && table.cells.contains(&t.cell))
        {
            if let Some(value) = trial.measurement.as_ref().and_then(|m| table.metric.value(m)) {
                values.entry(&trial.cell).or_default().push(value);
            }
        }
    }
    let narrow = |values: Vec<f64>| {
        let found = Estimate::of(values);
        found.is_some_and(|e| e.is_sure() && (e.interval[1] - e.interval[0]) / 2.0 <= TARGET * e.median)
    };
    values.into_values().all(narrow)
}
