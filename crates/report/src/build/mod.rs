//! Journal to report: a pure and total function. Every journal has a report.

mod cell;
mod facts;
mod path;
mod published;
mod suite;
mod table;

use super::comparison;
use super::model::{REPORT_SCHEMA, Report, SuiteReport};
use linerate_analysis::judge::SortedJournal;
use linerate_analysis::judge::pairs::judge;
use linerate_model::{Duet, Run, Stored, Trial};

/// The report of a run. Warm-ups count only as time. Of two lines for the same cell and round the last one
/// counts; lines of cells that are not in the plan are ignored and flagged.
pub fn build(run: &Run, trials: &[Trial], duets: &[Duet]) -> Report {
    let journal = SortedJournal::sort(run, trials, duets);
    let judgement = judge(run, trials, duets);
    let suite = |planned| suite::suite(planned, &journal, judgement.as_ref(), run.published);
    let suites: Vec<SuiteReport> = run.suites.iter().map(suite).collect();
    let facts = facts::facts(run, &journal);
    let compared = judgement.and_then(|judgement| {
        let spent = trials.iter().map(Trial::time).chain(duets.iter().map(Duet::time));
        let seconds = spent.map(|time| time.as_secs_f64()).sum();
        comparison::build(run, &judgement, &suites, seconds, duets)
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
    build(&stored.run, &stored.trials, &stored.duets)
}
