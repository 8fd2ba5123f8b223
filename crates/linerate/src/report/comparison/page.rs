//! A comparison as the first section of a page.

use super::model::{CellVerdict, ComparisonReport};
use super::rows::{HEADERS, made, rows};
use maud::{Markup, html};

pub(in crate::report) fn section(comparison: &ComparisonReport) -> Markup {
    html! {
        h1 { (comparison.sentence) }
        table {
            tr { @for header in HEADERS { th { (header) } } }
            @for (cell, row) in comparison.cells.iter().zip(rows(comparison)) {
                tr {
                    @for (column, text) in row.iter().enumerate() {
                        @if column == 0 { th { (text) } }
                        @else if HEADERS[column] == "verdict" { td class=(class(cell.verdict)) { (text) } }
                        @else { td { (text) } }
                    }
                }
            }
        }
        ul { @for line in made(comparison) { li { (line) } } }
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
