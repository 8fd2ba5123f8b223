//! The run: steps of the plan, one after the other, each into the journal before the next.

use crate::budget;
use crate::error::Error;
use crate::journal::Journal;
use crate::lab::{Lab, LabError};
use crate::measurement::{Outcome, Run, Trial};
use crate::plan::{self, Step};
use crate::progress::Progress;
use crate::timings::Timings;
use crate::trial::{self, Context};
use std::collections::BTreeSet;

/// A cell that has failed so many times and never succeeded is not tried again: a hang would cost its deadline each round.
const GIVE_UP_AFTER: usize = 3;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    Interrupted,
}

/// Makes every trial of the run that `trials` does not hold yet, and adds it there and to the journal.
///
/// # Errors
/// The journal cannot be written, or the lab is lost. What was measured is in the journal.
pub fn run(
    lab: &mut dyn Lab,
    context: Context<'_>,
    run: &Run,
    trials: &mut Vec<Trial>,
    journal: &mut Journal,
    timings: &mut Timings,
    progress: &mut Progress,
) -> Result<End, Error> {
    let steps = plan::order(run);
    let done: BTreeSet<(String, String, u32, bool)> = trials.iter().map(key_of).collect();
    let is_open = |step: &&Step| {
        !done.contains(&(run.suites[step.suite].name.clone(), step.id.clone(), step.round, step.warmup))
    };
    let open: Vec<&Step> = steps.iter().filter(is_open).collect();
    for (index, step) in open.iter().enumerate() {
        let suite = &run.suites[step.suite];
        if given_up(trials.iter().filter(|t| t.suite == suite.name && t.cell == step.id)) {
            progress.done();
            continue;
        }
        if budget::is_spent(run, trials, step) {
            progress.done();
            continue;
        }
        progress.next(step, suite.rounds, seconds(run, timings, &open[index..]));
        let trial = match trial::run(lab, context, suite, step) {
            Ok(trial) => trial,
            Err(LabError::Interrupted) => return Ok(End::Interrupted),
            Err(lost) => return Err(Error::NothingMeasured(lost.to_string())),
        };
        journal.append(&trial)?;
        if let Outcome::Failed { stage, reason, .. } = &trial.outcome {
            progress.say(&format!("{} failed in round {} at {stage}: {reason}", trial.cell, trial.round));
        }
        timings.learn(&trial);
        trials.push(trial);
        progress.done();
    }
    Ok(End::Complete)
}

/// Seconds that the steps take, if every one of them is known.
#[must_use]
pub fn seconds(run: &Run, timings: &Timings, steps: &[&Step]) -> Option<f64> {
    steps.iter().map(|step| timings.seconds(&run.suites[step.suite], step.cell)).sum()
}

fn key_of(trial: &Trial) -> (String, String, u32, bool) {
    (trial.suite.clone(), trial.cell.clone(), trial.round, trial.warmup)
}

/// True if these are trials of a cell that is not tried again.
#[must_use]
pub fn given_up<'a>(trials: impl Iterator<Item = &'a Trial>) -> bool {
    let outcomes: Vec<bool> = trials.map(|trial| trial.outcome == Outcome::Ok).collect();
    outcomes.len() >= GIVE_UP_AFTER && !outcomes.contains(&true)
}
