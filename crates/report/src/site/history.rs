//! Ratios over runs, a row for each cell on each host. Ratios, not rates: a machine's speed changes from day
//! to day, and two cells that run at the same time share it.

use super::SiteRun;
use crate::html::{HistoryMark, anchor, history as drawing};
use crate::layout;
use crate::model::{CellReport, Comparison};
use crate::numbers::percent;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// A cell on a host, run after run.
struct History<'a> {
    points: Vec<HistoryPoint<'a>>,
}

struct HistoryPoint<'a> {
    run: &'a SiteRun,
    comparison: &'a Comparison,
    /// Versions of the cell and of its baseline.
    versions: BTreeMap<String, String>,
}

/// By suite, then by host and cell.
type Histories<'a> = BTreeMap<&'a str, BTreeMap<(String, &'a str), History<'a>>>;

pub(super) fn body(runs: &[SiteRun]) -> Markup {
    let histories = histories(runs);
    html! {
        h1 { "History of ratios" }
        p { "Each cell in percent of its baseline's performance, run after run on the same kind of machine. \
             A version that changed is a vertical line and in the text beside it. A new version and a new \
             machine state look alike here; compare builds side by side before a difference is acted on." }
        @for (suite, rows) in &histories {
            h2 id={ "history." (suite) } { (suite) }
            div.scroll tabindex="0" role="region" aria-label={ "history of " (suite) } {
                table.list data-table={ "history." (suite) } {
                    thead { tr {
                        th scope="col" { "cell" } th scope="col" { "host" } th scope="col" { "newest" }
                        th scope="col" { "oldest to newest" } th scope="col" { "runs, and what changed" }
                    } }
                    tbody { @for ((host, cell), history) in rows { (row(suite, host, cell, history)) } }
                }
            }
        }
        @if histories.is_empty() { p { "No run with a ratio has been published yet." } }
    }
}

fn histories(runs: &[SiteRun]) -> Histories<'_> {
    let mut histories = Histories::new();
    // Builds of one change are not those of the next.
    for run in runs.iter().filter(|run| run.report.comparison.is_none()) {
        for suite in &run.report.suites {
            for cell in &suite.cells {
                let Some(comparison) = &cell.vs_baseline else { continue };
                let baseline = suite.cells.iter().find(|other| other.id == comparison.with);
                let versions = std::iter::once(cell).chain(baseline).flat_map(versions).collect();
                let rows = histories.entry(suite.name.as_str()).or_default();
                let history =
                    rows.entry((run.host(), cell.id.as_str())).or_insert(History { points: vec![] });
                history.points.push(HistoryPoint { run, comparison, versions });
            }
        }
    }
    histories
}

fn versions(cell: &CellReport) -> impl Iterator<Item = (String, String)> {
    cell.systems.iter().filter_map(|system| Some((system.name.clone(), system.version.clone()?)))
}

fn row(suite: &str, host: &str, cell: &str, history: &History<'_>) -> Markup {
    let Some(newest) = history.points.last() else { return html! {} };
    html! {
        tr {
            th scope="row" { a href={ (newest.run.file()) "#" (place(newest.run, suite, cell)) } { (cell) } }
            td data-l="host" { (host) }
            td data-l="newest" data-v=(newest.comparison.ratio) {
                (percent(newest.comparison.ratio, newest.comparison.ci95)) " "
                (layout::mark(newest.comparison))
            }
            td.ratio data-l="oldest to newest" {
                (drawing(&history.points.iter().enumerate().map(|at| mark(at, history)).collect::<Vec<_>>()))
            }
            td data-l="runs" {
                ol.history { @for (i, point) in history.points.iter().enumerate() {
                    li {
                        a href=(point.run.file()) { (point.run.day()) } ": "
                        (percent(point.comparison.ratio, point.comparison.ci95))
                        @for change in changes(history, i) { "; " strong { (change) } }
                    }
                } }
            }
        }
    }
}

/// The address of the cell's row in the first table that has it.
fn place(run: &SiteRun, suite: &str, cell: &str) -> String {
    let suites = run.report.suites.iter().filter(|found| found.name == suite);
    let tables = suites.flat_map(|suite| &suite.tables);
    let table = tables.into_iter().find(|table| table.main_cells().any(|entry| entry.id == cell));
    table.map_or_else(|| anchor(&[suite]), |table| anchor(&[suite, &table.name, cell]))
}

/// Versions that differ from those of the run before: `nginx 1.22.1 to 1.24.0`.
fn changes(history: &History<'_>, at: usize) -> Vec<String> {
    let Some(before) = at.checked_sub(1).map(|before| &history.points[before].versions) else {
        return Vec::new();
    };
    let changed = |(name, version): (&String, &String)| {
        let old = before.get(name).filter(|old| *old != version)?;
        Some(format!("{name} {old} to {version}"))
    };
    history.points[at].versions.iter().filter_map(changed).collect()
}

fn mark((at, point): (usize, &HistoryPoint<'_>), history: &History<'_>) -> HistoryMark {
    let is_changed = !changes(history, at).is_empty();
    HistoryMark { ratio: point.comparison.ratio, ci95: Some(point.comparison.ci95), is_changed }
}
