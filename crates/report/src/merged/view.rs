//! The text of a report of several hosts, as tables: shared by the readable formats.

use super::build::{ratio, verdict};
use super::model::{Disagreement, MergedCell, MergedHost, MergedReport, OnHost, Shown, Subject};
use crate::layout::{self, TextTable};
use crate::model::{OutcomeWord, Quantity, RunFacts};
use crate::numbers::{Digits, Ends, percent, plain, seconds};
use crate::words::{self, outcome_name};
use linerate_model::Better;
use std::collections::{BTreeMap, BTreeSet};

/// Above this, a column for each host is wider than a page.
const MOST_COLUMNS: usize = 6;

/// A row for each cell: the median and range over the hosts, and the ratio within each host.
pub(super) fn ratios(table: &Shown<'_>) -> TextTable {
    let mut view = TextTable::new("", ["cell", "over hosts", "hosts"]);
    let mut hosts: Vec<&str> = table.runs.iter().map(|run| run.host).collect();
    hosts.dedup();
    if hosts.len() > MOST_COLUMNS {
        hosts.clear();
    }
    view.headers.extend(hosts.iter().map(|host| (*host).to_owned()));
    for (cell, on_hosts) in &table.cells {
        let of_hosts = hosts.iter().map(|host| {
            let there = on_hosts.iter().find(|on_host| on_host.host == *host);
            there.map_or_else(String::new, brief)
        });
        let over_hosts = cell.over_hosts.as_ref();
        let median = over_hosts.map_or_else(String::new, |over| percent(over.median, over.range));
        view.rows.push([name(cell), median, verdicts(cell, on_hosts)].into_iter().chain(of_hosts).collect());
    }
    view
}

/// A row for each cell and host: its value, its ratio, and notes.
pub(super) fn values(table: &Shown<'_>) -> TextTable {
    let mut view =
        TextTable::new("", ["cell", "host", "value", "of baseline", "verdict", "n", "bound by", "notes"]);
    let all = table.cells.iter().flat_map(|(cell, on_hosts)| on_hosts.iter().map(move |on| (*cell, on)));
    for (cell, on_host) in all {
        let found = ratio(on_host);
        let flags = on_host.cell.flags.iter().map(words::flag);
        let notes: Vec<String> = on_host.cell.detail.clone().into_iter().chain(flags).collect();
        view.rows.push(vec![
            name(cell),
            on_host.host.to_owned(),
            value(on_host),
            found.map_or_else(String::new, |found| {
                percent(found.ratio, Ends::from_units(found.n, found.interval))
            }),
            verdict(on_host).unwrap_or_default().to_owned(),
            found.map_or(on_host.entry.alone.map_or(0, |alone| alone.n), |found| found.n).to_string(),
            on_host.cell.bound_by.map(words::bound).unwrap_or_default(),
            notes.join("; "),
        ]);
    }
    view
}

/// The hosts that disagree; `None` if all agree, or there is one host.
pub(super) fn disagreements(table: &Shown<'_>) -> Option<TextTable> {
    let view = TextTable::new("", ["cell", "host", "there", "on the others"]);
    let row = |found: &Disagreement| {
        let there = match found.about {
            Subject::Ratio => found.ratio.zip(found.ci95).map(|(ratio, ci95)| percent(ratio, ci95)),
            Subject::Outcome => Some(format!("failed: {}", found.detail.as_deref().unwrap_or("no reason"))),
        };
        let others = match found.about {
            Subject::Ratio => found.others.map(|ratio| percent(ratio, [ratio, ratio])),
            Subject::Outcome => Some("ok".to_owned()),
        };
        vec![
            named(&found.id, found.metric),
            found.host.clone(),
            there.unwrap_or_default(),
            others.unwrap_or_default(),
        ]
    };
    let view = view.with_rows(table.merged.disagreements.iter().map(row));
    (!view.rows.is_empty()).then_some(view)
}

/// A row for each host and its runs.
pub(super) fn hosts(report: &MergedReport) -> TextTable {
    let mut view = TextTable::new("", ["host", "kernel", "CPU", "memory", "runs"]);
    for host in &report.hosts {
        let facts = host.runs.first().map(|run| layout::host(&run.host)).unwrap_or_default();
        let fact = |name: &str| facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let of_machine = ["kernel", "CPU", "memory"].map(|name| fact(name).unwrap_or_default());
        let runs: Vec<String> = host.runs.iter().map(|run| run_text(&run.run)).collect();
        let row = std::iter::once(host.name.clone()).chain(of_machine).chain([runs.join("; ")]);
        view.rows.push(row.collect());
    }
    view
}

fn run_text(run: &RunFacts) -> String {
    let quick = if run.quick { ", quick" } else { "" };
    format!("{} (rounds: {}{quick}, {})", run.id, run.rounds, seconds(run.wall_seconds))
}

