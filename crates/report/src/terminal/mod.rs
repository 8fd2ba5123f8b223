//! The report for a terminal, with colours where the style has them: the answer first, then compact tables,
//! or, in the long form, every number.

mod compact;
mod document;
mod narrow;

use super::Style;
use super::comparison::{self, Answer};
use super::layout::{self, Depth, Grid, GridCell, GroupAnswer, Phrase, TextTable};
use super::model::{Report, SuiteReport, TableReport};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Table,
    TableStyle, presets,
};
use linerate_analysis::stats::accuracy::Accuracy;
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::BUILD_AXIS;
use narrow::{fitted, requests_text};
use std::fmt::Write;

pub(super) fn render(report: &Report, style: Style) -> String {
    let mut text = String::new();
    if let Some(mut answer) = comparison::answer(report) {
        if !style.long {
            answer.shorten();
        }
        text.push_str(&answer_of_servers(report, &answer, style));
        if !style.long {
            return text;
        }
    } else {
        let line = layout::first_line(report).map(|line| bold(&line, style));
        let lines = line.into_iter().chain(layout::warning(report));
        let lines: String = lines.map(|line| fitted_line(&line, style)).collect();
        text += &if lines.is_empty() { lines } else { lines + "\n" };
    }
    for suite in &report.suites {
        suite_text(&mut text, suite, style);
    }
    if let Some(latencies) = report.comparison.as_ref().and_then(comparison::latencies) {
        text.push_str(&text_table(&latencies, style));
    }
    let lines = match &report.comparison {
        Some(compared) => comparison::made(compared),
        None => legend(&text).into_iter().chain(layout::progress(report)).collect(),
    };
    lines.iter().for_each(|line| text.push_str(&fitted_line(line, style)));
    match &report.comparison {
        // A command can be copied as one line.
        Some(_) => _ = writeln!(text, "again: {}", report.run.command),
        None => text.push_str(&fitted_line(&layout::time(report), style)),
    }
    if !style.long {
        let _ = writeln!(text, "every metric, interval and flag: linerate report DIR --long, or report.html");
    }
    text
}

