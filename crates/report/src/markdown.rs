//! The report in Markdown: the answer, the tables; the rest is folded. In each table cell is a number, and
//! below it the percentage of the baseline.

use super::Style;
use super::comparison::{self, Answer};
use super::layout::{self, Depth, Grid, GridCell, GroupAnswer, Phrase, TextTable};
use super::model::{CellReport, PublishedReport, Report, SuiteReport, TableReport};
use std::fmt::Write;

pub(super) fn render(report: &Report, _: Style) -> String {
    let mut text = String::new();
    if let Some(answer) = comparison::answer(report) {
        answer_of_servers(&mut text, "# ", &answer);
    } else if let Some(line) = layout::first_line(report) {
        let _ = writeln!(text, "# {}\n", escape(&line));
    }
    lines(&mut text, &layout::warning(report).into_iter().collect::<Vec<_>>());
    if let Some(compared) = &report.comparison {
        lines(&mut text, &comparison::made(compared));
    }
    for suite in &report.suites {
        suite_text(&mut text, suite);
    }
    if let Some(latencies) = report.comparison.as_ref().and_then(comparison::latencies) {
        text_table(&mut text, &latencies);
        text.push('\n');
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
    fold(&mut text, "Versions", |text| facts(text, "system", &layout::versions(&report.suites)));
    for (title, of_host) in layout::hosts(report) {
        fold(&mut text, &title, |text| facts(text, "fact", &of_host));
    }
    fold(&mut text, "How to read it", |text| {
        for line in layout::HOW_TO_READ {
            let _ = writeln!(text, "- {line}");
        }
    });
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The answer of a comparison of servers; `mark` is before its headline.
pub(super) fn answer_of_servers(text: &mut String, mark: &str, answer: &Answer) {
    let headlines = answer.headlines.iter().map(|(line, _)| escape(line)).collect::<Vec<_>>();
    let end = if mark.starts_with('*') { "**" } else { "" };
    let _ = writeln!(text, "{mark}{}{end}\n", headlines.join("; "));
    for table in std::iter::once(&answer.table).chain(&answer.requests) {
        text_table(text, table);
        table.notes.iter().for_each(|note| _ = writeln!(text, "\n{}", escape(note)));
        text.push('\n');
    }
    let _ = writeln!(text, "{}\n", escape(&answer.facts));
    lines(text, &answer.reasons);
    lines(text, &answer.doubts);
}

/// Closed until a reader opens it.
pub(super) fn fold(text: &mut String, title: &str, content: impl FnOnce(&mut String)) {
    let _ = writeln!(text, "<details><summary>{}</summary>\n", escape(title));
    content(text);
    text.truncate(text.trim_end().len());
    text.push_str("\n\n</details>\n\n");
}

/// One group of a table in a line.
fn answer_text(answer: &GroupAnswer) -> String {
    let phrase = |phrase: &Phrase| match phrase {
        Phrase::Plain(text) => escape_inside(text),
        Phrase::Name(name) => format!("**{}**", escape(name)),
    };
    let sentences = std::iter::once(&answer.lead).chain(&answer.rest);
    let text: Vec<String> = sentences.map(|sentence| sentence.iter().map(phrase).collect()).collect();
    let label = Some(&answer.label).filter(|label| !label.is_empty());
    label.map(|label| format!("{}: ", escape(label))).unwrap_or_default() + &text.join(" ")
}

fn suite_text(text: &mut String, suite: &SuiteReport) {
    let _ = writeln!(text, "# {}: {}\n", escape(&suite.name), escape(&suite.question));
    suite.tables.iter().for_each(|table| table_text(text, suite, table));
    if !suite.reasons.is_empty() {
        let _ = writeln!(text, "## Why\n");
        lines(text, &comparison::reasons(suite));
    }
    if let Some(counted) = comparison::counted(suite) {
        let _ = writeln!(text, "{}:\n", counted.title);
        text_table(text, &counted);
        text.push('\n');
    }
    if let Some(published) = &suite.published {
        let _ = writeln!(text, "## As published\n");
        published_text(text, published, &[]);
    }
    let exceptions = layout::exceptions(suite);
    if !exceptions.is_empty() {
        let _ = writeln!(text, "## Failed, missing or incomplete cells\n");
        let rows = exceptions.iter().map(|e| vec![e.ids.join("\n"), e.word.to_owned(), e.detail.to_owned()]);
        write_table(text, &["cell", "outcome", "reason"], rows);
        text.push('\n');
    }
}

/// A document beside the run. `cells`: with CPU time and bottleneck of these.
pub(super) fn published_text(text: &mut String, published: &PublishedReport, cells: &[CellReport]) {
    lines(text, &layout::published::about(published));
    let tables = layout::published::tables(published, cells).into_iter();
    let findings = Some(layout::published::findings(published)).filter(|table| !table.rows.is_empty());
    for shown in findings.into_iter().chain(tables) {
        let _ = writeln!(text, "### {}\n", escape(&shown.title));
        text_table(text, &shown);
        text.push('\n');
        lines(text, &shown.notes);
    }
    fold(text, "Values of each round", |text| lines(text, &layout::published::rounds(published)));
}

pub(super) fn lines(text: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(text, "- {}", escape(line));
    }
    text.push_str(if lines.is_empty() { "" } else { "\n" });
}

fn table_text(text: &mut String, suite: &SuiteReport, table: &TableReport) {
    let metric = table.cells.first().and_then(|cell| cell.metric);
    let first = table.with_cells(|cell| cell.metric == metric);
    let grid = layout::grid(suite, &first);
    let _ = writeln!(text, "## {}\n", escape(grid.title));
    for answer in layout::answers(suite, table) {
        let _ = writeln!(text, "{}\n", answer_text(&answer));
    }
    grid_text(text, &grid);
    lines(text, &layout::warnings(table));
    let further = !layout::further_metrics(table).is_empty();
    let title = if further { "All metrics, comparisons" } else { "Comparisons" };
    fold(text, &format!("{title}, notes, cell by cell"), |text| {
        if further {
            grid_text(text, &layout::grid(suite, table));
        }
        for line in grid.notes.iter().chain(&layout::sentences(suite, table)) {
            let _ = writeln!(text, "- {}", escape(line));
        }
        let details = layout::details(suite, table, Depth::Full);
        if !details.rows.is_empty() {
            let _ = writeln!(text, "\n{}:\n", escape(&details.title));
            text_table(text, &details);
        }
    });
}

pub(super) fn grid_text(text: &mut String, grid: &Grid<'_>) {
    let _ = writeln!(text, "{}\n", escape(&grid.caption));
    let headers: Vec<&String> = std::iter::once(&grid.corner).chain(&grid.columns).collect();
    let cell = |cell: &Option<GridCell>| {
        cell.as_ref().map_or(String::new(), |s| s.lines().cloned().collect::<Vec<_>>().join("\n"))
    };
    let rows = grid.rows.iter().map(|row| {
        let cells = row.cells.iter().map(cell);
        std::iter::once(row.label.clone()).chain(cells).collect::<Vec<_>>()
    });
    write_table(text, &headers, rows);
    text.push('\n');
}

fn facts(text: &mut String, what: &str, facts: &[(String, String)]) {
    write_table(text, &[what, ""], facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]));
}