/// A row for each system: its version on each host.
pub(super) fn versions(hosts: &[MergedHost]) -> TextTable {
    let mut view = TextTable::new("", ["system"]);
    view.headers.extend(hosts.iter().map(|host| host.name.clone()));
    let of_host = |host: &MergedHost| -> BTreeMap<String, String> {
        host.runs.iter().flat_map(|run| layout::versions(&run.suites)).collect()
    };
    let versions: Vec<BTreeMap<String, String>> = hosts.iter().map(of_host).collect();
    let systems: BTreeSet<&String> = versions.iter().flat_map(BTreeMap::keys).collect();
    for system in systems {
        let of_hosts = versions.iter().map(|known| known.get(system).cloned().unwrap_or_default());
        view.rows.push(std::iter::once(system.clone()).chain(of_hosts).collect());
    }
    view
}

/// Unit and direction; what the percentages are.
pub(super) fn caption(shown: &Shown<'_>) -> [String; 2] {
    let table = shown.table();
    let better = match table.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    };
    let of = if shown.cells.iter().flat_map(|(_, on)| on).any(|on| on.entry.vs_truth.is_some()) {
        "percent of the true value"
    } else {
        "percent of the baseline of the same host"
    };
    [
        format!("{}, {better}", words::table_unit(table.unit)),
        format!("{of}; over hosts: the median of their ratios (smallest to largest)"),
    ]
}

/// Sentences under a table.
pub(super) fn sentences(table: &Shown<'_>) -> Vec<String> {
    let failed = table.runs.iter().filter(|run| run.table.control_fails()).map(|run| {
        format!(
            "A/A: on {} the baseline differs from itself; the verdicts of its duets are withdrawn",
            run.host
        )
    });
    failed.collect()
}

pub(super) const HOW_TO_READ: &[&str] = &[
    "Each ratio is measured within one host, against the baseline on the same host. Trials of different \
     hosts are never put together; each host counts once.",
    "Over hosts: the median of the hosts' ratios, and the smallest and the largest of them. It is no \
     confidence interval: it is about these hosts.",
    "A host disagrees where its 95 % interval overlaps with those of fewer than half of the other hosts, and \
     its ratio is farther from their median than the table's margin; or where a cell failed that is ok \
     elsewhere. Hosts with fewer than six pairs take no part.",
];

pub(super) fn name(cell: &MergedCell) -> String {
    named(&cell.id, cell.metric)
}

fn named(id: &str, metric: Option<Quantity>) -> String {
    metric.map_or_else(|| id.to_owned(), |metric| format!("{id}, {}", words::metric(metric)))
}

/// Such as `slower 3`, or `faster 1, slower 2`; where the hosts have no ratio, how many have a value.
fn verdicts(cell: &MergedCell, on_hosts: &[OnHost<'_>]) -> String {
    match &cell.over_hosts {
        Some(over) => {
            over.verdicts.iter().map(|(verdict, n)| format!("{verdict} {n}")).collect::<Vec<_>>().join(", ")
        }
        None => {
            let ok = on_hosts.iter().filter(|host| host.cell.outcome == OutcomeWord::Ok).count();
            format!("ok {ok}")
        }
    }
}

/// The interval, or the range of a few trials whose median the value is.
fn ends(on_host: &OnHost<'_>) -> Ends {
    let trials = on_host.entry.alone.filter(|_| on_host.entry.vs_baseline.is_none());
    let range = trials.and_then(|alone| Some(Ends::RangeOf(alone.n, alone.range?)));
    range.unwrap_or(on_host.entry.ci95.into())
}

fn value(on_host: &OnHost<'_>) -> String {
    match on_host.entry.value {
        Some(value) => Digits::OF_VALUES.text(value, ends(on_host)),
        None => outcome_name(on_host.cell.outcome).to_owned(),
    }
}

/// The value, or why there is none.
pub(super) fn number(on_host: &OnHost<'_>) -> String {
    on_host.entry.value.map_or_else(|| outcome_name(on_host.cell.outcome).to_owned(), plain)
}

/// The ratio with its mark, or the value where there is none.
pub(super) fn brief(on_host: &OnHost<'_>) -> String {
    match (ratio(on_host), &on_host.entry.vs_baseline) {
        (Some(found), baseline) => {
            let mark = baseline.as_ref().map_or("", layout::mark);
            let accuracy = verdict(on_host).filter(|_| baseline.is_none()).unwrap_or_default();
            let percent = percent(found.ratio, [found.ratio, found.ratio]);
            format!("{percent} {mark}{accuracy}").trim_end().to_owned()
        }
        (None, _) => number(on_host),
    }
}
