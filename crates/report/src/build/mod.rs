//! Journal to report: a pure and total function. Every journal has a report.

mod cell;
mod facts;
mod path;
mod published;
mod suite;
mod table;

pub(super) use table::row_cpu;

use super::comparison;
use super::model::{REPORT_SCHEMA, Report, SuiteReport};
use linerate_analysis::summary::SortedJournal;
use linerate_model::{Duet, Run, Stored, Trial};

/// The report of a run. Warm-ups count only as time. Of two lines for the same cell and round the last one
/// counts; lines of cells that are not in the plan are ignored and flagged.
pub fn build(run: &Run, trials: &[Trial], duets: &[Duet]) -> Report {
    let journal = SortedJournal::sort(run, trials, duets);
    let mut suites: Vec<SuiteReport> =
        run.suites.iter().map(|planned| suite::suite(planned, &journal, run.published)).collect();
    let facts = facts::facts(run, &journal);
    let compared = comparison::build(run, trials, duets, &mut suites, facts.disturbance.as_ref());
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        run: facts,
        host: run.host.clone(),
        hosts: run.hosts.clone(),
        comparison: compared,
        suites,
    }
}

/// The report of what is stored.
pub fn from_stored(stored: &Stored) -> Report {
    build(&stored.run, &stored.trials, &stored.duets)
}
