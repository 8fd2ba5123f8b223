//! The sections of a suite: one for each table, and the cells without a number.

use super::anchor;
use super::plot::{self, Colours};
use super::{list, sentence};
use crate::layout::{self, GridCell, TextTable};
use crate::model::{CellReport, PublishedReport, SuiteReport, TableReport};
use crate::words::{accuracy_name, verdict_name};
use maud::{Markup, html};

pub(super) fn section(suite: &SuiteReport, colours: &Colours) -> Markup {
    let id = anchor(&[&suite.name]);
    let exceptions = layout::exceptions(suite);
    html! {
        section.suite id=(id) {
            h2 { a.anchor href={ "#" (id) } { (suite.name) ": " (suite.question) } }
            @for table in &suite.tables { (table_section(suite, table, colours)) }
            @if let Some(counted) = crate::comparison::counted(suite) {
                h3 { (counted.title) }
                (text_table(&counted.title, None, &counted))
            }
            @if let Some(published) = &suite.published { (published_tables(published, &[])) }
            @if !exceptions.is_empty() {
                h3 { "Failed, missing or incomplete cells" }
                div.scroll tabindex="0" role="region" aria-label={ "cells without a number, " (suite.name) } {
                    table {
                        thead { tr {
                            @for name in ["cell", "outcome", "reason"] { th scope="col" { (name) } }
                        } }
                        tbody { @for exception in &exceptions {
                            tr {
                                th scope="row" { (lines(exception.ids.iter().copied())) }
                                td { (exception.word) }
                                td.reason { (exception.detail) }
                            }
                        } }
                    }
                }
            }
        }
    }
}

fn table_section(suite: &SuiteReport, table: &TableReport, colours: &Colours) -> Markup {
    let id = anchor(&[&suite.name, &table.name]);
    let grid = layout::grid(suite, table);
    let answers = layout::answers(suite, table);
    // In a table of one group the grid would repeat the list.
    let has_matrix = answers.len() > 1 && grid.columns.len() > 1;
    html! {
        section.table id=(id) {
            h3 { a.anchor href={ "#" (id) } { (grid.title) } }
            p.caption { (grid.caption) }
            @if let [answer] = &answers[..] {
                p.answer { (sentence(&answer.lead)) @for more in &answer.rest { " " (sentence(more)) } }
            }
            (list::list(suite, table))
            @for warning in layout::warnings(table) { p.caption { (warning) } }
            @if has_matrix { details.matrix { summary { "As a grid" } (matrix(&grid)) } }
            (plot::figures(suite, table, colours))
            details {
                summary { "Comparisons in words, notes" }
                ul { @for line in layout::sentences(suite, table).iter().chain(grid.notes) { li { (line) } } }
            }
        }
    }
}

/// A document beside the run. `cells`: with CPU time and bottleneck of these.
pub(crate) fn published_tables(published: &PublishedReport, cells: &[CellReport]) -> Markup {
    let findings = layout::published::findings(published);
    let rounds = layout::published::rounds(published);
    html! {
        h3 { "As published" }
        ul { @for line in layout::published::about(published) { li { (line) } } }
        @if !findings.rows.is_empty() { h4 { (findings.title) } (published_table(&findings)) }
        @for shown in &layout::published::tables(published, cells) {
            h4 { (shown.title) }
            (published_table(shown))
        }
        @if !rounds.is_empty() {
            details { summary { "Values of each round" } ul { @for line in &rounds { li { (line) } } } }
        }
    }
}

pub(crate) fn published_table(shown: &TextTable) -> Markup {
    text_table(&format!("as published: {}", shown.title), Some("published"), shown)
}

pub(crate) fn text_table(label: &str, class: Option<&str>, shown: &TextTable) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table class=[class] {
                thead { tr { @for name in &shown.headers { th scope="col" { (name) } } } }
                tbody { @for row in &shown.rows {
                    tr {
                        th scope="row" { (row[0]) }
                        @for (name, text) in shown.headers.iter().zip(row).skip(1) {
                            td data-l=(name) { (lines(text.lines())) }
                        }
                    }
                } }
            }
        }
        @for note in &shown.notes { p.caption { (note) } }
    }
}

fn matrix(grid: &layout::Grid<'_>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ (grid.title) ", as a grid" } {
            table {
                thead { tr {
                    th scope="col" { (grid.corner) }
                    @for column in &grid.columns { th scope="col" { (column) } }
                } }
                tbody { @for row in &grid.rows {
                    tr {
                        th scope="row" { (row.label) }
                        @for cell in &row.cells { (grid_cell(cell.as_ref())) }
                    }
                } }
            }
        }
    }
}

fn grid_cell(cell: Option<&GridCell>) -> Markup {
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

fn lines<'a>(texts: impl Iterator<Item = &'a str>) -> Markup {
    html! { @for (i, text) in texts.enumerate() { @if i > 0 { br; } (text) } }
}
