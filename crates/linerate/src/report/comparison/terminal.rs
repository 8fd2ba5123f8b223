//! A comparison for a terminal.

use super::model::ComparisonReport;
use super::rows::{HEADERS, made, rows};
use crate::report::model::Report;
use crate::report::style::Style;
use crate::report::terminal::plain_table;
use crate::stats::verdict::Verdict;
use comfy_table::{Cell, Color};
use std::fmt::Write;

/// The verdict, the table, how it was made, and the command that replays it.
pub(in crate::report) fn render(report: &Report, comparison: &ComparisonReport, style: Style) -> String {
    let sentence = &comparison.sentence;
    let mut text =
        if style.colour { format!("\u{1b}[1m{sentence}\u{1b}[0m\n\n") } else { format!("{sentence}\n\n") };
    let mut table = plain_table(style);
    table.set_header(HEADERS);
    for (cell, row) in comparison.cells.iter().zip(rows(comparison)) {
        let colour = match cell.verdict {
            Verdict::Slower => Some(Color::Red),
            Verdict::Faster => Some(Color::Green),
            Verdict::CannotTell | Verdict::Failed | Verdict::Missing => Some(Color::Yellow),
            Verdict::SmallDifference | Verdict::WithinMargin | Verdict::NotSlower => None,
        };
        table.add_row(row.iter().enumerate().map(|(column, text)| match colour {
            Some(colour) if style.colour && HEADERS[column] == "verdict" => Cell::new(text).fg(colour),
            _ => Cell::new(text),
        }));
    }
    let _ = writeln!(text, "{}\n", table.trim_fmt());
    for line in lines(report, comparison) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// How it was made, and the command that replays it.
pub(in crate::report) fn lines(report: &Report, comparison: &ComparisonReport) -> Vec<String> {
    let mut lines = made(comparison);
    lines.push(format!("again: {}", report.run.command));
    lines
}
