//! From journal to report, and from report to text.
//!
//! ```text
//! Run, [Unit]  -> build -> Report (model) -> layout (grids, rows, sentences) -> terminal | md | html
//!                                         -> json | csv
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`model`] | the report as other programs read it |
//! | `build` | journal to report: which units count, which failed, what is compared |
//! | [`comparison`] | two builds: verdict, table, comment, history |
//! | `words` | flags, outcomes and units as text |
//! | `numbers`, `digits`, `times` | numbers as text, their digits, units of times |
//! | `layout` | shared by the three readable formats: grids, rows of details, facts, reading guide |
//! | [`FORMATS`] | the table of formats, in this file |
//! | [`terminal`], `markdown`, [`html`], [`json`], [`csv`] | one format each |
//! | `axis` | from values to places in a drawing |
//! | `picture` | the answer as one drawing, on the page and as SVG |
//! | [`merged`] | one report of runs on several hosts |
//! | `site` | a static site of runs |
//! | [`load`], `load_*`, [`selftest`] | output of `load` and `selftest` |
//! | `schema` | the JSON schema of `report.json` |

mod axis;
mod build;
pub mod comparison;
mod csv;
mod digits;
mod html;
mod json;
mod layout;
pub mod load;
mod load_causes;
mod load_details;
pub mod load_flows;
mod load_json;
pub mod load_repeats;
pub mod load_series;
pub mod load_served;
pub mod load_sweep;
mod markdown;
pub mod merged;
pub mod model;
pub mod numbers;
mod picture;
#[cfg(test)]
mod schema;
pub mod selftest;
mod site;
mod terminal;
mod times;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use build::{build, from_stored};
pub use load_causes::next_of_upgrade;
pub use site::{SiteRun, site};
pub use terminal::plain_table;
pub use words::outcome_text;

use model::Report;

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
    render: fn(&R, Style) -> String,
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

    fn names(formats: &'static [Self]) -> impl Iterator<Item = &'static str> {
        formats.iter().map(|format| format.name)
    }

    fn find(formats: &'static [Self], name: &str) -> Result<&'static Self, String> {
        let list = || Self::names(formats).collect::<Vec<_>>().join(", ");
        let found = formats.iter().find(|format| format.name == name);
        found.ok_or_else(|| format!("unknown format `{name}`; formats: {}", list()))
    }

    fn files(formats: &'static [Self], report: &R) -> Vec<(String, String)> {
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
