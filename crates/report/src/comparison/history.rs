//! The history of a gate: a line for each run, and its table and plot in text. It never decides.

use super::made::{short, versions};
use super::model::{ComparisonReport, HistoryCell, HistoryEntry};
use crate::Style;
use crate::model::Report;
use crate::numbers::{share, signed};
use crate::terminal::plain_table;
use crate::words;
use linerate_analysis::judge::pairs::{Finding, Measure};
use std::collections::BTreeSet;
use std::fmt::Write;

impl HistoryEntry {
    pub fn from_report(report: &Report, comparison: &ComparisonReport) -> Self {
        let arm = |arm: &linerate_model::PlannedArm| match &arm.resolved {
            Some(commit) => commit.clone(),
            None => arm.arm.clone(),
        };
        let cells = comparison.cells.iter().map(|cell| HistoryCell {
            id: cell.id.clone(),
            verdict: cell.verdict,
            units: cell.units,
            findings: cell.findings.clone(),
        });
        Self {
            started: report.run.started.clone(),
            run: report.run.id.clone(),
            linerate: report.run.linerate.clone(),
            cpu_model: report.host.cpu_model.clone(),
            kernel: report.host.kernel.clone(),
            base: arm(&comparison.base),
            head: arm(&comparison.head),
            versions: versions(report),
            margin: comparison.margin,
            conclusion: comparison.conclusion,
            disturbance: report.run.disturbance,
            aa: comparison.aa.clone(),
            cells: cells.collect(),
        }
    }
}

/// The entries of a file, and a warning for each other line.
pub fn entries(place: &str, text: &str) -> (Vec<HistoryEntry>, Vec<String>) {
    let (mut entries, mut warnings) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            Err(e) => warnings.push(format!("{place}:{}: not a line of a gate: {e}", index + 1)),
        }
    }
    (entries, warnings)
}

/// The page of a gate has the newest of its history.
const NEWEST: usize = 60;

/// The newest of some entries that have a cell of this comparison.
pub fn newest_of(mut entries: Vec<HistoryEntry>, comparison: &ComparisonReport) -> Vec<HistoryEntry> {
    let ids: BTreeSet<&str> = comparison.cells.iter().map(|cell| cell.id.as_str()).collect();
    entries.retain(|entry| entry.cells.iter().any(|cell| ids.contains(cell.id.as_str())));
    entries.split_off(entries.len().saturating_sub(NEWEST))
}

/// Columns of the plot on each side of zero.
const HALF: usize = 12;

/// A table of all gates, and a plot of the changes of each cell whose id contains `wanted`.
pub fn history(entries: &[HistoryEntry], wanted: &str, style: Style) -> String {
    let mut text = String::new();
    let ids: BTreeSet<&str> =
        entries.iter().flat_map(|entry| &entry.cells).map(|cell| cell.id.as_str()).collect();
    for id in ids.into_iter().filter(|id| id.contains(wanted)) {
        let points: Vec<(&HistoryEntry, &HistoryCell)> =
            entries.iter().flat_map(|e| e.cells.iter().filter(|c| c.id == id).map(move |c| (e, c))).collect();
        let widest = points.iter().filter_map(|(_, cell)| widest(cell)).fold(1.0, f64::max);
        let what = if points.iter().any(|(_, cell)| cell.findings.by(Measure::P50).is_some()) {
            "p50"
        } else {
            "the rate"
        };
        let _ = writeln!(text, "{id}: change of {what}, from -{widest:.1} % to +{widest:.1} %");
        let mut table = plain_table(style);
        table.set_header(["started", "head", "change (95 %)", "", "CPU (95 %)", "verdict", "gate"]);
        for (entry, cell) in points {
            table.add_row([
                entry.started.clone(),
                short(&entry.head),
                cell.findings.main().map_or_else(String::new, signed),
                cell.findings.main().map_or_else(String::new, |change| bar(change, widest)),
                cell.findings.cpu().map_or_else(String::new, signed),
                words::verdict(cell.verdict, &share(entry.margin)),
                gate_words(entry),
            ]);
        }
        let _ = writeln!(text, "{}\n", table.trim_fmt());
    }
    text
}

fn gate_words(entry: &HistoryEntry) -> String {
    let disturbed = if entry.disturbance.is_some() { ", disturbed" } else { "" };
    format!("{}{disturbed}", words::conclusion(entry.conclusion))
}

fn widest(cell: &HistoryCell) -> Option<f64> {
    let change = cell.findings.main()?;
    let ends = change.percent_ci95().unwrap_or([change.percent(); 2]);
    Some(ends.iter().fold(change.percent().abs(), |widest, end| widest.max(end.abs())))
}

/// The interval as a line, the estimate as a point, zero as a bar.
fn bar(change: &Finding, widest: f64) -> String {
    let column = |percent: f64| {
        let share = (percent / widest).clamp(-1.0, 1.0);
        (HALF as f64 * (1.0 + share)).round() as usize
    };
    let mut bar = vec![' '; 2 * HALF + 1];
    if let Some([low, high]) = change.percent_ci95() {
        bar[column(low)..=column(high)].fill('─');
    }
    bar[HALF] = '│';
    bar[column(change.percent())] = '●';
    bar.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_analysis::stats::verdict::Verdict;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_point_is_at_its_place_beside_zero() {
        let change = |percent: f64, ci95: Option<[f64; 2]>| {
            let ratio = |percent: f64| 1.0 + percent / 100.0;
            let ci95 = ci95.map(|ends| ends.map(ratio));
            let found =
                json!({"measure": "rate", "ratio": ratio(percent), "ci95": ci95, "verdict": "cannot tell"});
            serde_json::from_value::<Finding>(found).unwrap()
        };
        let bar = |percent, ci95| bar(&change(percent, ci95), 10.0);
        assert_eq!(bar(-10.0, None), format!("●{}│{}", " ".repeat(11), " ".repeat(12)));
        assert_eq!(
            bar(5.0, Some([-5.0, 10.0])),
            format!("{}{}│{}●{}", " ".repeat(6), "─".repeat(6), "─".repeat(5), "─".repeat(6))
        );
    }

    #[test]
    fn the_lines_of_published_gates_are_read() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/2026-11-23-xeon-2cpu-gates.jsonl");
        let (entries, warnings) = entries("h.jsonl", &std::fs::read_to_string(file).unwrap());
        assert!(warnings.is_empty() && entries.len() > 90, "{warnings:?}");
        let has = |conclusion: Verdict| entries.iter().any(|entry| entry.conclusion == conclusion);
        assert!(has(Verdict::Slower) && has(Verdict::NotSlower) && has(Verdict::CannotTell));
    }

    #[test]
    fn a_line_of_something_else_is_a_warning_with_its_number() {
        let (entries, warnings) = entries("h.jsonl", "\n{\"a\": 1}\n");
        assert!(
            entries.is_empty() && warnings[0].starts_with("h.jsonl:2: not a line of a gate"),
            "{warnings:?}"
        );
    }
}
