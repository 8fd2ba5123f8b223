//! A comparison as a comment in Markdown: the verdict first, the rest folded.

use super::model::{ComparedCell, ComparisonReport};
use super::rows::{HEADERS, host, made, rows, versions};
use crate::report::markdown::{escape, write_table};
use crate::report::model::Report;
use crate::stats::verdict::Verdict;
use std::fmt::Write;

/// Rows above the fold, and folded ones: the comment stays below 60 lines.
const ROWS: usize = 12;
const FOLDED_ROWS: usize = 16;

#[must_use]
pub fn comment(report: &Report, comparison: &ComparisonReport) -> String {
    let mut text = format!("**{}**\n\n", escape(&comparison.sentence));
    let all: Vec<(&ComparedCell, Vec<String>)> = comparison.cells.iter().zip(rows(comparison)).collect();
    let quiet = [Verdict::SmallDifference, Verdict::WithinMargin, Verdict::NotSlower];
    let is_quiet = |cell: &ComparedCell| quiet.contains(&cell.verdict);
    let table = |text: &mut String, wanted: bool, most: usize| {
        let chosen: Vec<_> = all.iter().filter(|(cell, _)| is_quiet(cell) != wanted).collect();
        if !chosen.is_empty() {
            write_table(text, &HEADERS, chosen.iter().take(most).map(|(_, row)| row.clone()));
            if let Some(more @ 1..) = chosen.len().checked_sub(most) {
                let _ = writeln!(text, "\n{more} more are in the report.");
            }
            text.push('\n');
        }
    };
    table(&mut text, true, ROWS);
    text.push_str("<details><summary>All cells, how it was made, and how to repeat it</summary>\n\n");
    table(&mut text, false, FOLDED_ROWS);
    for line in made(comparison).iter().take(FOLDED_ROWS) {
        let _ = writeln!(text, "- {}", escape(line));
    }
    let _ = writeln!(text, "- host: {}", escape(&host(report)));
    let _ = writeln!(text, "- versions: {}", escape(&versions(report).join(", ")));
    let command = report.run.command.replace("```", "'''");
    let _ = writeln!(text, "\n```\n{command}\n```\n\n</details>");
    text
}

/// The same as a part of a longer document.
pub(in crate::report) fn markdown(report: &Report, comparison: &ComparisonReport) -> String {
    let mut text = format!("# {}\n\n", escape(&comparison.sentence));
    write_table(&mut text, &HEADERS, rows(comparison).into_iter());
    text.push('\n');
    for line in super::lines(report, comparison) {
        let _ = writeln!(text, "- {}", escape(&line));
    }
    text.push('\n');
    text
}
