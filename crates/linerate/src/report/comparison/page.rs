//! A comparison as the first section of a page.

use super::model::{CellVerdict, ComparisonReport};
use super::rows::{HEADERS, made, rows};
use maud::{Markup, html};

pub(in crate::report) fn section(comparison: &ComparisonReport) -> Markup {
    html! {
        h1 { (comparison.sentence) }
        div.scroll tabindex="0" role="region" aria-label="cells" {
            table {
                thead { tr { @for header in HEADERS { th scope="col" { (header) } } } }
                tbody {
                    @for (cell, row) in comparison.cells.iter().zip(rows(comparison)) {
                        tr {
                            @for (header, text) in HEADERS.iter().zip(&row) {
                                (field(header, text, cell.verdict))
                            }
                        }
                    }
                }
            }
        }
        ul { @for line in made(comparison) { li { (line) } } }
    }
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
