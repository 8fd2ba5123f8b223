//! The trials of a suite, one after the other, each into the journal before the next.

use super::budget::Budget;
use super::sequence::Sequence;
use super::{Event, Session};
use crate::error::Error;
use crate::lab::LabError;
use crate::measurement::{Duet, Entry, Outcome, Run, Sharing, Trial, is_given_up};
use crate::plan::{self, Step};
use crate::stats::sharing::sharing;
use crate::timings::Timings;
use crate::trial::{self, Context};
use linerate_contract::Nanos;
use std::collections::BTreeSet;

impl Session {
    /// Makes every trial of the suite's rounds that the journal lacks.
    ///
    /// # Errors
    /// The user stopped the run, the journal cannot be written, or the lab is lost.
    pub(super) fn measure_suite(&mut self, suite: usize, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let mut done: BTreeSet<(String, String, u32, bool)> = self.trials.iter().map(key_of).collect();
        done.extend(self.duets.iter().map(|duet| (duet.suite.clone(), duet.id(), duet.unit, duet.warmup)));
        let name = self.run.suites[suite].name.clone();
        let mut open = plan::order_of(&self.run, suite);
        open.retain(|step| !done.contains(&(name.clone(), step.id.clone(), step.unit, step.warmup)));
        let cpus = self.lab.cpus();
        let (mut budget, mut sequence) = (Budget::default(), Sequence::default());
        for (index, step) in open.iter().enumerate() {
            let (run, trials, duets) = (&self.run, &self.trials, &self.duets);
            let is_not_worth_it = match run.comparison {
                None => budget.skips(run, trials, duets, step),
                Some(_) => sequence.skips(run, trials, duets, &open[index..]),
            };
            sequence.prospect.take().map(Event::Prospect).into_iter().for_each(&mut *on);
            if self.is_given_up(step) || is_not_worth_it {
                self.progress.done();
                continue;
            }
            let left = seconds(&self.run, &self.timings, &self.duets, &open[index..]);
            self.progress.next(step, &self.run.suites[suite], left);
            self.make(step, &cpus)?;
        }
        Ok(())
    }

    /// Seconds that units beyond the rounds may take; 0 if no pair needs one.
    pub(super) fn time_to_narrow(&self, suite: usize) -> f64 {
        match plan::further(&self.run, suite, &self.duets).is_empty() {
            true => 0.0,
            false => self.time_of_precision(suite) - self.spent(suite),
        }
    }

    fn time_of_precision(&self, suite: usize) -> f64 {
        self.run.suites[suite].precision.map_or(0.0, |precision| precision.time.as_secs_f64())
    }

