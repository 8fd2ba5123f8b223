//! Journal to report: a pure and total function. Every journal has a report.

mod cell;
mod facts;
mod path;
mod published;
mod rates;
mod suite;
mod table;

use super::comparison;
use super::model::{REPORT_SCHEMA, Report, SuiteReport};
use linerate_analysis::judge::SortedJournal;
use linerate_analysis::judge::pairs::judge;
use linerate_model::journal::Journal;
use linerate_model::{Run, Stored};

/// The report of a run. Warm-ups count only as time. Of two units with the same cells and number the last one
/// counts; lines of cells that are not in the plan are ignored and flagged.
pub fn build(run: &Run, journal: &Journal) -> Report {
    let told = rates::as_rates(run);
    let run = told.as_ref();
    let units = SortedJournal::sort(run, &journal.units);
    let judgement = judge(run, &journal.units);
    let suite = |index| suite::suite(run, index, &units, judgement.as_ref());
    let suites: Vec<SuiteReport> = (0..run.suites.len()).map(suite).collect();
    let facts = facts::facts(run, &units, journal.unknown);
    let compared = judgement.and_then(|judgement| {
        let seconds =
            journal.units.iter().map(|unit| unit.time().as_secs_f64()).fold(0.0, |all, time| all + time);
        comparison::build(run, &judgement, &suites, &units, seconds)
    });
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
    build(&stored.run, &stored.journal)
}
