//! Facts of the run as a whole: progress, and time by stage.

use crate::model::{Oddity, RunFacts};
use linerate_analysis::judge::{SortedJournal, Units, disturbed};
use linerate_analysis::stats::estimate::FEWEST_ROUNDS;
use linerate_contract::Nanos;
use linerate_model::{Run, Sharing, Sides, Stage, Unit, is_given_up};
use std::collections::{BTreeMap, BTreeSet};

/// `unknown`: lines of cells that are not in the plan.
pub(super) fn facts(run: &Run, journal: &SortedJournal<'_>, unknown: usize) -> RunFacts {
    let suites = 0..run.suites.len();
    let suites: Vec<SuiteProgress> =
        suites.filter_map(|suite| SuiteProgress::count(suite, run, journal)).collect();
    let time = Time::sum_up(journal);
    RunFacts {
        id: run.id.clone(),
        command: run.command.clone(),
        seed: run.seed,
        rounds: complete_rounds(&suites),
        planned_rounds: suites.iter().map(|suite| suite.planned).max().unwrap_or(0),
        complete: suites.iter().all(SuiteProgress::is_complete),
        quick: run.quick,
        published: run.published,
        linerate: run.linerate.clone(),
        started: run.started.clone(),
        wall_seconds: time.wall().as_secs_f64(),
        measuring_seconds: time.measuring.as_secs_f64(),
        stage_seconds: time.stages.into_iter().map(|(stage, time)| (stage, time.as_secs_f64())).collect(),
        disturbance: disturbed(journal),
        flags: oddities(unknown, journal.replaced),
    }
}

/// Progress of a suite.
struct SuiteProgress {
    /// Measured rounds requested; in a run with a budget, those of every cell.
    planned: u32,
    /// Measured rounds that have a trial of every cell.
    done: BTreeSet<u32>,
    has_warmups: bool,
}

impl SuiteProgress {
    /// `None` for a suite without anything to run.
    fn count(index: usize, run: &Run, journal: &SortedJournal<'_>) -> Option<Self> {
        let suite = &run.suites[index];
        let none = Units::default();
        let units = |cell: usize| journal.units(index, Sides::One(cell)).unwrap_or(&none);
        let trials = |cell: usize| Some(units(cell)).filter(is_still_tried);
        let present = (0..suite.cells.len()).filter(|cell| suite.cells[*cell].absent.is_none());
        let cells: BTreeMap<usize, &Units<'_>> =
            present.filter_map(|cell| Some((cell, trials(cell)?))).collect();
        cells.first_key_value()?;
        let planned = if run.budget.is_some() { rounds_of_all(&cells) } else { suite.rounds };
        // A cell in a duet may have fewer solo trials than rounds; its pair has a unit in each at least.
        let pairs = suite.pairs.iter().filter(|pair| pair.no_duet.is_none());
        let pairs: Vec<[usize; 2]> = pairs.filter_map(|pair| suite.places(pair)).collect();
        let has_solos = |round: u32| suite.solos.is_none_or(|solos| round <= solos);
        let units = |pair: [usize; 2]| journal.measured(index, Sides::Two(pair));
        let tried = pairs.iter().filter(|pair| pair.iter().all(|cell| cells.contains_key(cell)));
        let tried = tried.filter(|pair| !is_given_up(units(**pair).map(|unit| &unit.outcome)));
        let last: Vec<u32> = tried.map(|pair| units(*pair).last().map_or(0, |unit| unit.number)).collect();
        let is_done = |round: &u32| {
            let is_tried = |(cell, units): (&usize, &&Units<'_>)| {
                let is_in_a_duet = || pairs.iter().flatten().any(|other| other == cell);
                units.measured.contains_key(round) || !has_solos(*round) && is_in_a_duet()
            };
            let has_units = has_solos(*round) || last.iter().all(|unit| unit >= round);
            has_units && cells.iter().all(is_tried)
        };
        let done = (1..=planned).filter(is_done).collect();
        let has_warmups = cells.values().all(|cell| cell.warmups.len() >= suite.warmup_rounds as usize);
        Some(Self { planned, done, has_warmups })
    }

    fn is_complete(&self) -> bool {
        self.has_warmups && self.done.len() >= self.planned as usize
    }
}

/// In a run with a budget, rounds that are due for every cell: the first ones as far as they were begun, and
/// later ones that every cell has. Other later rounds are for open verdicts alone.
fn rounds_of_all(cells: &BTreeMap<usize, &Units<'_>>) -> u32 {
    let last = || cells.values().map(|cell| cell.measured.keys().copied().max().unwrap_or(0));
    let begun = last().max().unwrap_or(1).min(FEWEST_ROUNDS);
    last().min().unwrap_or(0).max(begun)
}

/// Rounds that are complete in every suite that planned them.
fn complete_rounds(suites: &[SuiteProgress]) -> u32 {
    let any: BTreeSet<u32> = suites.iter().flat_map(|suite| suite.done.iter().copied()).collect();
    let is_everywhere = |round: &&u32| suites.iter().all(|s| **round > s.planned || s.done.contains(round));
    u32::try_from(any.iter().filter(is_everywhere).count()).unwrap_or(u32::MAX)
}

/// Cells that the run has given up are not missing from its rounds.
fn is_still_tried(cell: &&Units<'_>) -> bool {
    !is_given_up(cell.warmups.values().chain(cell.measured.values()).map(|trial| &trial.outcome))
}

/// Wall time of all units; all stages of a cell's warm-up are overhead.
#[derive(Default)]
struct Time {
    measuring: Nanos,
    stages: BTreeMap<String, Nanos>,
}

impl Time {
    fn sum_up(journal: &SortedJournal<'_>) -> Self {
        let mut time = Self::default();
        journal.all().for_each(|unit| time.add(unit));
        time
    }

    fn add(&mut self, unit: &Unit) {
        let is_warmup = unit.warmup && unit.sides.is_one();
        for (stage, spent) in &unit.stages {
            let is_window = *stage == Stage::Measure && !is_warmup;
            let window = if is_window { window(unit).min(*spent) } else { Nanos::ZERO };
            let name = if is_warmup { "warmup".to_owned() } else { stage.to_string() };
            self.measuring += window;
            *self.stages.entry(name).or_default() += *spent - window;
        }
    }

    fn wall(&self) -> Nanos {
        self.stages.values().fold(self.measuring, |sum, time| sum + *time)
    }
}

/// The time in which a unit measures: of two sides, that in which both work, together or by turns.
fn window(unit: &Unit) -> Nanos {
    let alone = unit.measurement().map(|measurement| measurement.elapsed);
    let both = || {
        let [a, b] = unit.both()?.each_ref().map(|side| side.elapsed);
        Some(match unit.together()?.sharing {
            Sharing::Together => a.min(b),
            Sharing::Turns | Sharing::Alternating => a + b,
        })
    };
    alone.or_else(both).unwrap_or(Nanos::ZERO)
}

fn oddities(unknown: usize, replaced: usize) -> Vec<Oddity> {
    let found = [(unknown, Oddity::NotInPlan as fn(usize) -> Oddity), (replaced, Oddity::Replaced)];
    found.into_iter().filter(|(count, _)| *count > 0).map(|(count, oddity)| oddity(count)).collect()
}