    /// Adds units to pairs whose intervals are wider than the suite asks for, until its time is used.
    ///
    /// # Errors
    /// As of [`Session::measure_suite`].
    pub(super) fn narrow(&mut self, suite: usize) -> Result<(), Error> {
        let (most, cpus) = (self.time_of_precision(suite), self.lab.cpus());
        loop {
            let wide = plan::further(&self.run, suite, &self.duets);
            let open: Vec<Step> = wide.into_iter().filter(|step| !self.is_given_up(step)).collect();
            self.progress.add(open.len() as u64);
            for step in &open {
                let left = most - self.spent(suite);
                if left <= 0.0 {
                    return Ok(());
                }
                self.progress.next(step, &self.run.suites[suite], Some(left));
                self.make(step, &cpus)?;
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    /// Seconds of all trials and units of the suite.
    fn spent(&self, suite: usize) -> f64 {
        let name = &self.run.suites[suite].name;
        let trials = self.trials.iter().filter(|trial| trial.suite == *name).map(Trial::time);
        let duets = self.duets.iter().filter(|duet| duet.suite == *name).map(Duet::time);
        trials.chain(duets).map(Nanos::as_secs_f64).sum()
    }

    /// Makes one trial or unit and appends it to the journal.
    fn make(&mut self, step: &Step, cpus: &[u32]) -> Result<(), Error> {
        let context =
            Context { registry: &self.registry, programs: &self.programs, cpus, hosts: &self.run.hosts };
        let planned = &self.run.suites[step.suite];
        let sharing = self.sharing_of(step);
        let entry = match (step.against, &mut self.second) {
            (None, _) | (_, None) => trial::run(self.lab.as_mut(), context, planned, step).map(Entry::Trial),
            (Some(_), Some(second)) => {
                let labs = [self.lab.as_mut(), second.as_mut()];
                trial::duet::run(labs, context, planned, step, sharing, self.run.seed).map(Entry::Duet)
            }
        };
        let entry = entry.map_err(|error| match error {
            LabError::Interrupted => Error::Interrupted,
            lost => Error::NothingMeasured(lost.to_string()),
        })?;
        self.journal.append(&entry)?;
        self.take(entry, &step.id);
        self.progress.done();
        Ok(())
    }

    /// A pair is also left out while one of its cells has only failed: its unit would take the same deadline.
    fn is_given_up(&self, step: &Step) -> bool {
        let suite = &self.run.suites[step.suite];
        let outcomes = |cell: usize| {
            let id = &suite.cells[cell].id;
            let of_cell = self.trials.iter().filter(move |t| t.suite == suite.name && t.cell == *id);
            of_cell.map(|trial| &trial.outcome)
        };
        let has_only_failed = |cell| {
            let mut of_cell = outcomes(cell).peekable();
            of_cell.peek().is_some() && of_cell.all(|outcome| *outcome != Outcome::Ok)
        };
        let Some(against) = step.against else { return is_given_up(outcomes(step.cell)) };
        let units = self.duets.iter().filter(|duet| duet.suite == suite.name && duet.id() == step.id);
        has_only_failed(step.cell) || has_only_failed(against) || is_given_up(units.map(|duet| &duet.outcome))
    }

    /// The same for all units of a pair: by its warm-up unit, which runs side by side, and the first trial of
    /// each cell. A pair without them takes turns, which is right for all.
    fn sharing_of(&self, step: &Step) -> Sharing {
        let suite = &self.run.suites[step.suite];
        let of_pair = |duet: &&Duet| duet.suite == suite.name && duet.id() == step.id;
        let earlier = self.duets.iter().find(|duet| !duet.warmup && of_pair(duet)).map(|duet| duet.sharing);
        let by_rule = || {
            let warm = self.duets.iter().filter(of_pair).find_map(|duet| duet.sides.as_ref());
            let alone = |cell: usize| {
                let id = &suite.cells[cell].id;
                let mut of_cell = self.trials.iter().filter(|t| t.suite == suite.name && t.cell == *id);
                of_cell.find_map(|trial| trial.measurement.as_ref())
            };
            let alone = alone(step.cell).zip(step.against.and_then(alone));
            match warm.zip(alone) {
                // Side by side, the other side of a probe would get what is taken.
                _ if !self.lab.is_grouped() || step.probe.is_some() => Sharing::Turns,
                _ if step.warmup => Sharing::Together,
                Some((sides, (cell, other))) => sharing(sides, [cell, other]),
                None => Sharing::Turns,
            }
        };
        earlier.unwrap_or_else(by_rule)
    }

    fn take(&mut self, entry: Entry, id: &str) {
        let (outcome, round) = match &entry {
            Entry::Trial(trial) => (&trial.outcome, trial.round),
            Entry::Duet(duet) => (&duet.outcome, duet.unit),
        };
        if let Outcome::Failed { stage, reason, .. } = outcome {
            self.progress.print(&format!("{id} failed in round {round} at {stage}: {reason}"));
        }
        match entry {
            Entry::Trial(trial) => {
                self.timings.update(&trial);
                self.trials.push(trial);
            }
            Entry::Duet(duet) => self.duets.push(duet),
        }
    }
}

/// Seconds that the steps take, if earlier trials of every one of them are known. A duet takes as long as
/// those before it on average.
#[must_use]
pub fn seconds(run: &Run, timings: &Timings, duets: &[Duet], steps: &[Step]) -> Option<f64> {
    let spent: f64 = duets.iter().map(|duet| duet.time().as_secs_f64()).sum();
    let of_duet = if duets.is_empty() { trial::duet::SECONDS } else { spent / duets.len() as f64 };
    let time = |step: &Step| match step.against {
        None => timings.seconds(&run.suites[step.suite], step.cell),
        Some(_) => Some(of_duet),
    };
    steps.iter().map(time).sum()
}

fn key_of(trial: &Trial) -> (String, String, u32, bool) {
    (trial.suite.clone(), trial.cell.clone(), trial.round, trial.warmup)
}
