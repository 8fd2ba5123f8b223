//! Journal to report: a pure and total function. Every journal has a report.

mod cell;
mod facts;
mod path;
mod published;
mod suite;
mod table;
mod transport;

use super::comparison;
use super::model::{REPORT_SCHEMA, Report, SuiteReport};
use crate::measurement::{Duet, Run, Stored, Trial};
use crate::summary::SortedJournal;

/// The report of a run. Warm-ups count only as time. Of two lines for the same cell and round the last one
/// counts; lines of cells that are not in the plan are ignored and flagged.
#[must_use]
pub fn build(run: &Run, trials: &[Trial], duets: &[Duet]) -> Report {
    let journal = SortedJournal::of(run, trials, duets);
    let mut suites: Vec<SuiteReport> =
        run.suites.iter().map(|planned| suite::suite(planned, &journal, run.published)).collect();
    let compared = comparison::build(run, trials, duets, &suites);
    if compared.is_some() {
        suites.iter_mut().for_each(without_verdicts);
    }
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        run: facts::facts(run, &journal),
        host: run.host.clone(),
        hosts: run.hosts.clone(),
        comparison: compared,
        suites,
    }
}

/// The report of what is stored.
#[must_use]
pub fn of(stored: &Stored) -> Report {
    build(&stored.run, &stored.trials, &stored.duets)
}

/// A comparison of builds is looked at while it goes on, so the intervals of a fixed number of units would be
/// too narrow; its tables show values alone.
fn without_verdicts(suite: &mut SuiteReport) {
    suite.cells.iter_mut().for_each(|cell| cell.vs_baseline = None);
    for table in &mut suite.tables {
        table.aa = None;
        table.cells.iter_mut().for_each(|cell| cell.vs_baseline = None);
    }
}
