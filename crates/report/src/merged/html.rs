//! As one HTML file that refers to no other.

use super::model::{MergedHost, MergedReport, Shown};
use super::multiples;
use super::view;
use crate::Style;
use crate::html::{anchor, page, text_table};
use crate::layout;
use maud::{Markup, html};

pub(super) fn render(report: &MergedReport, _: Style) -> String {
    let names: Vec<&str> = report.suites.iter().map(|suite| suite.name.as_str()).collect();
    let title = format!("linerate: {} on {} hosts", names.join(", "), report.hosts.len());
    let tables = report.shown();
    let body = html! {
        h1 { (title) }
        @for suite in &report.suites {
            section.suite id=(anchor(&[&suite.name])) {
                @for table in tables.iter().filter(|table| table.suite == suite.name) { (section(table)) }
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

fn section(table: &Shown<'_>) -> Markup {
    let title = &table.table().title;
    html! {
        @if table.is_first() { h2 { (table.suite) ": " (table.question) } }
        section.table id=(anchor(&[table.suite, &table.merged.name])) {
            h3 { (title) }
            p.caption { (view::caption(table).join("; ")) }
            (text_table(title, None, &view::ratios(table)))
            (multiples::multiples(table))
            @for line in view::sentences(table) { p { (line) } }
            @if let Some(disagreements) = view::disagreements(table) {
                h4 { "Hosts that disagree" }
                (text_table(&format!("{title}, hosts that disagree"), None, &disagreements))
            }
            details {
                summary { "Values of each host" }
                (text_table(&format!("{title}, values of each host"), None, &view::values(table)))
            }
        }
    }
}

fn facts(host: &MergedHost) -> Markup {
    html! {
        details {
            summary { "All facts of " (host.name) }
            @for run in host.runs.iter().take(1) {
                dl.facts {
                    @for (name, value) in layout::host(&run.host) { div { dt { (name) } dd { (value) } } }
                }
            }
            @for run in &host.runs { p { code { (run.run.command) } } }
        }
    }
}
