//! Two builds of a system: the verdict on all cells, and how it was made. The cells are in the tables, a
//! column for each build.

mod answer;
mod comment;
mod hints;
mod history;
mod latency;
mod made;
mod model;
mod name;
mod ranking;
mod reasons;
mod requests;
mod sentence;
mod stored;
mod waits;
mod why;

pub(crate) use answer::value_words;
pub(super) use answer::{Answer, answer};
pub use comment::comment;
pub use history::{entries, history, newest_of};
pub(super) use latency::{margins, table as latencies};
pub(super) use made::{made, short};
pub use model::*;
pub(super) use reasons::{counted, reasons};
pub use sentence::prospect;
pub use stored::of_stored;
use waits::waits;
pub use why::with_profile;
pub(crate) use why::{change_words, count_name, values};

use crate::load::at_a_time;
use crate::model::{CellReport, Comparison, SuiteReport};
use linerate_analysis::judge::pairs::{
    Confirmation, FailedUnit, JudgedPair, Judgement, Obstacle, by_request,
};
use linerate_analysis::judge::{SortedJournal, disturbed, rounded_unit};
use linerate_analysis::stats::starts::starts;
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::stopping::Prospect;
use linerate_analysis::why::counts;
use linerate_model::{HEAD, Learned, LearnedServer, Outcome, PlannedComparison, Run, Sides, Subject, Unit};
use std::collections::BTreeMap;

/// The note on servers that were never warm.
const NOT_WARM: &str = "the rate still rose at the end of the longest warm-up: results may be of a server \
                        that is not warm yet; a longer --budget warms up for longer, up to 5 s";

/// The comparison of a run; `None` for a run that compares no builds. `seconds`: the time of all its units,
/// which are `units`.
pub(super) fn build(
    run: &Run,
    judgement: &Judgement,
    suites: &[SuiteReport],
    units: &SortedJournal<'_>,
    seconds: f64,
) -> Option<ComparisonReport> {
    let plan = run.policy().verdict()?;
    let [base, head] = plan.arms();
    let pairs = judgement.pairs.iter().zip(by_request(run, judgement, units));
    // That wait has its cause: a delayed acknowledgement.
    let is_any_delayed = run.learned.servers.iter().any(is_delayed);
    let of_pair = |(pair, by_request): (&JudgedPair, _)| {
        let cell = cell(pair, suites, units);
        let [of_head, of_base] = pair.places.map(|at| run.learned.servers.get(at).is_some_and(is_delayed));
        ComparedCell {
            by_request,
            waits_us: cell.waits_us.filter(|_| !is_any_delayed),
            waits_for_acks: of_head && !of_base,
            ..cell
        }
    };
    let cells: Vec<ComparedCell> = pairs.map(of_pair).collect();
    let told: Vec<String> =
        cells.iter().filter(|cell| waits::waiting(cell).is_some()).map(|cell| cell.id.clone()).collect();
    let budget_seconds = run.budget.map_or(0.0, |budget| budget.as_secs_f64());
    let notes = run.suites.iter().flat_map(|suite| &suite.tables).flat_map(|table| table.notes.clone());
    let mut comparison = ComparisonReport {
        kind: plan.kind,
        base,
        head,
        commands: named(plan),
        conclusion: match cells.iter().all(|cell| cell.findings.main().is_none()) {
            true => Verdict::Missing,
            false => Verdict::of_all(cells.iter().map(|cell| cell.verdict)),
        },
        sentence: String::new(),
        margin: plan.margin,
        latency_margin: plan.latency_margin,
        percentile: plan.percentile,
        budget_seconds,
        seconds,
        spread: judgement.spread,
        smallest_detectable: smallest(judgement, budget_seconds),
        aa: judgement.control.as_ref().map(|control| ControlReport {
            ratio: control.ratio,
            ci95: control.ci95,
            n: control.n,
            smallest_bias: control.half_width(),
            is_void: judgement.is_void,
        }),
        cells,
        starts: starts(&run.suites, plan.subjects.iter().map(Subject::name), units.all()),
        notes: notes
            .chain((!run.learned.are_steady()).then(|| NOT_WARM.to_owned()))
            .chain(waiting(&run.learned, plan, &told))
            .chain(unserved(&run.learned, plan))
            .chain(judgement.pairs.iter().flat_map(|pair| failed(pair, units)))
            .chain(too_short(judgement, budget_seconds))
            .chain(plan.remarks.clone())
            .collect(),
        written: plan.written.iter().map(made::written).collect(),
        history: Vec::new(),
    };
    comparison.sentence = in_one_sentence(&comparison);
    Some(comparison)
}

