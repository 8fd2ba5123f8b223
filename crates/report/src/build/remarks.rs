//! Remarks on a comparison, and why a pair has no verdict.

use super::named;
use crate::comparison::{NamedCommand, prospect};
use crate::load::at_a_time;
use crate::model::CellReport;
use linerate_analysis::judge::SortedJournal;
use linerate_analysis::judge::pairs::{Confirmation, FailedUnit, JudgedPair, Judgement, Obstacle};
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::stopping::Prospect;
use linerate_model::{Learned, LearnedServer, Outcome, PlannedComparison, Sides, Unit};
use std::collections::BTreeMap;

/// The note on servers that were never warm.
const NOT_WARM: &str = "the rate still rose at the end of the longest warm-up: results may be of a server \
                        that is not warm yet; a longer --budget warms up for longer, up to 5 s";

/// Remarks on what was learned of the servers; `told`: those whose reason says why they wait.
pub(super) fn learned(
    learned: &Learned,
    plan: &PlannedComparison,
    told: &[String],
) -> impl Iterator<Item = String> {
    let not_warm = (!learned.are_steady()).then(|| NOT_WARM.to_owned());
    not_warm.into_iter().chain(waiting(learned, plan, told)).chain(unserved(learned, plan))
}

/// True if most responses of a server wait for a delayed acknowledgement.
pub(super) fn is_delayed(server: &LearnedServer) -> bool {
    server.warmup.is_some_and(|warmup| warmup.waits)
}

/// A remark for each server whose responses mostly wait for delayed acknowledgements, but for those whose
/// reason says so.
fn waiting(learned: &Learned, plan: &PlannedComparison, told: &[String]) -> Vec<String> {
    let both = learned.servers.iter().zip(named(plan)).filter(|(_, one)| !told.contains(&one.name));
    let waiting = both.filter(|(server, _)| is_delayed(server));
    let remarks = waiting.map(|(_, NamedCommand { name, .. })| {
        format!(
            "{name}: most responses wait 40 ms for a delayed acknowledgement, since it writes them in small \
             pieces: TCP_NODELAY or one write is the remedy"
        )
    });
    remarks.collect()
}

/// Remarks on servers that keep connections waiting; one where all take as many.
fn unserved(learned: &Learned, plan: &PlannedComparison) -> Vec<String> {
    let connections = plan.servers().map_or(0, |(_, load)| load.connections);
    let mut by_number = BTreeMap::<u32, Vec<String>>::new();
    for (server, NamedCommand { name, .. }) in learned.servers.iter().zip(named(plan)) {
        let served = server.warmup.and_then(|warmup| warmup.served);
        served.into_iter().for_each(|served| by_number.entry(served).or_default().push(name.clone()));
    }
    let remark = |(served, names): (u32, Vec<String>)| {
        let each = if names.len() > 1 { ", each," } else { "" };
        let told = at_a_time(served, connections);
        format!("{}{each} takes {told}, and so it does in the open loop", names.join(" and "))
    };
    by_number.into_iter().map(remark).collect()
}

/// Remarks where a warm-up failed, and where every unit of a second load did, so that it has no rows.
pub(super) fn failed(pair: &JudgedPair, units: &SortedJournal<'_>) -> Vec<String> {
    let is_own = |unit: &&Unit| unit.suite == pair.suite;
    let outcomes = |wanted: fn(&Unit) -> bool, sides: Sides| -> Vec<&Outcome> {
        let units = units.all().filter(is_own).filter(|unit| unit.sides == sides && wanted(unit));
        units.map(|unit| &unit.outcome).collect()
    };
    let is_failed = |outcome: &&&Outcome| matches!(outcome, Outcome::Failed { .. });
    let warmups = outcomes(|unit| unit.warmup, Sides::Two(pair.places));
    let loads = outcomes(|unit| !unit.warmup, Sides::AtRate(pair.places));
    let all_failed = loads.iter().filter(is_failed).count() == loads.len();
    let of_warmup =
        warmups.iter().find(is_failed).map(|outcome| format!("the warm-up failed: {}", reason(outcome)));
    let of_load = loads.last().filter(|_| all_failed).map(|outcome| {
        format!(
            "nothing is known of latencies below capacity: each pair failed, the last one: {}",
            reason(outcome)
        )
    });
    of_warmup.into_iter().chain(of_load).collect()
}

/// The budget that can find something, where this one could not.
pub(super) fn too_short(judgement: &Judgement, budget: f64) -> Option<String> {
    let (units, unit) = tried(judgement);
    let is_open = judgement.pairs.iter().any(|pair| !pair.is_decided());
    if units == 0 || !is_open || smallest(judgement, budget).is_some() {
        return None;
    }
    let pairs = judgement.pairs.len();
    Some(prospect(&Prospect {
        units: f64::from(units) / pairs as f64,
        pairs,
        tests: judgement.tests,
        budget,
        unit,
        spread: judgement.spread,
    }))
}

/// The smallest slowdown that is found if all pairs are measured until the budget is used.
pub(super) fn smallest(judgement: &Judgement, budget: f64) -> Option<f64> {
    let (_, unit) = tried(judgement);
    judgement.detectable(budget / (unit * judgement.pairs.len() as f64))
}

/// The units of all pairs, and the seconds of one.
fn tried(judgement: &Judgement) -> (u32, f64) {
    let units: u32 = judgement.pairs.iter().map(|pair| pair.tried).sum();
    let seconds: f64 = judgement.pairs.iter().map(|pair| pair.seconds).sum();
    (units, seconds / f64::from(units))
}

/// Why a pair has no verdict, where that needs a reason.
pub(super) fn detail(pair: &JudgedPair, cells: [&CellReport; 2]) -> Option<String> {
    match &pair.obstacle {
        Some(Obstacle::Lost { side, .. }) => {
            let lost = cells[*side];
            Some(format!("{}: {}", lost.id, lost.detail.as_deref().unwrap_or("it failed")))
        }
        Some(Obstacle::Units { failed, last }) => {
            let last = last.as_ref().map(failure).unwrap_or_default();
            Some(format!("{failed} of {} pairs failed{last}", pair.tried))
        }
        Some(Obstacle::Control) => Some("the control differs from itself".to_owned()),
        None if pair.verdict() != Verdict::CannotTell => None,
        None if pair.has_second_series(Confirmation::Failed) => {
            Some("a second series did not confirm the slowdown".to_owned())
        }
        None if pair.has_second_series(Confirmation::Pending) => {
            Some("the time did not suffice to confirm the slowdown".to_owned())
        }
        None if pair.client_is_limit => Some("the client was the limit".to_owned()),
        None => None,
    }
}

const CANNOT_BE_PAUSED: &str = "; in these pairs each side is stopped for 30 ms at a time, and alone it \
     was not: a server with a watchdog cannot be paused, turn that off";

/// The reason of a unit that failed.
fn failure(unit: &FailedUnit) -> String {
    let paused = if unit.was_paused() { CANNOT_BE_PAUSED } else { "" };
    format!("; the last one: {}{paused}", reason(&unit.outcome))
}

/// Why a unit failed, with the last line that a server wrote.
fn reason(outcome: &Outcome) -> String {
    let Outcome::Failed { reason, log, .. } = outcome else { return String::new() };
    let line = log.lines().last().map_or_else(String::new, |line| format!(" ({line})"));
    format!("{reason}{line}")
}
