//! Lines about the run as a whole, and the reading guide.

use crate::model::{Flag, OutcomeWord, Report, SuiteReport};
use crate::numbers::seconds;
use crate::words::{self, NOT_MEASURED, oddity, outcome_name};
use linerate_model::{Host, PlannedHost};
use std::collections::{BTreeMap, BTreeSet};

/// The answer of a comparison, which is above all tables.
pub(crate) fn first_line(report: &Report) -> Option<String> {
    report.comparison.as_ref().map(|compared| compared.sentence.clone())
}

/// Others used the CPUs while the run was made.
pub(crate) fn warning(report: &Report) -> Option<String> {
    disturbance(report).map(|found| format!("warning: disturbed ({found})"))
}

/// How many of what others disturbed: everywhere the same count of the same thing.
pub(crate) fn disturbance(report: &Report) -> Option<String> {
    let is_of_servers = report.comparison.as_ref().is_some_and(|compared| !compared.commands.is_empty());
    let units = if is_of_servers { "pairs of runs" } else { "pairs" };
    report.run.disturbance.as_ref().map(|found| words::disturbance(found, units))
}

/// Progress of the run, and oddities of its journal.
pub(crate) fn progress(report: &Report) -> Vec<String> {
    let run = &report.run;
    let quick = if run.quick { ", quick" } else { "" };
    let rounds = format!(
        "run {}: {} of {} rounds complete{quick}, seed {}",
        run.id, run.rounds, run.planned_rounds, run.seed
    );
    let cut = (!run.complete).then(|| "incomplete run: cells without a number have no trial yet".to_owned());
    std::iter::once(rounds).chain(cut).chain(run.flags.iter().map(|found| oddity(*found))).collect()
}

/// Time by stage.
pub(crate) fn time(report: &Report) -> String {
    let run = &report.run;
    let share = if run.wall_seconds > 0.0 { run.measuring_seconds / run.wall_seconds * 100.0 } else { 0.0 };
    let stages: Vec<String> =
        run.stage_seconds.iter().map(|(stage, time)| format!("{stage} {}", seconds(*time))).collect();
    let rest = if stages.is_empty() { String::new() } else { format!("; rest: {}", stages.join(", ")) };
    format!(
        "{} in total, {} of it measuring ({share:.0} %){rest}",
        seconds(run.wall_seconds),
        seconds(run.measuring_seconds)
    )
}

/// Cells that are failed, missing or incomplete for one reason.
#[derive(Debug)]
pub(crate) struct Exception<'a> {
    pub(crate) ids: Vec<&'a str>,
    pub(crate) word: &'static str,
    pub(crate) detail: &'a str,
}

/// Cells with the same reason are one entry.
pub(crate) fn exceptions(suite: &SuiteReport) -> Vec<Exception<'_>> {
    let mut exceptions: Vec<Exception<'_>> = Vec::new();
    for cell in &suite.cells {
        let detail = match (&cell.detail, cell.outcome) {
            (None, OutcomeWord::Ok) => continue,
            (detail, _) => detail.as_deref().unwrap_or("no reason was recorded"),
        };
        let word =
            if cell.flags.contains(&Flag::NotMeasured) { NOT_MEASURED } else { outcome_name(cell.outcome) };
        let detail =
            detail.strip_prefix(NOT_MEASURED).map_or(detail, |rest| rest.trim_start_matches([':', ' ']));
        match exceptions.iter_mut().find(|e| e.word == word && e.detail == detail) {
            Some(same) => same.ids.push(&cell.id),
            None => exceptions.push(Exception { ids: vec![&cell.id], word, detail }),
        }
    }
    exceptions
}

