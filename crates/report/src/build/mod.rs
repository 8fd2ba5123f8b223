//! Journal to report: a pure and total function. Every journal has a report.

mod cell;
mod facts;
mod path;
mod published;
mod rates;
mod remarks;
mod suite;
mod table;

use super::comparison::{
    ComparedCell, ComparisonReport, ControlReport, NamedCommand, in_one_sentence, waiting, waits, written,
};
use super::model::{Comparison, REPORT_SCHEMA, Report, SuiteReport};
use linerate_analysis::judge::pairs::{JudgedPair, Judgement, by_request, judge};
use linerate_analysis::judge::{SortedJournal, disturbed, rounded_unit};
use linerate_analysis::stats::starts::starts;
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::why::counts;
use linerate_model::journal::Journal;
use linerate_model::{HEAD, PlannedComparison, Run, Sides, Stored, Subject, Unit};

/// The report of a run. Warm-ups count only as time. Of two units with the same cells and number the last one
/// counts; lines of cells that are not in the plan are ignored and flagged.
pub fn build(run: &Run, journal: &Journal) -> Report {
    let told = rates::as_rates(run);
    let run = told.as_ref();
    let units = SortedJournal::sort(run, &journal.units);
    let judgement = judge(run, &journal.units);
    let suite = |index| suite::suite(run, index, &units, judgement.as_ref());
    let suites: Vec<SuiteReport> = (0..run.suites.len()).map(suite).collect();
    let facts = facts::facts(run, &units, journal.unknown);
    let compared = judgement.and_then(|judgement| {
        let seconds =
            journal.units.iter().map(|unit| unit.time().as_secs_f64()).fold(0.0, |all, time| all + time);
        comparison(run, &judgement, &suites, &units, seconds)
    });
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        run: facts,
        host: run.host.clone(),
        hosts: run.hosts.clone(),
        comparison: compared,
        suites,
    }
}

/// The report of what is stored.
pub fn from_stored(stored: &Stored) -> Report {
    build(&stored.run, &stored.journal)
}

/// The comparison of a run; `None` for a run that compares no builds. `seconds`: the time of all its units,
/// which are `units`.
fn comparison(
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
    let is_any_delayed = run.learned.servers.iter().any(remarks::is_delayed);
    let of_pair = |(pair, by_request): (&JudgedPair, _)| {
        let cell = compared(pair, suites, units);
        let [of_head, of_base] =
            pair.places.map(|at| run.learned.servers.get(at).is_some_and(remarks::is_delayed));
        ComparedCell {
            by_request,
            waits_us: cell.waits_us.filter(|_| !is_any_delayed),
            waits_for_acks: of_head && !of_base,
            ..cell
        }
    };
    let cells: Vec<ComparedCell> = pairs.map(of_pair).collect();
    let told: Vec<String> =
        cells.iter().filter(|cell| waiting(cell).is_some()).map(|cell| cell.id.clone()).collect();
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
        smallest_detectable: remarks::smallest(judgement, budget_seconds),
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
            .chain(remarks::learned(&run.learned, plan, &told))
            .chain(judgement.pairs.iter().flat_map(|pair| remarks::failed(pair, units)))
            .chain(remarks::too_short(judgement, budget_seconds))
            .chain(plan.remarks.clone())
            .collect(),
        written: plan.written.iter().map(written).collect(),
        history: Vec::new(),
    };
    comparison.sentence = in_one_sentence(&comparison);
    Some(comparison)
}

fn named(plan: &PlannedComparison) -> Vec<NamedCommand> {
    let subjects = plan.servers().into_iter().flat_map(|(subjects, _)| subjects);
    subjects.map(|one| NamedCommand { name: one.name().to_owned(), command: one.text().to_owned() }).collect()
}

/// A pair as a cell of the report: its findings, and the reason where it has no verdict.
fn compared(pair: &JudgedPair, suites: &[SuiteReport], units: &SortedJournal<'_>) -> ComparedCell {
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
        detail: remarks::detail(pair, [head, base]),
        counts: counts(units.all().filter(is_own)),
        hints: Vec::new(),
        why: None,
    }
}
