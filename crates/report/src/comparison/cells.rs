//! Cell by cell: values of both builds, what changed, and why a cell has no verdict.

use super::latency::load;
use super::model::{ChangeReport, ComparedCell, LatencyChange};
use crate::build::row_cpu;
use crate::model::{CellReport, Comparison, OutcomeWord, SuiteReport};
use linerate_analysis::comparison::{Confirmation, JudgedPair, Judgement, Reading};
use linerate_analysis::stats::cost::Per;
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::summary::{RowValue, rounded_unit};
use linerate_model::HEAD;
use linerate_model::{Duet, Metric, Outcome, Run, Sharing, Stage};

pub(super) fn cells(
    run: &Run,
    duets: &[Duet],
    judgement: &Judgement,
    suites: &[SuiteReport],
) -> Vec<ComparedCell> {
    judgement.pairs.iter().map(|pair| cell(run, duets, pair, judgement, suites)).collect()
}

/// The tables show what all looks together have found, in place of what a fixed number of units would show.
pub(super) fn into_tables(suites: &mut [SuiteReport], judgement: &Judgement, cells: &[ComparedCell]) {
    for suite in suites {
        let SuiteReport { name, tables, cells: reports, .. } = suite;
        let pairs = || judgement.pairs.iter().zip(cells).filter(|(pair, _)| pair.suite == *name);
        let judged = |id: &str, fixed: Option<Comparison>| {
            let (pair, cell) = pairs().find(|(pair, _)| pair.cells[0] == id)?;
            let is_lost = matches!(cell.verdict, Verdict::Failed | Verdict::Missing);
            pair.in_table(fixed?, is_lost.then_some(cell.verdict))
        };
        for cell in reports {
            cell.vs_baseline = judged(&cell.id, cell.vs_baseline.take());
            let row = RowValue::of_row(cell.alone, cell.vs_baseline.as_ref(), cell.better);
            (cell.value, cell.ci95) = parts(row);
        }
        for table in tables {
            let metric = table.quantity().map_or(Metric::OperationsPerSecond, |quantity| quantity.metric);
            for entry in &mut table.cells {
                entry.vs_baseline = judged(&entry.id, entry.vs_baseline.take());
                let row = RowValue::of_row(entry.alone, entry.vs_baseline.as_ref(), metric.better());
                (entry.value, entry.ci95) = parts(row);
                let of_pair = |(pair, _): (&JudgedPair, _)| {
                    let side = pair.cells.iter().position(|id| *id == entry.id)?;
                    let (alone, of) = (pair.cpu_alone[side], pair.cpu_of.clone());
                    Some(row_cpu(Per::from_metric(metric), alone, of, entry.vs_baseline.as_ref()))
                };
                // A cell that is in no pair has the CPU time of all roles.
                entry.cpu = pairs().find_map(of_pair).unwrap_or(entry.cpu.take());
            }
        }
    }
}

fn parts(row: Option<RowValue>) -> (Option<f64>, Option<[f64; 2]>) {
    (row.map(|row| row.value), row.and_then(|row| row.ci95))
}

fn cell(
    run: &Run,
    duets: &[Duet],
    pair: &JudgedPair,
    judgement: &Judgement,
    suites: &[SuiteReport],
) -> ComparedCell {
    let suite = suites.iter().find(|suite| suite.name == pair.suite);
    let of = |id: &str| suite.and_then(|suite| suite.cells.iter().find(|cell| cell.id == id));
    let [head, base] = [&pair.cells[0], &pair.cells[1]].map(|id| of(id));
    let systems = head.iter().flat_map(|cell| &cell.systems);
    let system = systems.into_iter().find(|system| system.build == HEAD);
    let several = run.suites.len() > 1;
    let id = head.and_then(|cell| cell.axes.get("cell")).unwrap_or(&pair.cells[0]);
    let (verdict, detail) = verdict(pair, duets, judgement, [head, base]);
    let planned = run.suites.iter().flat_map(|suite| &suite.cells).find(|cell| cell.id == pair.cells[0]);
    let rate = run.policy().verdict().and_then(|comparison| comparison.rate);
    // The performance of an open loop is that of the baseline's latency over its own.
    let unit_ratio = |ratio: f64| if pair.latency.is_empty() { ratio } else { 1.0 / ratio };
    let latency = pair
        .latency
        .iter()
        .map(|latency| LatencyChange::from_reading(latency, change(&latency.reading, f64::recip)));
    let is_unit = |duet: &&Duet| !duet.warmup && duet.suite == pair.suite && duet.cells == pair.cells;
    let units: Vec<&Duet> = duets.iter().filter(is_unit).collect();
    let memory = [base, head].map(|cell| Some(cell?.usage.as_ref()?.memory_mib_after));
    ComparedCell {
        id: if several { format!("{}:{id}", pair.suite) } else { id.to_owned() },
        system: system.map_or_else(String::new, |system| system.name.clone()),
        verdict,
        base: base.and_then(|cell| cell.alone).map(|alone| alone.value),
        head: head.and_then(|cell| value(cell, pair)),
        unit: head.map(|cell| cell.unit),
        units: pair.units(),
        unit_ratios: pair.ratios.iter().copied().map(unit_ratio).map(rounded_unit).collect(),
        seconds: pair.seconds,
        rate: pair.rate.as_ref().map(|reading| change(reading, |ratio| ratio)),
        latency: latency.collect(),
        latency_verdict: pair.main_verdict().filter(|_| !pair.latency.is_empty()),
        load: planned.and_then(|cell| load(cell, rate, &units)),
        cpu: pair.cpu.as_ref().map(|reading| change(reading, f64::recip)),
        cpu_first: pair.is_cpu_first,
        client_is_limit: pair.client_is_limit,
        memory_mib: memory[0].zip(memory[1]).map(<[f64; 2]>::from),
        bound_by: base.and_then(|cell| cell.bound_by),
        detail,
    }
}

