//! How a comparison was made, and the history of its cells, as a section of a page.

use super::{HistoryMark, history as drawing, text_table};
use crate::comparison::{ComparisonReport, HistoryCell, HistoryEntry, latencies, made, short};
use crate::numbers::signed;
use crate::words;
use maud::{Markup, html};

pub(super) fn section(comparison: &ComparisonReport) -> Markup {
    html! {
        section {
            @if let Some(latencies) = latencies(comparison) {
                h2 { (latencies.title) }
                (text_table("latencies", None, &latencies))
            }
            h2 { "How it was compared" }
            ul { @for line in made(comparison) { li { (line) } } }
            @if comparison.history.len() > 1 { (so_far(comparison)) }
        }
    }
}

/// The history of each cell.
fn so_far(comparison: &ComparisonReport) -> Markup {
    html! {
        h2 { "Gates so far" }
        div.scroll tabindex="0" role="region" aria-label="gates so far" {
            table.list data-table="comparison.history" {
                thead { tr {
                    th scope="col" { "cell" } th scope="col" { "oldest to newest" } th scope="col" { "gates" }
                } }
                tbody { @for cell in &comparison.cells { (history_row(&comparison.history, &cell.id)) } }
            }
        }
        p.caption { "Rate of head by that of base. At a vertical line the host or linerate is another." }
    }
}

fn history_row<'h>(history: &'h [HistoryEntry], id: &str) -> Markup {
    let of_cell = |entry: &'h HistoryEntry| Some((entry, entry.cells.iter().find(|cell| cell.id == id)?));
    let points: Vec<(&HistoryEntry, &HistoryCell)> = history.iter().filter_map(of_cell).collect();
    let changes = |at: usize| at.checked_sub(1).map_or_else(Vec::new, |b| changes(points[b].0, points[at].0));
    let mark = |(at, (_, cell)): (usize, &(_, &HistoryCell))| {
        let change = cell.findings.main()?;
        Some(HistoryMark { ratio: change.ratio, ci95: change.ci95, is_changed: !changes(at).is_empty() })
    };
    let marks: Vec<HistoryMark> = points.iter().enumerate().filter_map(mark).collect();
    html! {
        tr {
            th scope="row" { (id) }
            td.ratio data-l="oldest to newest" { (drawing(&marks)) }
            td data-l="gates" {
                ol.history { @for (at, (entry, cell)) in points.iter().enumerate() {
                    li {
                        (entry.started) ", " (short(&entry.head))
                        @if let Some(main) = cell.findings.main() {
                            ": " (main.measure.name()) " " (signed(main))
                        }
                        @if let Some(cpu) = cell.findings.cpu() { ", CPU " (signed(cpu)) }
                        ", " (words::conclusion(entry.conclusion))
                        @for change in changes(at) { "; " strong { (change) } }
                    }
                } }
            }
        }
    }
}

/// Differences from the gate before, other than of builds.
fn changes(before: &HistoryEntry, now: &HistoryEntry) -> Vec<String> {
    let of = |entry: &HistoryEntry| {
        [("linerate", &entry.linerate), ("CPU", &entry.cpu_model), ("kernel", &entry.kernel)]
            .map(|(name, value)| (name, value.clone()))
    };
    let pairs = of(before).into_iter().zip(of(now)).filter(|(before, now)| before != now);
    pairs.map(|((name, before), (_, now))| format!("{name} {before} to {now}")).collect()
}
