//! As one HTML file that refers to no other.

use super::model::{MergedHost, MergedReport, MergedTable};
use super::multiples;
use super::view::{self, TextTable};
use crate::report::formats::Style;
use crate::report::html::{anchor, page};
use crate::report::layout;
use maud::{Markup, html};

pub(super) fn render(report: &MergedReport, _: Style) -> String {
    let names: Vec<&str> = report.suites.iter().map(|suite| suite.name.as_str()).collect();
    let title = format!("linerate: {} on {} hosts", names.join(", "), report.hosts.len());
    let body = html! {
        h1 { (title) }
        @for suite in &report.suites {
            section.suite id=(anchor(&[&suite.name])) {
                h2 { (suite.name) ": " (suite.question) }
                @for table in &suite.tables { (section(report, &suite.name, table)) }
            }
        }
        section #hosts {
            h2 { "The hosts" }
            (grid("hosts", &view::hosts(report)))
            @if !report.flags.is_empty() { ul { @for flag in &report.flags { li { (flag) } } } }
            @for host in &report.hosts { (facts(host)) }
            h2 { "Versions" }
            (grid("versions", &view::versions(&report.hosts)))
            h2 { "How to read it" }
            ul { @for line in view::HOW_TO_READ { li { (line) } } }
        }
    };
    page(&title, &body)
}

fn section(report: &MergedReport, suite: &str, table: &MergedTable) -> Markup {
    html! {
        section.table id=(anchor(&[suite, &table.name])) {
            h3 { (table.title) }
            p.caption { (view::caption(table).join("; ")) }
            (grid(&table.title, &view::ratios(report, table)))
            (multiples::multiples(suite, table))
            @for line in view::sentences(table) { p { (line) } }
            @if let Some(disagreements) = view::disagreements(table) {
                h4 { "Hosts that disagree" }
                (grid(&format!("{}, hosts that disagree", table.title), &disagreements))
            }
            details {
                summary { "Values of each host" }
                (grid(&format!("{}, values of each host", table.title), &view::values(table)))
            }
        }
    }
}

fn facts(host: &MergedHost) -> Markup {
    html! {
        details {
            summary { "All facts of " (host.name) }
            dl.facts {
                @for (name, value) in layout::host(&host.machine) { div { dt { (name) } dd { (value) } } }
            }
            @for run in &host.runs { p { code { (run.command) } } }
        }
    }
}

fn grid(label: &str, view: &TextTable) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for header in &view.headers { th scope="col" { (header) } } } }
                tbody { @for row in &view.rows {
                    tr { @for (column, text) in row.iter().enumerate() {
                        @if column == 0 { th scope="row" { (text) } } @else { td { (text) } }
                    } }
                } }
            }
        }
    }
}
