//! A comparison as a comment in Markdown: the verdict first, the rest folded.

use super::answer::answer;
use super::latency;
use super::made::{host, made, versions};
use super::model::ComparisonReport;
use crate::layout;
use crate::markdown::{answer_of_servers, escape, grid_text, lines, text_table};
use crate::model::{Report, TableCell};
use linerate_analysis::stats::verdict::Verdict;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Rows above the fold, and folded ones: the comment stays below 60 lines.
const ROWS: usize = 12;
const FOLDED_ROWS: usize = 16;

pub fn comment(report: &Report, comparison: &ComparisonReport) -> String {
    let mut text = String::new();
    match answer(report) {
        Some(mut answer) => {
            answer.shorten();
            answer_of_servers(&mut text, "**", &answer);
        }
        None => _ = writeln!(text, "**{}**\n", escape(&comparison.sentence)),
    }
    lines(&mut text, &layout::warning(report).into_iter().collect::<Vec<_>>());
    rows(&mut text, report, |cell| !is_quiet(cell), ROWS);
    text.push_str("<details><summary>All cells, how it was made, and how to repeat it</summary>\n\n");
    rows(&mut text, report, is_quiet, FOLDED_ROWS);
    if let Some(mut latencies) = latency::table(comparison) {
        latencies.rows.truncate(FOLDED_ROWS);
        text_table(&mut text, &latencies);
        text.push('\n');
    }
    let facts = [format!("host: {}", host(report)), format!("versions: {}", versions(report).join(", "))];
    lines(&mut text, &made(comparison).into_iter().take(FOLDED_ROWS).chain(facts).collect::<Vec<_>>());
    let command = report.run.command.replace("```", "'''");
    let _ = writeln!(text, "```\n{command}\n```\n\n</details>");
    text
}

/// The rows of all tables in which a build `is_meant`, each with its baseline.
fn rows(text: &mut String, report: &Report, is_meant: impl Fn(&TableCell) -> bool, most: usize) {
    let (mut left, mut more) = (most, 0);
    for (suite, table) in report.suites.iter().flat_map(|suite| suite.tables.iter().map(move |t| (suite, t)))
    {
        let with = |cell: &TableCell| Some(cell.vs_baseline.as_ref()?.with.clone());
        let baselines: BTreeSet<String> = table.cells.iter().filter_map(with).collect();
        let is_chosen = |cell: &&TableCell| !baselines.contains(&cell.id) && is_meant(cell);
        let chosen = table.cells.iter().filter(is_chosen);
        let ids: BTreeSet<String> =
            chosen.flat_map(|cell| with(cell).into_iter().chain([cell.id.clone()])).collect();
        let part = table.with_cells(|cell| ids.contains(&cell.id));
        let mut grid = layout::grid(suite, &part);
        more += grid.rows.len().saturating_sub(left);
        grid.rows.truncate(left);
        left -= grid.rows.len();
        if !grid.rows.is_empty() {
            grid_text(text, &grid);
            lines(text, &layout::warnings(&part));
        }
    }
    if more > 0 {
        let _ = writeln!(text, "{more} more are in the report.\n");
    }
}

/// Whether neither its rate nor its CPU time needs a look.
fn is_quiet(cell: &TableCell) -> bool {
    let quiet = [Verdict::SmallDifference, Verdict::WithinMargin, Verdict::NotSlower];
    let verdicts = |found: &linerate_analysis::judge::Comparison| {
        let cpu = found.duet.as_ref().and_then(|duet| duet.cpu_verdict);
        std::iter::once(found.verdict).chain(cpu).all(|verdict| quiet.contains(&verdict))
    };
    cell.vs_baseline.as_ref().is_some_and(verdicts)
}
