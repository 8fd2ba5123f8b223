//! The report in Markdown: in each table cell a number, and below it the percentage of the baseline.

use super::comparison;
use super::layout::{self, Depth};
use super::model::{Report, SuiteReport};
use super::style::Style;
use std::fmt::Write;

#[must_use]
pub(super) fn render(report: &Report, _: Style) -> String {
    let mut text = String::new();
    if let Some(compared) = &report.comparison {
        text += &comparison::markdown(report, compared);
    }
    for suite in &report.suites {
        suite_text(&mut text, suite);
    }
    let _ = writeln!(text, "## The run\n");
    for line in layout::progress(report) {
        let _ = writeln!(text, "- {}", escape(&line));
    }
    let _ = writeln!(
        text,
        "- started {}, with linerate {}",
        escape(&report.run.started),
        escape(&report.run.linerate)
    );
    let _ = writeln!(text, "- {}", layout::time(report));
    let _ = writeln!(text, "\nTo repeat it:\n\n```\n{}\n```\n", report.run.command.replace("```", "'''"));
    facts(&mut text, "Versions", "system", &layout::versions(report));
    facts(&mut text, "Host", "fact", &layout::host(&report.host));
    let _ = writeln!(text, "## How to read it\n");
    for line in layout::HOW_TO_READ {
        let _ = writeln!(text, "- {line}");
    }
    text
}

fn suite_text(text: &mut String, suite: &SuiteReport) {
    let _ = writeln!(text, "# {}: {}\n", escape(&suite.name), escape(&suite.question));
    for table in &suite.tables {
        let grid = layout::grid(suite, table);
        let _ = writeln!(text, "## {}\n\n{}\n", escape(grid.title), escape(&grid.caption));
        let headers: Vec<&str> =
            std::iter::once(&grid.corner).chain(&grid.columns).map(String::as_str).collect();
        let cell = |cell: &Option<layout::GridCell>| {
            cell.as_ref().map_or(String::new(), |s| s.lines().cloned().collect::<Vec<_>>().join("\n"))
        };
        let rows = grid
            .rows
            .iter()
            .map(|row| std::iter::once(row.label.clone()).chain(row.cells.iter().map(cell)).collect());
        write_table(text, &headers, rows);
        text.push('\n');
        for line in grid.notes.iter().chain(&layout::sentences(suite, table)) {
            let _ = writeln!(text, "- {}", escape(line));
        }
        let details = layout::details(suite, table, Depth::Full);
        if !details.rows.is_empty() {
            let _ = writeln!(text, "\n### Cell by cell\n");
            let headers: Vec<&str> = details.headers.iter().map(String::as_str).collect();
            write_table(text, &headers, details.rows.into_iter());
        }
        text.push('\n');
    }
    let exceptions = layout::exceptions(suite);
    if !exceptions.is_empty() {
        let _ = writeln!(text, "## Failed, missing or incomplete cells\n");
        let rows = exceptions.iter().map(|e| vec![e.ids.join("\n"), e.word.to_owned(), e.detail.to_owned()]);
        write_table(text, &["cell", "outcome", "reason"], rows);
        text.push('\n');
    }
}

fn facts(text: &mut String, title: &str, what: &str, facts: &[(String, String)]) {
    let _ = writeln!(text, "## {title}\n");
    write_table(text, &[what, ""], facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]));
    text.push('\n');
}

pub(super) fn write_table(text: &mut String, headers: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let line =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    let _ = writeln!(text, "{}", line(&mut headers.iter().map(|header| escape(header))));
    let _ = writeln!(text, "|{}", "---|".repeat(headers.len()));
    for row in rows {
        let _ = writeln!(text, "{}", line(&mut row.iter().map(|cell| escape(cell))));
    }
}

/// External text must not become a column, a tag or a row.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.trim_end().chars() {
        match character {
            '|' | '\\' | '`' | '*' | '[' => escaped.extend(['\\', character]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push_str("<br>"),
            '\r' => {}
            other => escaped.push(other),
        }
    }
    escaped
}
