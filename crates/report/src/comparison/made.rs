//! How a comparison was made, and changes, as text for all formats.

use super::latency;
use super::model::ComparisonReport;
use super::why::reasons;
use crate::model::Report;
use crate::numbers::{seconds, share, signed_percent, time};
use crate::words;
use linerate_analysis::stats::starts::StartReport;
use linerate_model::{ComparisonKind, PlannedArm, WrittenBySubject};

/// The unit of base and head, if it is the same everywhere.
fn unit(comparison: &ComparisonReport) -> Option<String> {
    let first = comparison.cells.first()?.unit?;
    comparison.cells.iter().all(|cell| cell.unit == Some(first)).then(|| words::unit(first))
}

/// How the numbers were made, as sentences; first the signs of the tables.
pub(crate) fn made(comparison: &ComparisonReport) -> Vec<String> {
    let ComparisonReport { base, head, .. } = comparison;
    let unit = unit(comparison).map_or_else(String::new, |unit| format!(" in {unit}"));
    let units: u32 = comparison.cells.iter().map(|cell| cell.units).sum();
    let arms = match comparison.commands.is_empty() {
        true => vec![format!("base: {}; head: {}", arm(base), arm(head))],
        false => meanings(comparison),
    };
    let is_of_revisions = !comparison.commands.is_empty() && base.resolved.is_some();
    let revisions = is_of_revisions.then(|| format!("base: {}; head: {}", arm(base), arm(head)));
    let margin = latency::margins(comparison);
    let not_slower = match comparison.kind {
        ComparisonKind::Gate => " or not slower by it",
        ComparisonKind::Compare => "",
    };
    let mut lines = vec![format!(
        "▲ faster, ▼ slower; ≠ differs by less than {margin}; ≈ within {margin}{not_slower}; ? open. \
         CPU is the time per operation, with a sign of its own: ▼ is more"
    )];
    lines.extend(arms);
    lines.extend(revisions);
    // The answer of servers has them already.
    lines.extend(if comparison.commands.is_empty() { reasons(comparison) } else { Vec::new() });
    lines.extend([
        format!(
            "change: both builds in duet, fresh processes in each of {units} pairs; {} of {}",
            seconds(comparison.seconds),
            seconds(comparison.budget_seconds)
        ),
        match comparison.commands.is_empty() {
            true => format!(
                "base: median of the trials of each cell by itself{unit}; head: that value by the change"
            ),
            false => format!(
                "baseline: median of its trials by itself{unit}; the others: that value by the change; CPU \
                 time is that of the server alone"
            ),
        },
    ]);
    lines.extend(latency::made(comparison));
    if comparison.cells.iter().any(|cell| cell.cpu_first) {
        lines.push("where a role used a CPU all the time, the CPU time is first, and decides".into());
    }
    lines.extend(
        comparison
            .cells
            .iter()
            .filter(|cell| cell.client_is_limit)
            .map(|cell| format!("{}: the client was the limit, so that equal rates show nothing", cell.id)),
    );
    lines.extend(comparison.aa.as_ref().map(|aa| {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let change = signed_percent(percent(aa.ratio), aa.ci95.map(|ends| ends.map(percent)));
        let end = match aa.smallest_bias {
            _ if aa.is_void => ": it differs from itself, so no cell has a verdict",
            Some(_) => ": no difference",
            None => "",
        };
        format!("A/A control, base against itself: {change}, n={}{end}", aa.n)
    }));
    lines.extend(comparison.smallest_detectable.map(|smallest| {
        format!(
            "with the spread of these pairs, the budget finds a slowdown of {} in 9 of 10 runs",
            share(smallest)
        )
    }));
    lines.extend(comparison.starts.iter().map(started));
    lines.extend(comparison.starts.iter().filter_map(failed));
    if comparison.kind == ComparisonKind::Gate {
        lines.push("a slowdown counts once a second series of fresh pairs confirms it".into());
    }
    lines.push("differences below about 1 % can come from the layout of the code alone".into());
    let details = comparison.cells.iter().filter_map(|cell| {
        Some(format!("{}: {}", cell.id, cell.detail.as_deref()?.lines().collect::<Vec<_>>().join(" ")))
    });
    lines.extend(details);
    lines.extend(comparison.notes.iter().chain(&comparison.written).cloned());
    lines
}

/// The cold start of a server.
fn started(start: &StartReport) -> String {
    let time = |ms: f64| time(ms * 1e3);
    format!(
        "{} starts in {}, and its first response takes {} (median of {} starts)",
        start.name,
        time(start.listens_ms),
        time(start.responds_ms),
        start.starts
    )
}

/// Starts that failed; `None` if there were none.
pub(super) fn failed(start: &StartReport) -> Option<String> {
    let StartReport { name, failed, starts, reason, .. } = start;
    let reason = reason.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
    let all = starts + failed;
    (*failed > 0).then(|| {
        format!("{name} failed at its start {failed} of {all} times, and was started again: {reason}")
    })
}

/// The meaning of each name.
fn meanings(comparison: &ComparisonReport) -> Vec<String> {
    let roles = std::iter::once(" (baseline)").chain(std::iter::repeat(""));
    let commands = comparison.commands.iter().zip(roles);
    commands.map(|(one, role)| format!("{}{role}: {}", one.name, one.command)).collect()
}

/// The text that a subject wrote on stderr at its start, in one line for each of the first ones.
pub(crate) fn written(by: &WrittenBySubject) -> String {
    const MOST_LINES: usize = 3;
    const LONGEST: usize = 200;
    let line = |text: &String| {
        let text = console::strip_ansi_codes(text);
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.into_owned(),
        }
    };
    let shown = by.lines.iter().take(MOST_LINES).map(line);
    let more = by.lines.len().saturating_sub(MOST_LINES);
    let more = (more > 0).then(|| format!("(and {more} more lines)"));
    let lines: Vec<String> = shown.chain(more).collect();
    format!("{} wrote on stderr at its start: {}", by.subject, lines.join("\n  "))
}

/// The head of a gate: a commit shortened, or the start of an arm.
pub(crate) fn short(head: &str) -> String {
    head.chars().take(24).collect()
}

fn arm(arm: &PlannedArm) -> String {
    match &arm.resolved {
        Some(commit) => format!("{} ({})", arm.arm, &commit[..commit.len().min(12)]),
        None => arm.arm.clone(),
    }
}

/// Host and versions in one line.
pub(super) fn host(report: &Report) -> String {
    let host = &report.host;
    format!(
        "{}, {} CPUs, kernel {}, linerate {}, {}",
        host.cpu_model, host.cpus, host.kernel, report.run.linerate, report.run.started
    )
}

/// `haproxy-tcp 3.0.11 (base), 3.2.5 (head)`.
pub(super) fn versions(report: &Report) -> Vec<String> {
    let systems = report.suites.iter().flat_map(|suite| &suite.cells).flat_map(|cell| &cell.systems);
    let mut all: Vec<String> = systems
        .filter_map(|system| {
            let settings = system.settings.iter().map(|(key, value)| format!(" {key}={value}"));
            let settings: String = settings.collect();
            Some(format!("{} {} ({}){settings}", system.name, system.version.as_ref()?, system.build))
        })
        .collect();
    all.sort();
    all.dedup();
    all
}
