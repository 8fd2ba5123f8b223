//! The first measurements of a pair of commands: what was started to learn about them is warm, so that the
//! trials alone and the unit that decides how both share the CPUs need no start of their own.

use super::duet::Windows;
use super::launch::{Launches, TimedWindow, alone};
use super::windows::Manner;
use super::{Context, Stages, measure};
use crate::lab::pair::Pair;
use crate::lab::{Lab, LabError};
use crate::measurement::{Found, Outcome, PlannedSuite, Sharing, Sides, Stage, Unit};
use crate::plan::Step;
use linerate_contract::Nanos;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// The window of a trial alone, and of the unit that decides how both share the CPUs: this part of a budget,
/// within these.
const OF_BUDGET: u64 = 20;
const AT_LEAST: Nanos = Nanos(250_000_000);
const USUAL: Nanos = Nanos(500_000_000);

/// A pair that runs.
#[derive(Debug)]
pub struct RunningPair<'a> {
    pub suite: &'a PlannedSuite,
    /// The indices of the command and of the baseline.
    pub cells: [usize; 2],
    /// The sides that have no trial alone yet.
    pub alone: &'a [usize],
    pub budget: Option<Nanos>,
    /// A window is at least as long, so that responses end in it.
    pub least: Nanos,
    /// How both share the CPUs until that is decided.
    pub sharing: Sharing,
    pub seed: u64,
}

impl RunningPair<'_> {
    /// Measures sides alone, and then both at the same time. Both go on running.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] or [`LabError::Lost`]: the run cannot go on. All else is an outcome.
    pub fn measure(
        &self,
        labs: Pair<'_>,
        context: Context<'_>,
        stages: BTreeMap<Stage, Nanos>,
    ) -> Result<Vec<Unit>, LabError> {
        let [a, b] = labs;
        let mut units = Vec::new();
        for side in self.alone {
            let lab = if *side == 0 { &mut *a } else { &mut *b };
            units.push(self.trial(lab, context, *side)?);
        }
        units.push(self.both([a, b], context, stages)?);
        Ok(units)
    }

    fn window(&self) -> Nanos {
        let usual = self.budget.map_or(USUAL, |budget| Nanos(budget.0 / OF_BUDGET).clamp(AT_LEAST, USUAL));
        usual.max(self.least)
    }

    fn trial(&self, lab: &mut dyn Lab, context: Context<'_>, side: usize) -> Result<Unit, LabError> {
        let cell = &self.suite.cells[self.cells[side]];
        // In one network the sides have a port each.
        let window = TimedWindow { second: side == 1, ..alone(self.window()) };
        let mut stages = Stages { at: lab.now(), times: BTreeMap::new() };
        let at = stages.at;
        let measured = Launches::new(context, cell, Some(window))
            .map_err(|reason| super::failed(Stage::Start, reason, String::new()))
            .and_then(|launches| stages.time(lab, Stage::Measure, |lab| measure(lab, &launches, true)));
        let (outcome, measurement) = match measured {
            Ok((measurement, _)) => (Outcome::Ok, Some(measurement)),
            Err(stopped) => (stopped.outcome()?, None),
        };
        let sides = Sides::One(self.cells[side]);
        Ok(Unit { at, outcome, stages: stages.times, ..Unit::new(sides, Found::Alone(measurement)) })
    }

    fn both(
        &self,
        [a, b]: Pair<'_>,
        context: Context<'_>,
        mut stages: BTreeMap<Stage, Nanos>,
    ) -> Result<Unit, LabError> {
        let cells = self.cells.map(|cell| &self.suite.cells[cell]);
        let at = a.now();
        let manner = Manner::exactly(self.sharing, self.window());
        let random = Pcg64Mcg::seed_from_u64(self.seed ^ (self.cells[0] as u64) << 32);
        let mut windows = Windows::new(context, cells, manner, None, random);
        let measured =
            windows.launches(true).and_then(|launches| windows.measure([a, b], &launches, &mut stages));
        let step = Step { warmup: true, ..Step::new(0, Sides::Two(self.cells)) };
        windows.unit(&step, at, measured, stages)
    }
}
