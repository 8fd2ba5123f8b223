//! The formats of a report. A format is one file with a `render` function, and one line here: the command
//! line, the files of a run and the tests loop over the table.

use super::model::Report;
use super::{csv, html, json, markdown, picture, terminal};

/// Colours and width of a terminal, and how much is printed. The other formats ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns; `None`: as wide as the tables get.
    pub width: Option<u16>,
    /// Every metric, interval and flag, in place of compact tables.
    pub long: bool,
}

/// How a report of the type `R` is written.
#[derive(Debug)]
pub struct Format<R: 'static = Report> {
    /// As on the command line, and as the ending of a file.
    pub name: &'static str,
    /// Whether it is among the files of a report.
    pub is_file: bool,
    pub(super) render: fn(&R, Style) -> String,
}

/// Every format; the first is printed after a run.
#[rustfmt::skip]
pub const FORMATS: &[Format] = &[
    Format { name: "terminal", is_file: false, render: terminal::render },
    Format { name: "md", is_file: true, render: markdown::render },
    Format { name: "html", is_file: true, render: html::render },
    Format { name: "json", is_file: true, render: json::render },
    Format { name: "csv", is_file: true, render: csv::render },
    Format { name: "svg", is_file: false, render: picture::render },
];

pub const TERMINAL: &Format = &FORMATS[0];

impl<R> Format<R> {
    /// The report as text, with a line break at its end.
    pub fn render(&self, report: &R, style: Style) -> String {
        (self.render)(report, style)
    }

    pub(super) fn names(formats: &'static [Self]) -> impl Iterator<Item = &'static str> {
        formats.iter().map(|format| format.name)
    }

    pub(super) fn find(formats: &'static [Self], name: &str) -> Result<&'static Self, String> {
        let list = || Self::names(formats).collect::<Vec<_>>().join(", ");
        let found = formats.iter().find(|format| format.name == name);
        found.ok_or_else(|| format!("unknown format `{name}`; formats: {}", list()))
    }

    pub(super) fn files(formats: &'static [Self], report: &R) -> Vec<(String, String)> {
        let files = formats.iter().filter(|format| format.is_file);
        files
            .map(|format| (format!("report.{}", format.name), format.render(report, Style::default())))
            .collect()
    }
}

pub fn format_names() -> impl Iterator<Item = &'static str> {
    Format::names(FORMATS)
}

/// The format of a name.
///
/// # Errors
/// No format has this name; the message lists the names.
pub fn format(name: &str) -> Result<&'static Format, String> {
    Format::find(FORMATS, name)
}

/// Name and content of the files of a report: `report.md`, `.html`, `.json` and `.csv`.
pub fn files(report: &Report) -> Vec<(String, String)> {
    Format::files(FORMATS, report)
}
