//! The journal, sorted by cells and number.

use crate::stats::verdict::MARGIN;
use linerate_model::{Run, Sides, Unit};
use std::collections::BTreeMap;

/// The units of planned cells, pairs and probes, by suite.
#[derive(Debug)]
pub struct SortedJournal<'a> {
    suites: Vec<BTreeMap<Sides, Units<'a>>>,
    /// The relative difference that matters in this run.
    pub margin: f64,
    /// Units that a later one of the same cells and number replaced.
    pub replaced: usize,
}

/// The units of a cell, a pair or a probe, by number.
#[derive(Debug, Default)]
pub struct Units<'a> {
    pub measured: BTreeMap<u32, &'a Unit>,
    pub warmups: BTreeMap<u32, &'a Unit>,
}

impl<'a> SortedJournal<'a> {
    pub fn sort(run: &'a Run, units: impl IntoIterator<Item = &'a Unit>) -> Self {
        let suites = run.suites.iter().map(|_| BTreeMap::new()).collect();
        let margin = run.policy().verdict().map_or(MARGIN, |comparison| comparison.margin);
        let mut journal = Self { suites, margin, replaced: 0 };
        for unit in units {
            let of_sides: &mut Units<'a> = journal.suites[unit.suite].entry(unit.sides).or_default();
            let same = if unit.warmup { &mut of_sides.warmups } else { &mut of_sides.measured };
            journal.replaced += usize::from(same.insert(unit.number, unit).is_some());
        }
        journal
    }

    /// `None` where there is no unit.
    pub fn units(&self, suite: usize, sides: Sides) -> Option<&Units<'a>> {
        self.suites[suite].get(&sides)
    }

    /// The measured units of a cell, a pair or a probe, in order.
    pub fn measured(&self, suite: usize, sides: Sides) -> impl Iterator<Item = &'a Unit> {
        self.units(suite, sides).into_iter().flat_map(|units| units.measured.values().copied())
    }

    /// All units, those of the warm-up included.
    pub fn all(&self) -> impl Iterator<Item = &'a Unit> {
        let of_sides = self.suites.iter().flat_map(BTreeMap::values);
        of_sides.flat_map(|units| units.measured.values().chain(units.warmups.values()).copied())
    }
}
