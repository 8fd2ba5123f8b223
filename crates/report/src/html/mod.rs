//! The report as one HTML file: the answer first, evidence below. It refers to no other file, and its script
//! is a help: all is there without it. maud escapes all text.
//!
//! | module | contents |
//! |---|---|
//! | `top` | questions, answers, the run in a strip |
//! | `suite` | the sections of a suite: a table each, and what has no number |
//! | `list` | a table as rows with plots: value, ratio, CPU |
//! | `forest`, `bars` | the small plots inside rows |
//! | `plot` | figures: percentiles, lines over time and by parameter, layers |
//! | `comparison` | how a comparison was made, and its history |
//! | `why` | functions and flame graphs of servers that differ |
//! | `run` | the run in full: versions, host, reading guide |

mod bars;
mod comparison;
mod forest;
mod list;
mod plot;
mod run;
mod suite;
mod top;
mod why;

pub(super) use forest::Forest;
pub(super) use plot::{HistoryMark, history};
pub(super) use suite::{published_table, published_tables, text_table};

use super::Style;
pub(super) use super::layout::anchor;
use super::layout::{Phrase, Sentence};
use super::model::Report;
use super::picture::STYLE;
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub(super) fn render(report: &Report, _: Style) -> String {
    render_below(report, &html! {})
}

/// The page of a run with something above it.
pub(super) fn render_below(report: &Report, above: &Markup) -> String {
    let names: Vec<&str> = report.suites.iter().map(|suite| suite.name.as_str()).collect();
    let colours = plot::Colours::new(&report.suites);
    let body = html! {
        (above)
        (top::top(report))
        @for suite in &report.suites { (suite::section(suite, &colours)) }
        (why::sections(report))
        @if let Some(compared) = &report.comparison { (comparison::section(compared)) }
        (run::section(report))
    };
    page(&format!("linerate: {}", names.join(", ")), &body)
}

/// A whole page around a body.
pub(super) fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // A page without an icon would request one.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                script { (PreEscaped(include_str!("page.js"))) }
            }
        }
    };
    page.into_string() + "\n"
}

pub(super) fn sentence(sentence: &Sentence) -> Markup {
    html! {
        @for phrase in sentence {
            @match phrase {
                // A number stays with its sign.
                Phrase::Plain(text) => (text.replace(" %", "\u{a0}%")),
                Phrase::Name(name) => strong { (name) }
            }
        }
    }
}
