//! Cell by cell: what changed, and why a cell has no verdict.

use super::model::ComparedCell;
use crate::model::{CellReport, Comparison, SuiteReport};
use linerate_analysis::judge::pairs::{Confirmation, FailedUnit, JudgedPair, Obstacle};
use linerate_analysis::judge::{SortedJournal, rounded_unit};
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::why::counts;
use linerate_model::{HEAD, Outcome, Sides, Unit};

pub(super) fn cell(pair: &JudgedPair, suites: &[SuiteReport], units: &SortedJournal<'_>) -> ComparedCell {
    let suite = &suites[pair.suite];
    let [head, base] = pair.places.map(|place| &suite.cells[place]);
    let system = head.systems.iter().find(|system| system.build == HEAD);
    let id = head.axes.get("cell").unwrap_or(&head.id);
    let is_own = |unit: &&Unit| unit.suite == pair.suite && unit.sides == Sides::Two(pair.places);
    // The performance of an open loop is that of the baseline's latency over its own.
    let unit_ratio = |ratio: f64| if pair.is_paced { 1.0 / ratio } else { ratio };
    let memory = [base, head].map(|cell| Some(cell.usage.as_ref()?.memory_mib_after));
    ComparedCell {
        id: if suites.len() > 1 { format!("{}:{id}", suite.name) } else { id.to_owned() },
        system: system.map_or_else(String::new, |system| system.name.clone()),
        verdict: pair.verdict(),
        unit: Some(head.unit),
        units: pair.units(),
        unit_ratios: pair.ratios.iter().copied().map(unit_ratio).map(rounded_unit).collect(),
        seconds: pair.seconds,
        findings: pair.findings.clone(),
        latency_verdict: pair.main_verdict().filter(|_| pair.is_paced),
        load: pair.load.clone(),
        second_load: pair.second_load.clone(),
        cpu_first: pair.is_cpu_first,
        client_is_limit: pair.client_is_limit,
        memory_mib: memory[0].zip(memory[1]).map(<[f64; 2]>::from),
        bound_by: base.bound_by,
        denied_by: head.vs_baseline.as_ref().and_then(Comparison::denied_by),
        detail: detail(pair, [head, base]),
        counts: counts(units.all().filter(is_own)),
        hints: Vec::new(),
        why: None,
    }
}

/// Why a pair has no verdict, where that needs a reason.
fn detail(pair: &JudgedPair, cells: [&CellReport; 2]) -> Option<String> {
    match &pair.obstacle {
        Some(Obstacle::Lost { side, .. }) => {
            let lost = cells[*side];
            Some(format!("{}: {}", lost.id, lost.detail.as_deref().unwrap_or("it failed")))
        }
        Some(Obstacle::Units { failed, last }) => {
            let last = last.as_ref().map(failure).unwrap_or_default();
            Some(format!("{failed} of {} units failed{last}", pair.tried))
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

const CANNOT_BE_PAUSED: &str = "; in these units each side is stopped for 30 ms at a time, and alone it \
     was not: a server with a watchdog cannot be paused, turn that off";

/// The reason of a unit that failed.
fn failure(unit: &FailedUnit) -> String {
    let Outcome::Failed { reason, log, .. } = &unit.outcome else { return String::new() };
    let line = log.lines().last().map_or_else(String::new, |line| format!(" ({line})"));
    format!("; the last one: {reason}{line}{}", if unit.was_paused() { CANNOT_BE_PAUSED } else { "" })
}
