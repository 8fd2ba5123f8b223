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
//! | `numbers` | numbers as text |
//! | `layout` | shared by the three readable formats: grids, rows of details, facts, reading guide |
//! | `formats` | the table of formats |
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
mod formats;
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
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use build::{build, from_stored};
pub use formats::{FORMATS, Format, Style, TERMINAL, files, format, format_names};
pub use site::{SiteRun, site};
pub use terminal::plain_table;
pub use words::outcome_text;
