//! A comparison as the first section of a page.

use super::model::{CellVerdict, ComparedCell, ComparisonReport};
use super::rows::{CHANGE, HEADERS, made, rows};
use crate::report::html::Forest;
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
    }
}

/// Rate of head by that of base, and its interval.
fn reading(cell: &ComparedCell) -> Option<(f64, [f64; 2])> {
    let rate = cell.rate.as_ref()?;
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    Some((ratio(rate.percent), rate.ci95?.map(ratio)))
}

fn plot(forest: &Forest, cell: &ComparedCell) -> Markup {
    let drawing = |(ratio, ends)| forest.drawing(BACKGROUND, ratio, ends, &forest.units(&cell.unit_ratios));
    reading(cell).map_or(html! {}, drawing)
}

fn field(header: &str, text: &str, verdict: CellVerdict) -> Markup {
    html! {
        @match header {
            "cell" => th scope="row" { (text) },
            "verdict" => td class=(class(verdict)) { (text) },
            _ => td { (text) },
        }
    }
}

/// As in the tables of other reports.
fn class(verdict: CellVerdict) -> &'static str {
    match verdict {
        CellVerdict::Slower => "slower",
        CellVerdict::Faster => "faster",
        CellVerdict::WithinMargin | CellVerdict::NotSlower => "within",
        CellVerdict::CannotTell | CellVerdict::Failed | CellVerdict::Missing => "none",
    }
}