/// The budget that can find something, where this one could not.
fn too_short(judgement: &Judgement, budget: f64) -> Option<String> {
    let (units, unit) = tried(judgement);
    let is_open = judgement.pairs.iter().any(|pair| !pair.is_decided());
    if units == 0 || !is_open || smallest(judgement, budget).is_some() {
        return None;
    }
    let pairs = judgement.pairs.len();
    Some(sentence::prospect(&Prospect {
        units: f64::from(units) / pairs as f64,
        pairs,
        tests: judgement.tests,
        budget,
        unit,
        spread: judgement.spread,
    }))
}

/// Remarks where a warm-up failed, and where every unit of a second load did, so that it has no rows.
fn failed(pair: &JudgedPair, units: &SortedJournal<'_>) -> Vec<String> {
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
            "nothing is known of latencies below capacity: each unit failed, the last one: {}",
            reason(outcome)
        )
    });
    of_warmup.into_iter().chain(of_load).collect()
}

/// True if most responses of a server wait for a delayed acknowledgement.
fn is_delayed(server: &LearnedServer) -> bool {
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

fn named(plan: &PlannedComparison) -> Vec<NamedCommand> {
    let subjects = plan.servers().into_iter().flat_map(|(subjects, _)| subjects);
    subjects.map(|one| NamedCommand { name: one.name().to_owned(), command: one.text().to_owned() }).collect()
}

/// The smallest slowdown that is found if all pairs are measured until the budget is used.
fn smallest(judgement: &Judgement, budget: f64) -> Option<f64> {
    let (_, unit) = tried(judgement);
    judgement.detectable(budget / (unit * judgement.pairs.len() as f64))
}

/// The units of all pairs, and the seconds of one.
fn tried(judgement: &Judgement) -> (u32, f64) {
    let units: u32 = judgement.pairs.iter().map(|pair| pair.tried).sum();
    let seconds: f64 = judgement.pairs.iter().map(|pair| pair.seconds).sum();
    (units, seconds / f64::from(units))
}

/// A pair as a cell of the report: its findings, and the reason where it has no verdict.
fn in_one_sentence(comparison: &ComparisonReport) -> String {
    match comparison.commands.is_empty() {
        true => sentence::sentence(comparison),
        false => answer::sentence(comparison),
    }
}

impl ComparisonReport {
    /// Takes the reason why nothing was measured, such as a command that ended at its start.
    pub fn never_began(&mut self, reason: &str) {
        self.cells.iter_mut().for_each(|cell| cell.detail = Some(reason.to_owned()));
        self.sentence = in_one_sentence(self);
    }
}

fn cell(pair: &JudgedPair, suites: &[SuiteReport], units: &SortedJournal<'_>) -> ComparedCell {
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
        by_request: Vec::new(),
        cpu_first: pair.is_cpu_first,
        client_is_limit: pair.client_is_limit,
        memory_mib: memory[0].zip(memory[1]).map(<[f64; 2]>::from),
        bound_by: base.bound_by,
        waits_us: waits(pair, [head, base], disturbed(units).is_some()),
        waits_for_acks: false,
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
    let paused = if unit.was_paused() { CANNOT_BE_PAUSED } else { "" };
    format!("; the last one: {}{paused}", reason(&unit.outcome))
}

/// Why a unit failed, with the last line that a server wrote.
fn reason(outcome: &Outcome) -> String {
    let Outcome::Failed { reason, log, .. } = outcome else { return String::new() };
    let line = log.lines().last().map_or_else(String::new, |line| format!(" ({line})"));
    format!("{reason}{line}")
}
