//! The report as one HTML file: no scripts, no external resources. maud escapes all text.

mod plot;

use super::comparison;
use super::layout::{self, Depth, GridCell};
use super::model::{Report, SuiteReport, TableReport};
use super::style::Style;
use super::words::{accuracy_name, verdict_name};
use maud::{DOCTYPE, Markup, PreEscaped, html};

#[must_use]
pub(super) fn render(report: &Report, _: Style) -> String {
    let names: Vec<&str> = report.suites.iter().map(|suite| suite.name.as_str()).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "linerate: " (names.join(", ")) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                @if let Some(compared) = &report.comparison { (comparison::section(compared)) }
                @for suite in &report.suites { (suite_section(suite)) }
                (run_section(report))
            }
        }
    };
    page.into_string() + "\n"
}

fn suite_section(suite: &SuiteReport) -> Markup {
    let exceptions = layout::exceptions(suite);
    html! {
        h1 { (suite.name) ": " (suite.question) }
        @for table in &suite.tables { (table_section(suite, table)) }
        @if !exceptions.is_empty() {
            h2 { "Failed, missing or incomplete cells" }
            table {
                tr { th { "cell" } th { "outcome" } th { "reason" } }
                @for exception in &exceptions {
                    tr {
                        th { (lines(exception.ids.iter().copied())) }
                        td { (exception.word) }
                        td { pre { (exception.detail) } }
                    }
                }
            }
        }
    }
}

fn table_section(suite: &SuiteReport, table: &TableReport) -> Markup {
    let grid = layout::grid(suite, table);
    let details = layout::details(suite, table, Depth::Full);
    html! {
        h2 { (grid.title) }
        p { (grid.caption) }
        table {
            tr { th { (grid.corner) } @for column in &grid.columns { th { (column) } } }
            @for row in &grid.rows {
                tr { th { (row.label) } @for cell in &row.cells { (cell_text(cell.as_ref())) } }
            }
        }
        (plot::plot(suite, table))
        ul { @for line in grid.notes.iter().chain(&layout::sentences(suite, table)) { li { (line) } } }
        @if !details.rows.is_empty() {
            h3 { "Cell by cell" }
            (text_table(&details.headers, &details.rows))
        }
    }
}

fn cell_text(cell: Option<&GridCell>) -> Markup {
    let Some(cell) = cell else { return html! { td {} } };
    let class = match (cell.verdict, cell.accuracy) {
        _ if !cell.is_ok => "none",
        (Some(verdict), _) => verdict_name(verdict),
        (None, Some(accuracy)) => accuracy_name(accuracy),
        (None, None) => "baseline",
    };
    html! {
        td class=(class) {
            strong { (cell.number) }
            @for line in cell.lines().skip(1) { br; (line) }
        }
    }
}

fn run_section(report: &Report) -> Markup {
    let pairs = |pairs: Vec<(String, String)>| {
        html! { table { @for (name, value) in &pairs { tr { th { (name) } td { (value) } } } } }
    };
    html! {
        h2 { "The run" }
        ul {
            @for line in layout::progress(report) { li { (line) } }
            li { "started " (report.run.started) ", with linerate " (report.run.linerate) }
            li { (layout::time(report)) }
        }
        p { "To repeat it:" }
        pre { (report.run.command) }
        h2 { "Versions" } (pairs(layout::versions(report)))
        h2 { "Host" } (pairs(layout::host(&report.host)))
        h2 { "How to read it" }
        ul { @for line in layout::HOW_TO_READ { li { (line) } } }
    }
}

fn text_table(headers: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        table {
            tr { @for header in headers { th { (header) } } }
            @for row in rows { tr { @for text in row { td { (text) } } } }
        }
    }
}

fn lines<'a>(texts: impl Iterator<Item = &'a str>) -> Markup {
    html! { @for (i, text) in texts.enumerate() { @if i > 0 { br; } (text) } }
}
