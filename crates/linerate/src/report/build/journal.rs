//! The journal, sorted by cell and round.

use crate::measurement::{AA, PlannedSuite, Run, Trial};
use std::collections::BTreeMap;

/// The trials of planned cells, by suite and cell.
#[derive(Debug)]
pub(super) struct SortedTrials<'a> {
    suites: BTreeMap<&'a str, BTreeMap<String, CellTrials<'a>>>,
    /// Lines of cells or suites that are not in the plan.
    pub(super) unknown_cells: usize,
    /// Lines that a later line for the same cell and round replaced.
    pub(super) replaced: usize,
}

/// The trials of one cell, by round.
#[derive(Debug, Default)]
pub(super) struct CellTrials<'a> {
    pub(super) measured: BTreeMap<u32, &'a Trial>,
    pub(super) warmups: BTreeMap<u32, &'a Trial>,
}

impl<'a> SortedTrials<'a> {
    pub(super) fn of(run: &'a Run, trials: &'a [Trial]) -> Self {
        let no_trials = |suite| planned_ids(suite).map(|id| (id, CellTrials::default())).collect();
        let suites = run.suites.iter().map(|suite| (suite.name.as_str(), no_trials(suite))).collect();
        let mut journal = Self { suites, unknown_cells: 0, replaced: 0 };
        for trial in trials {
            let planned =
                journal.suites.get_mut(trial.suite.as_str()).and_then(|cells| cells.get_mut(&trial.cell));
            let Some(cell) = planned else {
                journal.unknown_cells += 1;
                continue;
            };
            let rounds = if trial.warmup { &mut cell.warmups } else { &mut cell.measured };
            journal.replaced += usize::from(rounds.insert(trial.round, trial).is_some());
        }
        journal
    }

    pub(super) fn cell(&self, suite: &str, cell: &str) -> Option<&CellTrials<'a>> {
        self.suites.get(suite)?.get(cell)
    }

    pub(super) fn aa(&self, suite: &str, cell: &str) -> Option<&CellTrials<'a>> {
        self.cell(suite, &format!("{cell}{AA}"))
    }

    pub(super) fn trials(&self) -> impl Iterator<Item = &'a Trial> {
        let cells = self.suites.values().flat_map(BTreeMap::values);
        cells.flat_map(|cell| cell.measured.values().chain(cell.warmups.values()).copied())
    }
}

/// Ids of a suite's trials in the journal: its cells and the A/A control.
pub(super) fn planned_ids(suite: &PlannedSuite) -> impl Iterator<Item = String> {
    let aa = suite.aa.as_ref().map(|id| format!("{id}{AA}"));
    suite.cells.iter().map(|cell| cell.id.clone()).chain(aa)
}