/// Systems and the versions that their programs print, by name.
pub(crate) fn versions(suites: &[SuiteReport]) -> Vec<(String, String)> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for system in suites.iter().flat_map(|s| &s.cells).flat_map(|c| &c.systems) {
        versions.entry(&system.name).or_default().extend(system.version.as_deref());
    }
    let known = versions.into_iter().filter(|(_, versions)| !versions.is_empty());
    known
        .map(|(name, versions)| (name.to_owned(), versions.into_iter().collect::<Vec<_>>().join(", ")))
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
    let name = Some(("name", host.name.clone())).filter(|(_, name)| !name.is_empty());
    let named = name.into_iter().chain(fixed).map(|(name, value)| (name.to_owned(), value));
    named.chain(host.facts.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// The machines of a run, each with a title and its facts.
pub(crate) fn hosts(report: &Report) -> Vec<(String, Vec<(String, String)>)> {
    let of_roles = |planned: &PlannedHost| {
        let roles: Vec<String> = planned.roles.iter().map(ToString::to_string).collect();
        let facts = match planned.place.served_at() {
            Some(_) => vec![("server".into(), "it ran already; its CPU time is not known".into())],
            None => host(&planned.host),
        };
        (format!("Host of {}: {}", roles.join(", "), planned.place), facts)
    };
    let one = || vec![("Host".to_owned(), host(&report.host))];
    if report.hosts.is_empty() { one() } else { report.hosts.iter().map(of_roles).collect() }
}

/// The reading guide, an item each.
pub(crate) const HOW_TO_READ: &[&str] = &[
    "The value of the baseline is the median of its trials alone. Every other row that is compared has \
     that value by the ratio beside it, so values divide to ratios. Rows without a ratio have the median \
     of their trials. In parentheses: 95 % intervals; with fewer than six trials or pairs the range, with \
     their number (n=3), and no verdict. A comparison of two servers decides from three pairs of runs on, \
     where these agree (docs/compare.md).",
    "Percent of the baseline is performance: 73 % is slower, for seconds as for bytes per second; -27 % \
     where the baseline has nothing in place of what is compared. A latency and a CPU time are as much \
     longer or more: +38 %, 2.2x. The ratio is measured in duet, the two at the same time on the same CPUs, \
     with the CPU time per operation below it; else it comes from the trials of each round. What trials \
     alone say against a duet is a warning below the table.",
    "Rows are sorted. Below the rule: a baseline with nothing in place of what is compared, linerate's own \
     rows, references and limits; they have no place. Tier: rows whose intervals overlap with that of the \
     best of their tier; at most four, of which those behind the first may be joined.",
    "▲ faster, ▼ slower than the baseline: significant over the table (false discovery rate \
     5 %). △ ▽ the same by this comparison alone. ≠ differs, and the whole interval is within \
     3 %. ≈ within 3 % of the baseline. ? undecided. A comparison has its own margin in place of 3 %.",
    "A/A: the baseline in duet with itself. Where it differs, the verdicts of the table's duets are \
     withdrawn.",
    "Of limit: the limit's work is a part of that of every row. above-limit: the 95 % interval is wholly \
     above the limit, so the row did less than its work, or the limit was disturbed; find the cause before \
     the number is used. Of reference: another honest mark, which rows may exceed. Both are paired by round.",
    "Error: the reported value against the known truth, with its 95 % interval. right: the interval is \
     inside the table's tolerance; wrong: outside. A wrong report is neither fast nor slow.",
    "Bound by: the role that used its CPU for the whole window. client is the load generator: the number \
     is a lower bound for the system. waiting: no CPU was busy for the whole window. spinning: only those \
     of roles that are always busy. unknown: other processes had it.",
    "Sensitivity (`--probe`): by how much the rate falls with a role's CPU time: 1 by as much, 0 not at all.",
    "CPU of a row: process time of all roles, of two builds or commands that of the roles that differ; the \
     baseline's by the ratio. Cell by cell, in trials alone: each role; machine is the busy time of all \
     CPUs of the lab, interrupts included.",
    "Failed operations are counted beside the number; a trial in which more than 1 % failed has no number.",
    "Outliers are flagged, never dropped. steal: the hypervisor gave CPU time to other guests; disturbed: \
     other processes of this machine used CPU time. Both make results worse. autocorrelated: units resemble \
     those before them, so the interval of the ratio is too narrow.",
];
