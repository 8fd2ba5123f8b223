//! The report of a scripted run: golden output of every format, and what must hold for any journal.

use super::fixture::{measurements, run, trials};
use super::model::{CellReport, OutcomeWord, Report, Verdict};
use super::{Format, Style, build, render};
use crate::measurement::{Outcome, TWIN, Trial};
use linerate_contract::{Bytes, Counts, ErrorKind, Nanos};

fn report() -> Report {
    build(&run(), &trials())
}

fn cell<'a>(report: &'a Report, id: &str) -> &'a CellReport {
    report
        .suites
        .iter()
        .flat_map(|suite| &suite.cells)
        .find(|cell| cell.id == id)
        .expect("it is in the fixture")
}

#[test]
fn golden_terminal() {
    insta::assert_snapshot!(render(&report(), Format::Terminal, Style::default()));
}

#[test]
fn golden_terminal_narrow_with_colours() {
    insta::assert_snapshot!(render(&report(), Format::Terminal, Style { colour: true, width: Some(100) }));
}

#[test]
fn golden_markdown() {
    insta::assert_snapshot!(render(&report(), Format::Md, Style::default()));
}

#[test]
fn golden_html() {
    insta::assert_snapshot!(render(&report(), Format::Html, Style::default()));
}

#[test]
fn golden_json() {
    insta::assert_snapshot!(render(&report(), Format::Json, Style::default()));
}

#[test]
fn golden_csv() {
    insta::assert_snapshot!(render(&report(), Format::Csv, Style::default()));
}
