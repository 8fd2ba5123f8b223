//! Journal to report: pure, and total. Whatever a journal holds, there is a report of it.

mod cell;
mod facts;
mod journal;
mod suite;
mod table;
mod transport;

use super::model::{REPORT_SCHEMA, Report};
use crate::measurement::{Duet, Run, Trial};
use journal::Journal;

/// The report of a run. Warm-ups are left out of every number but the time they took. Of two lines for the same cell
/// and round the last one counts; lines of cells that the plan does not know are ignored, and the report says so.
#[must_use]
pub fn build(run: &Run, trials: &[Trial], _duets: &[Duet]) -> Report {
    let journal = Journal::of(run, trials);
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        run: facts::facts(run, &journal),
        host: run.host.clone(),
        suites: run.suites.iter().map(|planned| suite::suite(planned, &journal)).collect(),
    }
}
