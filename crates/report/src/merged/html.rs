//! As one HTML file that refers to no other.

use super::model::{MergedHost, MergedReport, MergedTable};
use super::multiples;
use super::view;
use crate::formats::Style;
use crate::html::{anchor, page, text_table};
use crate::layout;
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
            (text_table("hosts", None, &view::hosts(report)))
            @if !report.flags.is_empty() { ul { @for flag in &report.flags { li { (flag) } } } }
            @for host in &report.hosts { (facts(host)) }
            h2 { "Versions" }
            (text_table("versions", None, &view::versions(&report.hosts)))
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
            (text_table(&table.title, None, &view::ratios(report, table)))
            (multiples::multiples(suite, table))
            @for line in view::sentences(table) { p { (line) } }
            @if let Some(disagreements) = view::disagreements(table) {
                h4 { "Hosts that disagree" }
                (text_table(&format!("{}, hosts that disagree", table.title), None, &disagreements))
            }
            details {
                summary { "Values of each host" }
                (text_table(&format!("{}, values of each host", table.title), None, &view::values(table)))
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
