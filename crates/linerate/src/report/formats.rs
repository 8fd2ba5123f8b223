//! The formats of a report. A format is one file with a `render` function, and one line here: the command
//! line, the files of a run and the tests loop over the table.

use super::model::Report;
use super::style::Style;
use super::{csv, html, json, markdown, terminal};

/// How a report is written.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// As on the command line, and as the ending of a file.
    pub name: &'static str,
    /// Whether a run writes it beside its journal.
    pub is_file: bool,
    render: fn(&Report, Style) -> String,
}

/// Every format; the first is printed after a run.
#[rustfmt::skip]
pub const FORMATS: &[Format] = &[
    Format { name: "terminal", is_file: false, render: terminal::render },
    Format { name: "md", is_file: true, render: markdown::render },
    Format { name: "html", is_file: true, render: html::render },
    Format { name: "json", is_file: true, render: json::render },
    Format { name: "csv", is_file: true, render: csv::render },
];

pub const TERMINAL: &Format = &FORMATS[0];

impl Format {
    /// The report as text, with a line break at its end.
    #[must_use]
    pub fn render(&self, report: &Report, style: Style) -> String {
        (self.render)(report, style)
    }
}

pub fn format_names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// The format of a name.
///
/// # Errors
/// No format has this name; the message lists the names.
pub fn format(name: &str) -> Result<&'static Format, String> {
    let list = || format_names().collect::<Vec<_>>().join(", ");
    let found = FORMATS.iter().find(|format| format.name == name);
    found.ok_or_else(|| format!("unknown format `{name}`; formats: {}", list()))
}
