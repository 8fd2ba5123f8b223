//! Facts of the run as a whole: how far it came, and where its time went.

use super::journal::{Journal, planned_ids};
use crate::measurement::{PlannedSuite, Run, Stage, TWIN};
use crate::report::model::RunFacts;
use linerate_contract::Nanos;
use std::collections::BTreeMap;

pub(super) fn facts(run: &Run, journal: &Journal<'_>) -> RunFacts {
    let complete =
        |round| run.suites.iter().all(|suite| round > suite.rounds || has_round(suite, journal, round));
    let planned_rounds = run.suites.iter().map(|suite| suite.rounds).max().unwrap_or(0);
    let rounds = (1..=planned_rounds).filter(|round| complete(*round)).count();
    let time = Time::of(journal);
    RunFacts {
        id: run.id.clone(),
        command: run.command.clone(),
        seed: run.seed,
        rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        planned_rounds,
        complete: rounds == planned_rounds as usize
            && run.suites.iter().all(|suite| has_warmups(suite, journal)),
        quick: run.quick,
        linerate: run.linerate.clone(),
        started: run.started.clone(),
        wall_seconds: time.wall().as_secs_f64(),
        measuring_seconds: time.measuring.as_secs_f64(),
        stage_seconds: time.stages.into_iter().map(|(stage, time)| (stage, time.as_secs_f64())).collect(),
        flags: oddities(journal),
    }
}

fn has_round(suite: &PlannedSuite, journal: &Journal<'_>, round: u32) -> bool {
    let has = |id: &String| journal.cell(&suite.name, id).is_some_and(|c| c.measured.contains_key(&round));
    ids_to_run(suite).all(|id| has(&id))
}

fn has_warmups(suite: &PlannedSuite, journal: &Journal<'_>) -> bool {
    let has = |id: &String| {
        suite.warmup_rounds == 0
            || journal.cell(&suite.name, id).is_some_and(|c| c.warmups.len() >= suite.warmup_rounds as usize)
    };
    ids_to_run(suite).all(|id| has(&id))
}

/// Absent cells are planned with their outcome and never run.
fn ids_to_run(suite: &PlannedSuite) -> impl Iterator<Item = String> {
    let absent: Vec<&str> =
        suite.cells.iter().filter(|c| c.absent.is_some()).map(|c| c.id.as_str()).collect();
    planned_ids(suite).filter(move |id| !absent.contains(&id.strip_suffix(TWIN).unwrap_or(id)))
}

/// Wall time of all trials; warm-ups are overhead with everything they do.
#[derive(Default)]
struct Time {
    measuring: Nanos,
    stages: BTreeMap<String, Nanos>,
}

impl Time {
    fn of(journal: &Journal<'_>) -> Self {
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
        time
    }

    fn wall(&self) -> Nanos {
        self.stages.values().fold(self.measuring, |sum, time| sum + *time)
    }
}

fn oddities(journal: &Journal<'_>) -> Vec<String> {
    let line = |count: usize, what: &str| (count > 0).then(|| format!("{count} journal line(s) {what}"));
    [
        line(journal.strangers, "of cells that are not in the plan: ignored"),
        line(journal.replaced, "for a cell and round that has a later line: the last one counts"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
