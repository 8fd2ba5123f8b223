//! `--resume`: a run that was cut off goes on with the cells and versions that it began with.

use crate::error::Error;
use crate::journal::{self, Journal};
use crate::measurement::{Duet, PlannedCell, PlannedSuite, Run, Stored, Trial};
use crate::plan::{self, Choice};
use std::path::Path;

/// The choice that gives at least the cells of a stored run.
pub(super) fn choice(run: &Run) -> Choice {
    Choice {
        suites: run.suites.iter().map(|suite| suite.name.clone()).collect(),
        quick: run.quick,
        published: run.published,
        rounds: None,
        only: if run.comparison.is_some() { origins(run) } else { Vec::new() },
        probe: run.suites.iter().any(|suite| !suite.probes.is_empty()),
        comparison: run.comparison.clone(),
    }
}

/// The suite's own cells of a comparison of builds: its arms need not fit others.
fn origins(run: &Run) -> Vec<String> {
    let cells = run.suites.iter().flat_map(|suite| suite.cells.iter().map(move |cell| (suite, cell)));
    cells.map(|(suite, cell)| globset::escape(&format!("{}:{}", suite.name, plan::origin(cell)))).collect()
}

/// Opens the journal, after checking that the suites still have the stored cells.
///
/// # Errors
/// A cell has changed, or the journal cannot be opened.
pub(super) fn open(
    folder: &Path,
    stored: Stored,
    now: Vec<PlannedSuite>,
) -> Result<(Run, Vec<Trial>, Vec<Duet>, Journal), Error> {
    let Stored { run, trials, duets, warnings } = stored;
    warnings.iter().for_each(|warning| crate::progress::note(&format!("warning: {warning}")));
    for suite in &run.suites {
        let now = now.iter().find(|s| s.name == suite.name);
        check_same(folder, &without_systems(suite), now.map(without_systems).as_ref())?;
    }
    let journal = journal::open(folder)?;
    Ok((run, trials, duets, journal))
}

/// Checks that each cell of `suite` is unchanged in `now`.
///
/// # Errors
/// The first cell that differs.
pub(super) fn check_same(
    folder: &Path,
    suite: &PlannedSuite,
    now: Option<&PlannedSuite>,
) -> Result<(), Error> {
    for cell in &suite.cells {
        let found = now.and_then(|now| now.cells.iter().find(|c| c.id == cell.id));
        if found != Some(cell) {
            return Err(Error::Input(format!(
                "{}: `{}` has changed since this run began (its suite, a system or a version): \
                 start a new run",
                folder.display(),
                cell.id
            )));
        }
    }
    Ok(())
}

/// Versions and missing systems are known once a suite is prepared.
fn without_systems(suite: &PlannedSuite) -> PlannedSuite {
    let cells = suite.cells.iter().map(PlannedCell::definition).collect();
    PlannedSuite { cells, ..suite.clone() }
}