pub(super) fn text_table(text: &mut String, shown: &TextTable) {
    write_table(text, &shown.headers, &shown.rows);
}

fn write_table<H: AsRef<str>>(
    text: &mut String,
    headers: &[H],
    rows: impl IntoIterator<Item = impl AsRef<[String]>>,
) {
    fn line(cells: impl Iterator<Item = String>) -> String {
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    }
    text.push_str(&line(headers.iter().map(|header| escape(header.as_ref()))));
    let _ = writeln!(text, "|{}", "---|".repeat(headers.len()));
    for row in rows {
        text.push_str(&line(row.as_ref().iter().map(|cell| escape(cell))));
    }
}

/// External text must not become a column, a tag, a heading or a row; nor, where a forge shows it, a link, a
/// message to a user, or a reference to an issue.
pub(super) fn escape(text: &str) -> String {
    escape_inside(text.trim_end())
}

/// A space without width.
const APART: char = '\u{200b}';

/// With the spaces at both ends, for a part of a sentence.
fn escape_inside(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let rest = &text[at + character.len_utf8()..];
        match character {
            '|' | '\\' | '`' | '*' | '[' => escaped.extend(['\\', character]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            ':' if rest.starts_with("//") => escaped.push_str("&#58;"),
            '.' if text[..at].to_ascii_lowercase().ends_with("www") => escaped.push_str("&#46;"),
            // The space without width parts what a forge looks for in the text that it shows.
            '@' | '#' if rest.starts_with(|c: char| c.is_alphanumeric()) => {
                escaped.extend([character, APART]);
            }
            '-' if text[..at].to_ascii_lowercase().ends_with("gh") => escaped.extend([character, APART]),
            '#' => escaped.push_str("&#35;"),
            '\n' => escaped.push_str("<br>"),
            '\r' => {}
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_no_markup_link_or_reference() {
        for (given, shown) in [
            ("a | b", "a \\| b"),
            ("<img src=x>", "&lt;img src=x>"),
            ("http://box:80/", "http&#58;//box:80/"),
            ("see www.example.org", "see www&#46;example.org"),
            ("@name and a@b.c", "@\u{200b}name and a@\u{200b}b.c"),
            ("o/r#1, GH-2", "o/r#\u{200b}1, GH-\u{200b}2"),
            ("# heading", "&#35; heading"),
            ("[x](y)", "\\[x](y)"),
        ] {
            assert_eq!(escape(given), shown);
        }
    }

    #[test]
    fn the_title_of_what_is_folded_is_text() {
        let mut text = String::new();
        fold(&mut text, "<script>ssh:box</script>", |_| {});
        assert!(text.starts_with("<details><summary>&lt;script>"), "{text}");
    }
}