/// That of the base by the ratio that was judged.
fn value(head: &CellReport, pair: &JudgedPair) -> Option<f64> {
    let judged = head.vs_baseline.clone().and_then(|fixed| pair.in_table(fixed, None));
    RowValue::of_row(head.alone, judged.as_ref(), head.better).map(|row| row.value)
}

/// The verdict and its reason, where it needs one.
fn verdict(
    pair: &JudgedPair,
    duets: &[Duet],
    judgement: &Judgement,
    cells: [Option<&CellReport>; 2],
) -> (Verdict, Option<String>) {
    let lost = cells.into_iter().flatten().find(|cell| cell.outcome != OutcomeWord::Ok);
    // More failed units than of any cell's trials: what fails is not left out of a comparison.
    let fails = pair.tried > 0 && pair.units() * 10 < pair.tried * 9;
    if let Some(cell) = lost {
        let word = match cell.outcome {
            OutcomeWord::Missing | OutcomeWord::Unsupported => Verdict::Missing,
            _ => Verdict::Failed,
        };
        let detail = cell.detail.clone().unwrap_or_else(|| "it failed".into());
        return (word, Some(format!("{}: {detail}", cell.id)));
    }
    if fails {
        let failed = pair.tried - pair.units();
        let text = format!("{failed} of {} units failed{}", pair.tried, last_failure(pair, duets));
        return (Verdict::Failed, Some(text));
    }
    if judgement.is_void {
        return (Verdict::CannotTell, Some("the control differs from itself".into()));
    }
    let is = |wanted: Confirmation| pair.readings().any(|reading| reading.confirmation == Some(wanted));
    let detail = match pair.verdict() {
        Verdict::CannotTell if is(Confirmation::Failed) => {
            Some("a second series did not confirm the slowdown")
        }
        Verdict::CannotTell if is(Confirmation::Pending) => {
            Some("the time did not suffice to confirm the slowdown")
        }
        Verdict::CannotTell if pair.client_is_limit => Some("the client was the limit"),
        _ => None,
    };
    (pair.verdict(), detail.map(str::to_owned))
}

const CANNOT_BE_PAUSED: &str = "; in these units each side is stopped for 30 ms at a time, and alone it \
     was not: a server with a watchdog cannot be paused, turn that off";

/// The reason of the last unit that failed.
fn last_failure(pair: &JudgedPair, duets: &[Duet]) -> String {
    let of_pair = duets.iter().filter(|duet| duet.suite == pair.suite && duet.cells == pair.cells);
    of_pair.rev().find_map(failure).unwrap_or_default()
}

/// The reason of a unit that failed.
fn failure(duet: &Duet) -> Option<String> {
    let Outcome::Failed { stage, reason, log } = &duet.outcome else { return None };
    let line = log.lines().last().map_or_else(String::new, |line| format!(" ({line})"));
    // Trials without pauses went well.
    let is_paused = *stage == Stage::Measure && duet.sharing == Sharing::Turns;
    Some(format!("; the last one: {reason}{line}{}", if is_paused { CANNOT_BE_PAUSED } else { "" }))
}

fn change(reading: &Reading, scale: impl Fn(f64) -> f64) -> ChangeReport {
    let percent = |ratio: f64| (scale(ratio) - 1.0) * 100.0;
    let ordered = |[a, b]: [f64; 2]| [a.min(b), a.max(b)];
    ChangeReport {
        percent: percent(reading.ratio),
        ci95: reading.interval.map(|ends| ordered(ends.map(percent))),
        verdict: reading.verdict,
        second_series: reading.confirmation.map(|confirmation| {
            let word = match confirmation {
                Confirmation::Pending => "pending",
                Confirmation::Confirmed => "confirmed",
                Confirmation::Failed => "failed",
            };
            word.to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;
    use linerate_model::Sharing;
    use std::collections::BTreeMap;

    #[test]
    fn a_server_that_ends_only_where_it_is_paused_gets_the_reason() {
        let duet = |sharing| Duet {
            suite: "s".into(),
            cells: ["a".into(), "b".into()],
            unit: 1,
            warmup: false,
            sharing,
            probe: None,
            at: Nanos::ZERO,
            outcome: Outcome::Failed {
                stage: Stage::Measure,
                reason: "b ended before the client (killed by SIGABRT)".into(),
                log: "watchdog".into(),
            },
            sides: None,
            windows: Vec::new(),
            strangers: None,
            stolen: None,
            stages: BTreeMap::new(),
        };
        let text = |sharing| failure(&duet(sharing)).unwrap();
        assert!(text(Sharing::Turns).contains("(watchdog); in these units each side is stopped"));
        assert!(!text(Sharing::Together).contains("stopped"));
    }
}
