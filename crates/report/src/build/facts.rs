//! Facts of the run as a whole: progress, and time by stage.

use crate::model::{Oddity, RunFacts};
use linerate_analysis::judge::{CellTrials, SortedJournal, disturbed};
use linerate_analysis::stats::estimate::FEWEST_ROUNDS;
use linerate_contract::Nanos;
use linerate_model::{Duet, PlannedPair, PlannedSuite, Run, Sharing, Stage, is_given_up};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn facts(run: &Run, journal: &SortedJournal<'_>) -> RunFacts {
    let suites: Vec<SuiteProgress> =
        run.suites.iter().filter_map(|suite| SuiteProgress::count(suite, run, journal)).collect();
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
        flags: oddities(journal),
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
    fn count(suite: &PlannedSuite, run: &Run, journal: &SortedJournal<'_>) -> Option<Self> {
        let present = suite.cells.iter().filter(|cell| cell.absent.is_none());
        let trials = |id: &str| journal.cell(&suite.name, id).filter(is_still_tried);
        let cells: BTreeMap<&str, &CellTrials<'_>> =
            present.filter_map(|cell| Some((cell.id.as_str(), trials(&cell.id)?))).collect();
        cells.first_key_value()?;
        let planned = if run.budget.is_some() { rounds_of_all(&cells) } else { suite.rounds };
        // A cell in a duet may have fewer solo trials than rounds; its pair has a unit in each at least.
        let pairs = || suite.pairs.iter().filter(|pair| pair.no_duet.is_none());
        let is_in_a_duet = |id: &str| pairs().any(|pair| pair.cells.iter().any(|cell| cell == id));
        let has_solos = |round: u32| suite.solos.is_none_or(|solos| round <= solos);
        let units = |pair: &PlannedPair| journal.duets(&suite.name, [&pair.cells[0], &pair.cells[1]]);
        let tried = pairs().filter(|pair| pair.cells.iter().all(|cell| cells.contains_key(cell.as_str())));
        let tried = tried.filter(|pair| !is_given_up(units(pair).map(|duet| &duet.outcome)));
        let last: Vec<u32> = tried.map(|pair| units(pair).last().map_or(0, |duet| duet.unit)).collect();
        let is_done = |round: &u32| {
            let is_tried = |(id, cell): (&&str, &&CellTrials<'_>)| {
                cell.measured.contains_key(round) || !has_solos(*round) && is_in_a_duet(id)
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
fn rounds_of_all(cells: &BTreeMap<&str, &CellTrials<'_>>) -> u32 {
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
fn is_still_tried(cell: &&CellTrials<'_>) -> bool {
    !is_given_up(cell.warmups.values().chain(cell.measured.values()).map(|trial| &trial.outcome))
}

/// Wall time of all trials and duets; all stages of a warm-up are overhead.
#[derive(Default)]
struct Time {
    measuring: Nanos,
    stages: BTreeMap<String, Nanos>,
}

impl Time {
    fn sum_up(journal: &SortedJournal<'_>) -> Self {
        let mut time = Self::default();
        for trial in journal.trials() {
            for (stage, spent) in &trial.stages {
                let window = match (stage, &trial.measurement) {
                    (Stage::Measure, Some(measurement)) if !trial.warmup => measurement.elapsed.min(*spent),
                    _ => Nanos::ZERO,
                };
                let name = if trial.warmup { "warmup".to_owned() } else { stage.to_string() };
                time.measuring += window;
                *time.stages.entry(name).or_default() += *spent - window;
            }
        }
        journal.all_duets().for_each(|duet| time.add(duet));
        time
    }

    /// The part of a duet's window in which both sides work, together or by turns, is measuring.
    fn add(&mut self, duet: &Duet) {
        let times = duet.sides.as_ref().map(|sides| sides.each_ref().map(|side| side.elapsed));
        let common = times.map_or(Nanos::ZERO, |[a, b]| match duet.sharing {
            Sharing::Together => a.min(b),
            Sharing::Turns | Sharing::Alternating => a + b,
        });
        for (stage, spent) in &duet.stages {
            let window = if *stage == Stage::Measure { common.min(*spent) } else { Nanos::ZERO };
            self.measuring += window;
            *self.stages.entry(stage.to_string()).or_default() += *spent - window;
        }
    }

    fn wall(&self) -> Nanos {
        self.stages.values().fold(self.measuring, |sum, time| sum + *time)
    }
}

fn oddities(journal: &SortedJournal<'_>) -> Vec<Oddity> {
    let found = [
        (journal.unknown_cells, Oddity::NotInPlan as fn(usize) -> Oddity),
        (journal.replaced, Oddity::Replaced),
    ];
    found.into_iter().filter(|(count, _)| *count > 0).map(|(count, oddity)| oddity(count)).collect()
}
