//! The journal, sorted by cell and round.

use crate::stats::verdict::MARGIN;
use linerate_contract::Role;
use linerate_model::{Duet, PlannedPair, Run, Trial, pair_id, probe_id};
use std::collections::BTreeMap;
use std::collections::btree_map::Values;
use std::iter::Copied;

/// The trials of planned cells and the duets of planned pairs and probes, by suite.
#[derive(Debug)]
pub struct SortedJournal<'a> {
    suites: BTreeMap<&'a str, BTreeMap<&'a str, CellTrials<'a>>>,
    duets: BTreeMap<&'a str, BTreeMap<String, BTreeMap<u32, &'a Duet>>>,
    /// Warm-up units, for the time that they took.
    warm_duets: Vec<&'a Duet>,
    /// Units of a second load, of all pairs.
    second_loads: Vec<&'a Duet>,
    /// The relative difference that matters in this run.
    pub margin: f64,
    /// Lines of cells, pairs or suites that are not in the plan.
    pub unknown_cells: usize,
    /// Lines that a later line for the same cell or pair and round replaced.
    pub replaced: usize,
}

/// The units of a pair or of a probe, in order.
pub type Units<'s, 'a> = Copied<Values<'s, u32, &'a Duet>>;

/// The trials of one cell, by round.
#[derive(Debug, Default)]
pub struct CellTrials<'a> {
    pub measured: BTreeMap<u32, &'a Trial>,
    pub warmups: BTreeMap<u32, &'a Trial>,
}

impl<'a> SortedJournal<'a> {
    pub fn sort(run: &'a Run, trials: &'a [Trial], duets: &'a [Duet]) -> Self {
        let mut journal = Self {
            suites: BTreeMap::new(),
            duets: BTreeMap::new(),
            warm_duets: Vec::new(),
            second_loads: Vec::new(),
            margin: run.policy().verdict().map_or(MARGIN, |builds| builds.margin),
            unknown_cells: 0,
            replaced: 0,
        };
        for suite in &run.suites {
            let cells = suite.cells.iter().map(|cell| (cell.id.as_str(), CellTrials::default()));
            journal.suites.insert(&suite.name, cells.collect());
            let pairs = suite.pairs.iter().map(PlannedPair::id);
            let probes = suite.probes.iter().map(|probe| probe_id(&probe.cell, probe.role));
            let ids = pairs.chain(probes).map(|id| (id, BTreeMap::new()));
            journal.duets.insert(&suite.name, ids.collect());
        }
        journal.sort_trials(trials);
        journal.sort_duets(duets);
        journal
    }

    fn sort_trials(&mut self, trials: &'a [Trial]) {
        for trial in trials {
            let cells = self.suites.get_mut(trial.suite.as_str());
            let Some(cell) = cells.and_then(|cells| cells.get_mut(trial.cell.as_str())) else {
                self.unknown_cells += 1;
                continue;
            };
            let rounds = if trial.warmup { &mut cell.warmups } else { &mut cell.measured };
            self.replaced += usize::from(rounds.insert(trial.round, trial).is_some());
        }
    }

    fn sort_duets(&mut self, duets: &'a [Duet]) {
        for duet in duets {
            if duet.warmup {
                self.warm_duets.push(duet);
                continue;
            }
            if duet.second_load.is_some() {
                self.second_loads.push(duet);
                continue;
            }
            let of_suite = self.duets.get_mut(duet.suite.as_str());
            let Some(units) = of_suite.and_then(|ids| ids.get_mut(&duet.id())) else {
                self.unknown_cells += 1;
                continue;
            };
            self.replaced += usize::from(units.insert(duet.unit, duet).is_some());
        }
    }

    pub fn cell(&self, suite: &str, cell: &str) -> Option<&CellTrials<'a>> {
        self.suites.get(suite)?.get(cell)
    }

    /// The units of a pair, in order.
    pub fn duets(&self, suite: &str, cells: [&str; 2]) -> Units<'_, 'a> {
        self.units(suite, &pair_id(cells))
    }

    /// The units of a probe, in order.
    pub fn probe(&self, suite: &str, cell: &str, role: Role) -> Units<'_, 'a> {
        self.units(suite, &probe_id(cell, role))
    }

    fn units(&self, suite: &str, id: &str) -> Units<'_, 'a> {
        let units = self.duets.get(suite).and_then(|ids| ids.get(id));
        units.map(BTreeMap::values).unwrap_or_default().copied()
    }

    pub fn all_duets(&self) -> impl Iterator<Item = &'a Duet> {
        let measured = self.duets.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values).copied();
        measured.chain(self.warm_duets.iter().chain(&self.second_loads).copied())
    }

    pub fn trials(&self) -> impl Iterator<Item = &'a Trial> {
        let cells = self.suites.values().flat_map(BTreeMap::values);
        cells.flat_map(|cell| cell.measured.values().chain(cell.warmups.values()).copied())
    }
}
