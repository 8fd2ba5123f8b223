//! A comparison as the first section of a page.

use super::model::{ComparedCell, ComparisonReport, HistoryCell, HistoryEntry};
use super::rows::{CHANGE, HEADERS, conclusion_words, made, rows, short, signed};
use crate::report::html::{Forest, HistoryMark, history as drawing};
use crate::stats::verdict::Verdict;
use maud::{Markup, html};

const BACKGROUND: &str = "comparison~margin";

pub(in crate::report) fn section(comparison: &ComparisonReport) -> Markup {
    let readings = || comparison.cells.iter().filter_map(reading);
    let forest = Forest::spanning(readings().map(|(_, ends)| ends), std::iter::empty(), comparison.margin);
    html! {
        h1 { (comparison.sentence) }
        @if let Some(forest) = &forest {
            svg.defs aria-hidden="true" width="0" height="0" { (forest.background_with(BACKGROUND, &[])) }
        }
        div.scroll tabindex="0" role="region" aria-label="cells" {
            table {
                thead { tr {
                    @for header in HEADERS {
                        th scope="col" { (header) }
                        @if let (CHANGE, Some(forest)) = (header, &forest) {
                            th.ratio scope="col" { "head, percent of base" (forest.scale()) }
                        }
                    }
                } }
                tbody {
                    @for (cell, row) in comparison.cells.iter().zip(rows(comparison)) {
                        tr {
                            @for (header, text) in HEADERS.into_iter().zip(&row) {
                                (field(header, text, cell.verdict))
                                @if let (CHANGE, Some(forest)) = (header, &forest) {
                                    td class={ "ratio " (class(cell.verdict)) } { (plot(forest, cell)) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if forest.is_some() {
            p.caption {
                "The line is the 95 % interval, each dot a unit, the first at the top. Shaded: the margin."
            }
        }
        ul { @for line in made(comparison) { li { (line) } } }
        @if comparison.history.len() > 1 { (so_far(comparison)) }
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
        let change = cell.rate.as_ref()?;
        let ci95 = change.ci95.map(|ends| ends.map(ratio));
        Some(HistoryMark { ratio: ratio(change.percent), ci95, is_changed: !changes(at).is_empty() })
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
                        @if let Some(change) = &cell.rate { ": rate " (signed(change)) }
                        @if let Some(change) = &cell.cpu { ", CPU " (signed(change)) }
                        ", " (conclusion_words(entry.conclusion))
                        @for change in changes(at) { "; " strong { (change) } }
                    }
                } }
            }
        }
    }
}

/// What differs from the gate before and is no build.
fn changes(before: &HistoryEntry, now: &HistoryEntry) -> Vec<String> {
    let of = |entry: &HistoryEntry| {
        [("linerate", &entry.linerate), ("CPU", &entry.cpu_model), ("kernel", &entry.kernel)]
            .map(|(name, value)| (name, value.clone()))
    };
    let pairs = of(before).into_iter().zip(of(now)).filter(|(before, now)| before != now);
    pairs.map(|((name, before), (_, now))| format!("{name} {before} to {now}")).collect()
}

/// Rate of head by that of base, and its interval.
fn reading(cell: &ComparedCell) -> Option<(f64, [f64; 2])> {
    let rate = cell.rate.as_ref()?;
    Some((ratio(rate.percent), rate.ci95?.map(ratio)))
}

fn ratio(percent: f64) -> f64 {
    1.0 + percent / 100.0
}

fn plot(forest: &Forest, cell: &ComparedCell) -> Markup {
    let drawing = |(ratio, ends)| forest.drawing(BACKGROUND, ratio, ends, &forest.units(&cell.unit_ratios));
    reading(cell).map_or(html! {}, drawing)
}

fn field(header: &str, text: &str, verdict: Verdict) -> Markup {
    html! {
        @match header {
            "cell" => th scope="row" { (text) },
            "verdict" => td class=(class(verdict)) { (text) },
            _ => td { (text) },
        }
    }
}

/// As in the tables of other reports.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::SmallDifference | Verdict::WithinMargin | Verdict::NotSlower => "within",
        Verdict::CannotTell | Verdict::Failed | Verdict::Missing => "none",
    }
}
