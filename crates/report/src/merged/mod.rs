//! One report of runs on several hosts: ratios within each host, and over the hosts their median and range.
//!
//! ```text
//! (host, Report)... -> build -> MergedReport (these reports, and what they have in common)
//!                                -> view (tables of text) -> terminal | md | html
//!                                -> json | csv
//! ```

mod build;
mod csv;
mod html;
mod markdown;
mod model;
mod multiples;
mod terminal;
mod view;

pub use build::build;
pub use model::*;

use super::Format;
use super::Style;

#[rustfmt::skip]
const FORMATS: &[Format<MergedReport>] = &[
    Format { name: "terminal", is_file: false, render: terminal::render },
    Format { name: "md", is_file: true, render: markdown::render },
    Format { name: "html", is_file: true, render: html::render },
    Format { name: "json", is_file: true, render: json },
    Format { name: "csv", is_file: true, render: csv::render },
];

pub fn format_names() -> impl Iterator<Item = &'static str> {
    Format::names(FORMATS)
}

/// The format of a name.
///
/// # Errors
/// No format has this name; the message lists the names.
pub fn format(name: &str) -> Result<&'static Format<MergedReport>, String> {
    Format::find(FORMATS, name)
}

/// Name and content of the files of a report: `report.md`, `.html`, `.json` and `.csv`.
pub fn files(report: &MergedReport) -> Vec<(String, String)> {
    Format::files(FORMATS, report)
}

fn json(report: &MergedReport, _: Style) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only") + "\n"
}