/// The marks and columns that are in the tables, in words.
fn legend(tables: &str) -> Option<String> {
    const MARKS: [(&str, &str); 7] = [
        ("▲", "faster than the baseline"),
        ("▼", "slower"),
        ("△", "faster by this row alone"),
        ("▽", "slower by this row alone"),
        ("≠", "differs by less than 3 %"),
        ("≈", "within 3 %"),
        ("?", "undecided"),
    ];
    const COLUMNS: [(&str, &str); 2] = [
        ("tier", "the order, as far as it is certain; rows of one tier may be equal"),
        ("bound by", "what had no CPU time left, of client, server and relay; else the path, or waiting"),
    ];
    let is_there = |(mark, _): &&(&str, &str)| tables.contains(&format!(" {mark}"));
    let marks = MARKS.iter().filter(is_there).map(|(mark, words)| format!("{mark} {words}"));
    let is_column = |name: &str| ["  ", "\n"].iter().any(|end| tables.contains(&format!("  {name}{end}")));
    let columns = COLUMNS.iter().filter(|(name, _)| is_column(name));
    let columns = columns.map(|(name, words)| format!("{name}: {words}"));
    let marks = Some(marks.collect::<Vec<_>>().join(", ")).filter(|line| !line.is_empty());
    let lines: Vec<String> = marks.into_iter().chain(columns).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The answer of a comparison of servers: at most 14 lines for two of them.
fn answer_of_servers(report: &Report, answer: &Answer, style: Style) -> String {
    let mut text = String::new();
    for (headline, verdict) in &answer.headlines {
        let line = wrapped(headline, width(style) - INDENT.len());
        let lines: Vec<String> = line.lines().map(|line| format!("{INDENT}{line}")).collect();
        let _ = writeln!(text, "{}", coloured(&bold(&lines.join("\n"), style), colour(*verdict), style));
    }
    let mut table = empty(style, presets::NOTHING);
    let shown = fitted(&answer.table, width(style) - INDENT.len());
    table.set_header(shown.headers.iter().map(|name| header(name, style)));
    for (row, verdict) in shown.rows.iter().zip(&answer.verdicts) {
        let last = row.len().saturating_sub(1);
        table.add_row(row.iter().enumerate().map(|(at, word)| {
            let cell = Cell::new(word);
            match verdict.and_then(colour).filter(|_| style.colour && at == last) {
                Some(colour) => cell.fg(colour),
                None => cell,
            }
        }));
    }
    let is_number = |column: usize| column > 0 && column < 4;
    for (at, column) in table.column_iter_mut().enumerate() {
        if is_number(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(text, "\n{}\n", indented(&table.trim_fmt()));
    for table in &answer.requests {
        text.push_str(&requests_text(table, style));
    }
    for line in &answer.why {
        // Columns stay as they are where they fit.
        let width = width(style) - INDENT.len();
        let fits = console::measure_text_width(line) <= width;
        let _ = writeln!(text, "{}", indented(&if fits { line.clone() } else { wrapped(line, width) }));
    }
    let _ = writeln!(text, "{}", indented(&wrapped(&answer.facts, width(style) - INDENT.len())));
    for doubt in answer.doubts.iter().chain(&layout::warning(report)) {
        let _ = writeln!(text, "{}", indented(&wrapped(doubt, width(style) - INDENT.len())));
    }
    text
}

const INDENT: &str = "  ";

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("{INDENT}{line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn colour(verdict: Verdict) -> Option<Color> {
    match verdict {
        Verdict::Faster => Some(Color::Green),
        Verdict::Slower => Some(Color::Red),
        Verdict::Failed | Verdict::Missing => Some(Color::Yellow),
        _ => None,
    }
}

fn coloured(text: &str, colour: Option<Color>, style: Style) -> String {
    let code = match colour.filter(|_| style.colour) {
        Some(Color::Green) => 32,
        Some(Color::Red) => 31,
        Some(_) => 33,
        None => return text.to_owned(),
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Lines of text and tables are this wide where the terminal has no width, or a larger one.
const WIDTH: usize = 100;

fn width(style: Style) -> usize {
    style.width.map_or(WIDTH, |width| usize::from(width).min(WIDTH))
}

fn suite_text(text: &mut String, suite: &SuiteReport, style: Style) {
    let head = format!("{}: {}", bold(&suite.name, style), suite.question);
    let _ = writeln!(text, "{}", fitted_line(&head, style));
    for table in &suite.tables {
        let _ = writeln!(text, "{}", bold(fitted_line(&table.title, style).trim_end(), style));
        if style.long {
            long(text, suite, table, style);
        } else if table.columns == BUILD_AXIS {
            let grid = layout::grid(suite, table);
            let _ = writeln!(text, "{}\n{}", grid.caption, grid_table(&grid, style));
            text.push_str(&warnings(table, style));
        } else {
            text.push_str(&compact::table(suite, table, style));
        }
        text.push('\n');
    }
    for line in comparison::reasons(suite) {
        let _ = writeln!(text, "{}", wrapped(&line, width(style)));
    }
    if let Some(counted) = comparison::counted(suite).filter(|_| style.long) {
        let _ = writeln!(text, "\n{}\n{}", bold(&counted.title, style), details_table(&counted, style));
    }
    if let Some(published) = &suite.published {
        document::text(text, published, style);
    }
    for exception in layout::exceptions(suite) {
        let (reason, log) = exception.detail.split_once('\n').unwrap_or((exception.detail, ""));
        let line = format!("{} {}: {reason}", exception.ids.join(", "), bold(exception.word, style));
        text.push_str(&fitted_line(&line, style));
        log.lines().for_each(|line| _ = writeln!(text, "    {line}"));
    }
    text.push('\n');
}

/// Every metric, interval and flag of a table.
fn long(text: &mut String, suite: &SuiteReport, table: &TableReport, style: Style) {
    let grid = layout::grid(suite, table);
    let _ = writeln!(text, "{}", grid.caption);
    for answer in layout::answers(suite, table) {
        text.push_str(&answer_text(&answer, style));
    }
    let _ = writeln!(text, "{}", grid_table(&grid, style));
    text.push_str(&warnings(table, style));
    for line in layout::sentences(suite, table).iter().chain(grid.notes) {
        let _ = writeln!(text, "{line}");
    }
    let details = layout::details(suite, table, Depth::Brief);
    if !details.rows.is_empty() {
        let _ = writeln!(text, "\n{}:\n{}", details.title, details_table(&details, style));
    }
}

/// In lines, below a table.
fn warnings(table: &TableReport, style: Style) -> String {
    layout::warnings(table).iter().map(|line| wrapped(line, width(style))).collect()
}

/// An answer in lines.
fn answer_text(answer: &GroupAnswer, style: Style) -> String {
    let phrase = |phrase: &Phrase| match phrase {
        Phrase::Plain(text) => text.clone(),
        Phrase::Name(name) => bold(name, style),
    };
    let label = Some(&answer.label).filter(|label| !label.is_empty());
    let sentences = std::iter::once(&answer.lead).chain(&answer.rest);
    let sentences = sentences.map(|sentence| sentence.iter().map(phrase).collect::<String>());
    let words = label.map(|label| format!("{label}:")).into_iter().chain(sentences).collect::<Vec<_>>();
    wrapped(&words.join(" "), width(style))
}

/// A line, or several on a narrow terminal; a program that reads it gets one.
fn fitted_line(text: &str, style: Style) -> String {
    if style.width.is_some() { wrapped(text, width(style)) } else { text.to_owned() + "\n" }
}

/// Lines of at most `width` columns, broken between words.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let columns = console::measure_text_width(word);
        if used > 0 && used + 1 + columns > width {
            lines.push('\n');
            used = 0;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += columns;
    }
    lines + "\n"
}

fn grid_table(grid: &Grid<'_>, style: Style) -> String {
    let mut table = empty(style, presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(std::iter::once(&grid.corner).chain(&grid.columns).map(|name| header(name, style)));
    for row in &grid.rows {
        let cells =
            row.cells.iter().map(|cell| cell.as_ref().map_or_else(|| Cell::new(""), |s| cell_text(s, style)));
        table.add_row(std::iter::once(Cell::new(&row.label)).chain(cells));
    }
    table.trim_fmt()
}

fn cell_text(cell: &GridCell, style: Style) -> Cell {
    let text = Cell::new(cell.lines().cloned().collect::<Vec<_>>().join("\n"));
    let colour = match cell.verdict {
        _ if !cell.is_ok => Some(Color::Yellow),
        _ if cell.accuracy == Some(Accuracy::Wrong) => Some(Color::Red),
        verdict => verdict.and_then(self::colour),
    };
    match colour.filter(|_| style.colour) {
        Some(colour) => text.fg(colour),
        None => text,
    }
}

/// Only the last column, which contains sentences, is wrapped in a narrow terminal.
fn details_table(details: &TextTable, style: Style) -> String {
    let mut table = empty(style, LINE_UNDER_HEADERS);
    table.set_header(details.headers.iter().map(|name| header(name, style)));
    table.add_rows(&details.rows);
    let last = details.headers.len().saturating_sub(1);
    table
        .column_iter_mut()
        .take(last)
        .for_each(|column| _ = column.set_constraint(ColumnConstraint::ContentWidth));
    table.trim_fmt()
}

const LINE_UNDER_HEADERS: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// A table without lines, and an empty line below it.
pub(super) fn text_table(shown: &TextTable, style: Style) -> String {
    let mut table = plain_table(style);
    table.set_header(&shown.headers).add_rows(&shown.rows);
    table.trim_fmt() + "\n\n"
}

/// An empty table without lines, as wide as the terminal.
pub fn plain_table(style: Style) -> Table {
    empty(style, presets::NOTHING)
}

fn empty(style: Style, lines: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(lines);
    if style.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    // Without a width, comfy-table would query the terminal.
    match style.width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table
}

fn header(name: &str, style: Style) -> Cell {
    if style.colour { Cell::new(name).add_attribute(Attribute::Bold) } else { Cell::new(name) }
}

fn bold(text: &str, style: Style) -> String {
    if style.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}
