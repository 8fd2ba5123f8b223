//! The trials of a suite, one after the other, each into the journal before the next.

use super::{Session, budget};
use crate::error::Error;
use crate::lab::LabError;
use crate::measurement::{Outcome, Run, Trial, is_given_up};
use crate::plan::{self, Step};
use crate::timings::Timings;
use crate::trial::{self, Context};
use std::collections::BTreeSet;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    Interrupted,
}

impl Session {
    /// Makes every trial of the suite that the journal lacks.
    ///
    /// # Errors
    /// The journal cannot be written, or the lab is lost.
    pub(super) fn measure_suite(&mut self, suite: usize) -> Result<End, Error> {
        let done: BTreeSet<(String, String, u32, bool)> = self.trials.iter().map(key_of).collect();
        let name = self.run.suites[suite].name.clone();
        let mut open = plan::order_of(&self.run, suite);
        open.retain(|step| !done.contains(&(name.clone(), step.id.clone(), step.round, step.warmup)));
        let cpus = self.lab.cpus();
        for (index, step) in open.iter().enumerate() {
            let of_cell = self.trials.iter().filter(|t| t.suite == name && t.cell == step.id);
            if is_given_up(of_cell) || budget::is_spent(&self.run, &self.trials, step) {
                self.progress.done();
                continue;
            }
            let left = seconds(&self.run, &self.timings, &open[index..]);
            self.progress.next(step, &self.run.suites[suite], left);
            let context = Context { registry: &self.registry, programs: &self.programs, cpus: &cpus };
            let trial = match trial::run(self.lab.as_mut(), context, &self.run.suites[suite], step) {
                Ok(trial) => trial,
                Err(LabError::Interrupted) => return Ok(End::Interrupted),
                Err(lost) => return Err(Error::NothingMeasured(lost.to_string())),
            };
            self.journal.append(&trial)?;
            if let Outcome::Failed { stage, reason, .. } = &trial.outcome {
                self.progress
                    .say(&format!("{} failed in round {} at {stage}: {reason}", trial.cell, trial.round));
            }
            self.timings.learn(&trial);
            self.trials.push(trial);
            self.progress.done();
        }
        Ok(End::Complete)
    }
}

/// Seconds that the steps take, if earlier trials of every one of them are known.
#[must_use]
pub fn seconds(run: &Run, timings: &Timings, steps: &[Step]) -> Option<f64> {
    steps.iter().map(|step| timings.seconds(&run.suites[step.suite], step.cell)).sum()
}

fn key_of(trial: &Trial) -> (String, String, u32, bool) {
    (trial.suite.clone(), trial.cell.clone(), trial.round, trial.warmup)
}
