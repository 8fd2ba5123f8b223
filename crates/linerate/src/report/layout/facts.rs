//! Lines about the run as a whole, and how to read the tables.

use super::grid::is_not_measured;
use crate::measurement::Host;
use crate::report::format::{seconds, sentence};
use crate::report::model::{OutcomeWord, Report, SuiteReport};
use crate::report::words::{NOT_MEASURED, outcome_name};
use std::collections::{BTreeMap, BTreeSet};

/// How far the run came, and what is odd about its journal.
pub(crate) fn progress(report: &Report) -> Vec<String> {
    let run = &report.run;
    let quick = if run.quick { ", quick" } else { "" };
    let rounds = format!(
        "run {}: {} of {} rounds complete{quick}, seed {}",
        run.id, run.rounds, run.planned_rounds, run.seed
    );
    let cut = (!run.complete)
        .then(|| "the run is not complete: cells without a number have no trial yet".to_owned());
    std::iter::once(rounds).chain(cut).chain(run.flags.iter().cloned()).collect()
}

/// Where the time went.
pub(crate) fn time(report: &Report) -> String {
    let run = &report.run;
    let share = if run.wall_seconds > 0.0 { run.measuring_seconds / run.wall_seconds * 100.0 } else { 0.0 };
    let stages: Vec<String> =
        run.stage_seconds.iter().map(|(stage, time)| format!("{stage} {}", seconds(*time))).collect();
    let rest = if stages.is_empty() { String::new() } else { format!("; the rest: {}", stages.join(", ")) };
    format!(
        "{} in all, {} of it measuring ({share:.0} %){rest}",
        seconds(run.wall_seconds),
        seconds(run.measuring_seconds)
    )
}

/// The A/A line: what the baseline and its aa differ by.
pub(crate) fn aa(suite: &SuiteReport) -> Option<String> {
    let line = sentence(&suite.baseline, suite.aa.as_ref()?);
    Some(format!("{line}; differences up to {:.2} % are not called differences", suite.noise_floor? * 100.0))
}

/// One reason why cells have no number, or not all their trials.
#[derive(Debug)]
pub(crate) struct Exception<'a> {
    pub(crate) ids: Vec<&'a str>,
    pub(crate) word: &'static str,
    pub(crate) detail: &'a str,
}

/// Cells with the same reason stand together.
pub(crate) fn exceptions(suite: &SuiteReport) -> Vec<Exception<'_>> {
    let mut exceptions: Vec<Exception<'_>> = Vec::new();
    for cell in &suite.cells {
        let detail = match (&cell.detail, cell.outcome) {
            (None, OutcomeWord::Ok) => continue,
            (detail, _) => detail.as_deref().unwrap_or("no reason was recorded"),
        };
        let word = if is_not_measured(cell) { NOT_MEASURED } else { outcome_name(cell.outcome) };
        let detail =
            detail.strip_prefix(NOT_MEASURED).map_or(detail, |rest| rest.trim_start_matches([':', ' ']));
        match exceptions.iter_mut().find(|e| e.word == word && e.detail == detail) {
            Some(same) => same.ids.push(&cell.id),
            None => exceptions.push(Exception { ids: vec![&cell.id], word, detail }),
        }
    }
    exceptions
}

/// Systems and the versions that the running programs told, by name.
pub(crate) fn versions(report: &Report) -> Vec<(String, String)> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for system in report.suites.iter().flat_map(|s| &s.cells).flat_map(|c| &c.systems) {
        versions.entry(&system.name).or_default().extend(system.version.as_deref());
    }
    let told = versions.into_iter().filter(|(_, versions)| !versions.is_empty());
    told.map(|(name, versions)| (name.to_owned(), versions.into_iter().collect::<Vec<_>>().join(", ")))
        .collect()
}

/// The machine, fact by fact.
pub(crate) fn host(host: &Host) -> Vec<(String, String)> {
    const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;
    let memory = format!("{:.1} GiB", host.memory_bytes as f64 / BYTES_PER_GIB);
    let fixed = [
        ("kernel", host.kernel.clone()),
        ("CPU", format!("{} x {}", host.cpus, host.cpu_model)),
        ("memory", memory),
        ("privileges", host.privileges.clone()),
    ];
    let named = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
    named.chain(host.facts.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// The legend, a sentence each.
pub(crate) const HOW_TO_READ: &[&str] = &[
    "Each number is the median of n rounds, with its 95 % bootstrap interval; with fewer than six rounds the range, and no verdict.",
    "Percent is performance: 73 % of the baseline is slower than it, whether the unit is seconds or bytes per second. It is the median of the ratios within each round, so that drift of the machine cancels.",
    "▲ faster and ▼ slower than the baseline: the interval excludes 100 % and the difference is above the noise floor, which is what the baseline and its own aa differ by in this run. ≈ no difference found. ? too few rounds to say.",
    "Bound by: whose CPU was saturated. client is the load generator: such a number is a lower bound of what the system can do.",
    "CPU: process time of each role; machine is the busy time of all CPUs of the lab, interrupts included.",
    "Operations that failed are counted beside the number; a trial in which more than 1 % failed has no number.",
    "Outliers are flagged, never dropped. steal: the hypervisor gave the CPUs to other guests; disturbed: other processes of this machine used them. Both make numbers worse than they are.",
];
