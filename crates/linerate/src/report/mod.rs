//! From journal to report, and from report to text.
//!
//! ```text
//! Run, [Trial] -> build -> Report (model) -> layout (grids, rows, sentences) -> terminal | md | html
//!                                         -> json | csv
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | the report as other programs read it |
//! | `build` | journal to report: what counts, what failed, what is compared with what |
//! | `words` | flags, outcomes and units as text |
//! | `format` | numbers as text |
//! | `layout` | what the three readable formats share: grids, rows of details, facts, how to read it |
//! | [`terminal`], [`markdown`], [`html`], [`json`], [`csv`] | one format each |
//! | [`load`], [`load_streams`], [`load_datagrams`], [`selftest`] | what `linerate load` and `linerate selftest` print |
//! | [`schema`] | the JSON schema of `report.json` |

mod build;
pub mod csv;
mod files;
mod format;
pub mod html;
pub mod json;
mod layout;
pub mod load;
pub mod load_datagrams;
pub mod load_streams;
pub mod markdown;
pub mod model;
pub mod schema;
pub mod selftest;
pub mod terminal;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use build::build;
pub use files::write_files;
pub use words::outcome_text;

use model::Report;
use std::fmt;
use std::str::FromStr;

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Terminal,
    Md,
    Html,
    Json,
    Csv,
}

impl Format {
    /// Every format, for help and tests.
    pub const ALL: [Self; 5] = [Self::Terminal, Self::Md, Self::Html, Self::Json, Self::Csv];

    /// As on the command line, and as the ending of a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Md => "md",
            Self::Html => "html",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| format!("unknown format `{name}`; there are {}", known()))
    }
}

/// What a terminal can show. The other formats have no use for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Columns; `None`: as wide as the tables get.
    pub width: Option<u16>,
}

/// The report as text, with a line break at its end.
#[must_use]
pub fn render(report: &Report, format: Format, style: Style) -> String {
    match format {
        Format::Terminal => terminal::render(report, style),
        Format::Md => markdown::render(report),
        Format::Html => html::render(report),
        Format::Json => json::render(report),
        Format::Csv => csv::render(report),
    }
}
