//! The trials of a suite, one after the other, each into the journal before the next.

use super::{Event, Session};
use crate::error::Error;
use crate::measurement::{Duet, Entry, Outcome, PlannedSuite, Run, Sharing, Trial, pair_id};
use crate::plan::{self, Step};
use crate::progress::Left;
use crate::stats::sharing::{Likeness, sharing};
use crate::stopping::first_rounds;
use crate::timings::{Timings, guess};
use crate::trial::windows::{Manner, WINDOWS};
use crate::trial::{self, Context};
use linerate_contract::Nanos;
use std::collections::BTreeSet;

impl Session {
    /// Makes every trial of the suite's rounds that the journal lacks. A round that has begun is finished; no
    /// further one begins that does not fit into a budget.
    ///
    /// # Errors
    /// The user stopped the run, the journal cannot be written, or the lab is lost.
    pub(super) fn measure_suite(&mut self, suite: usize, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let mut done: BTreeSet<(String, String, u32, bool)> = self.trials.iter().map(key_of).collect();
        let of_first_load = self.duets.iter().filter(|duet| duet.second_load.is_none());
        done.extend(of_first_load.map(|duet| (duet.suite.clone(), duet.id(), duet.unit, duet.warmup)));
        let name = self.run.suites[suite].name.clone();
        let mut open = plan::order_of(&self.run, suite);
        open.retain(|step| !done.contains(&(name.clone(), step.id.clone(), step.unit, step.warmup)));
        let cpus = self.lab.cpus();
        let later = self.later(suite);
        let (mut round, mut is_announced) = (1, false);
        for (index, step) in open.iter().enumerate() {
            if step.round > round && !step.warmup {
                round = step.round;
                let has_begun = self.trials.iter().any(|t| t.suite == name && t.round == round && !t.warmup);
                let ids = open[index..].iter().take_while(|step| step.round == round).map(|step| &step.id);
                if !has_begun && !self.made().has_time_for(suite, ids) {
                    open[index..].iter().for_each(|_| self.progress.done());
                    break;
                }
            }
            // When a solo trial of each cell was made.
            if !is_announced && !step.warmup && step.against.is_some() {
                is_announced = true;
                let solos = open[index..].iter().filter(|step| step.against.is_none()).count();
                self.made().prospect(suite, solos).map(Event::Prospect).into_iter().for_each(&mut *on);
            }
            if self.is_given_up(step) {
                self.progress.done();
                continue;
            }
            let of_rounds = || seconds(&self.run, &self.timings, &open[index..]);
            let of_suite =
                self.run.budget.map_or_else(of_rounds, |_| Some(self.made().seconds_left(suite).max(0.0)));
            self.progress.next(step, &self.run.suites[suite], Left { suite: of_suite, later });
            self.make(step, &cpus)?;
            self.take_written(step)?;
        }
        Ok(())
    }

    /// Makes what the open questions of the suite need, until none is open or the time is used.
    ///
    /// # Errors
    /// As of [`Session::measure_suite`].
    pub(super) fn go_on(&mut self, suite: usize, on: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let cpus = self.lab.cpus();
        let later = self.later(suite);
        // Once more, by the spread of the first units.
        if self.duets.iter().map(|duet| duet.unit).max() == Some(first_rounds(&self.run)) {
            self.made().prospect(suite, 0).map(Event::Prospect).into_iter().for_each(on);
        }
        loop {
            let open = plan::further(&self.run, suite, &self.made().needs(suite), self.duets.len());
            if open.is_empty() {
                return Ok(());
            }
            self.progress.add(open.len() as u64);
            for step in &open {
                let of_suite = Some(self.made().seconds_left(suite).max(0.0));
                self.progress.next(step, &self.run.suites[suite], Left { suite: of_suite, later });
                self.make(step, &cpus)?;
            }
        }
    }

    /// How many suites follow this one, and the most seconds that they take, without their builds.
    fn later(&self, suite: usize) -> (usize, f64) {
        let last = self.run.suites.len() - 1;
        let seconds = match self.run.budget {
            Some(_) => self.made().seconds_left(last) - self.made().seconds_left(suite),
            None => {
                let after = suite + 1..=last;
                let steps: Vec<Step> = after.flat_map(|index| plan::order_of(&self.run, index)).collect();
                seconds_in_all(&self.run, &self.timings, &steps)[1]
            }
        };
        (last - suite, seconds)
    }

    /// Makes one trial or unit and appends it to the journal.
    fn make(&mut self, step: &Step, cpus: &[u32]) -> Result<(), Error> {
        let (registry, programs, servers) = (&self.registry, &self.programs, self.servers.as_ref());
        let context = Context { registry, programs, cpus, hosts: &self.run.hosts, servers };
        let planned = &self.run.suites[step.suite];
        let least = if step.warmup { Nanos::ZERO } else { self.made().least_window(step.suite, step.unit) };
        // Tables have one window: their units decide by ranks alone.
        let is_compared = self.run.policy().is_sequential() && !step.warmup && step.probe.is_none();
        let windows = if is_compared { WINDOWS } else { 1 };
        let least = least.max(Nanos(self.run.learned.least_window().0 * u64::from(windows)));
        let manner = Manner::at_least(self.sharing_of(step), least, windows);
        let second_load = step.against.filter(|other| is_compared && *other != step.cell);
        let second_load =
            second_load.and_then(|other| self.made().second_load(step.suite, [step.cell, other]));
        let entries = match (step.against, &mut self.second) {
            (None, _) | (_, None) => {
                vec![Entry::Trial(trial::run(self.lab.as_mut(), context, planned, step)?)]
            }
            (Some(_), Some(second)) => {
                let labs = [self.lab.as_mut(), second.as_mut()];
                let units =
                    trial::duet::run(labs, context, planned, step, manner, self.run.seed, second_load)?;
                units.into_iter().map(Entry::Duet).collect()
            }
        };
        entries.into_iter().try_for_each(|entry| self.keep(entry))?;
        self.progress.done();
        Ok(())
    }

    /// Appends an entry to the journal.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn keep(&mut self, entry: Entry) -> Result<(), Error> {
        self.journal.append(&entry)?;
        self.take(entry);
        Ok(())
    }

    fn is_given_up(&self, step: &Step) -> bool {
        let id = |cell: usize| self.run.suites[step.suite].cells[cell].id.as_str();
        self.made().is_given_up(step.suite, &step.id, id(step.cell), step.against.map(id))
    }

    /// The same for all units of a pair: by its table, or, of builds and commands, by their warm-up units.
    /// Turns are right for all (docs/decisions/pairs.md).
    fn sharing_of(&self, step: &Step) -> Sharing {
        let suite = &self.run.suites[step.suite];
        let of_pair = |duet: &&Duet| duet.suite == suite.name && duet.id() == step.id;
        let measured = self.duets.iter().filter(|duet| !duet.warmup && duet.second_load.is_none());
        let earlier = measured.into_iter().find(of_pair).map(|duet| duet.sharing);
        let cells = [step.cell, step.against.unwrap_or(step.cell)].map(|cell| &suite.cells[cell]);
        let of_table = cells[0].pairs.filter(|_| cells[0].pairs == cells[1].pairs && step.probe.is_none());
        // Side by side, the other side of a probe would get what is taken.
        let can_share = self.can_share() && step.probe.is_none();
        earlier.unwrap_or_else(|| match of_table {
            Some(Sharing::Alternating) => Sharing::Alternating,
            _ if !can_share => Sharing::Turns,
            Some(sharing) => sharing,
            None if !self.run.policy().is_sequential() => Sharing::Turns,
            None if step.warmup => Sharing::Together,
            None if cells[0].id == cells[1].id => self.as_most_pairs(suite, &cells[1].id),
            None => self.by_warm_up(suite, [&cells[0].id, &cells[1].id]),
        })
    }

    /// A control is measured as most of the pairs are whose baseline it is, so that it has their bias.
    fn as_most_pairs(&self, suite: &PlannedSuite, baseline: &str) -> Sharing {
        let pairs = suite.pairs.iter().filter(|pair| pair.cells[1] == baseline);
        let others = pairs.filter(|pair| pair.cells[0] != pair.cells[1] && pair.no_duet.is_none());
        let found: Vec<Sharing> =
            others.map(|pair| self.by_warm_up(suite, [&pair.cells[0], &pair.cells[1]])).collect();
        let in_turns = found.iter().filter(|sharing| **sharing == Sharing::Turns).count();
        if 2 * in_turns > found.len() { Sharing::Turns } else { Sharing::Together }
    }

    /// By a pair's warm-up unit, which runs side by side, and the first trial of each cell. A pair without
    /// them takes turns, which is right for all.
    fn by_warm_up(&self, suite: &PlannedSuite, cells: [&str; 2]) -> Sharing {
        let id = pair_id(cells);
        let of_pair = |duet: &&Duet| duet.suite == suite.name && duet.id() == id;
        let warm = self.duets.iter().filter(of_pair).find_map(|duet| duet.sides.as_ref());
        let alone = |cell: &str| {
            let mut of_cell = self.trials.iter().filter(|t| t.suite == suite.name && t.cell == cell);
            of_cell.find_map(|trial| trial.measurement.as_ref())
        };
        let likeness = if self.servers.is_some() { Likeness::OF_COMMANDS } else { Likeness::OF_BUILDS };
        match (warm, alone(cells[0]), alone(cells[1])) {
            (Some(sides), Some(cell), Some(other)) => sharing(sides, [cell, other], likeness),
            _ => Sharing::Turns,
        }
    }

    fn take(&mut self, entry: Entry) {
        let (id, outcome, round) = match &entry {
            Entry::Trial(trial) => (trial.cell.clone(), &trial.outcome, trial.round),
            Entry::Duet(duet) => (duet.id(), &duet.outcome, duet.unit),
        };
        // A second load that a kind of server does not have is left out.
        let is_second = matches!(&entry, Entry::Duet(duet) if duet.second_load.is_some());
        if let Outcome::Failed { stage, reason, .. } = outcome
            && !is_second
        {
            self.progress.failed(&format!("{id} failed in round {round} at {stage}: {reason}"));
        }
        match entry {
            Entry::Trial(trial) => {
                self.timings.update(&trial);
                self.trials.push(trial);
            }
            Entry::Duet(duet) => {
                if duet.second_load.is_none() {
                    self.timings.update_pair(&duet);
                }
                self.duets.push(duet);
            }
        }
    }
}

/// Seconds that the steps take, if earlier trials of every cell are known.
fn seconds(run: &Run, timings: &Timings, steps: &[Step]) -> Option<f64> {
    let time = |step: &Step| {
        let suite = &run.suites[step.suite];
        match step.against {
            None => timings.seconds(suite, step.cell),
            Some(_) => Some(timings.seconds_of_pair(&suite.name, &step.id)),
        }
    };
    steps.iter().map(time).sum()
}

/// Seconds of a step; `Err` is a guess: there is no earlier trial of the cell.
pub fn seconds_or_guess(run: &Run, timings: &Timings, step: &Step) -> Result<f64, f64> {
    let known = seconds(run, timings, std::slice::from_ref(step));
    known.ok_or_else(|| guess(&run.suites[step.suite], step.cell))
}

/// Seconds of these steps of a run: the rounds, and at most, with the units that may follow in their suites.
pub fn seconds_in_all(run: &Run, timings: &Timings, steps: &[Step]) -> [f64; 2] {
    let of_suite = |(index, suite): (usize, &PlannedSuite)| {
        let mut of_suite = steps.iter().filter(|step| step.suite == index).peekable();
        if of_suite.peek().is_none() {
            return [0.0; 2];
        }
        let time = |step: &Step| seconds_or_guess(run, timings, step).unwrap_or_else(|guess| guess);
        let rounds: f64 = of_suite.map(time).sum();
        [rounds, suite.precision.map_or(rounds, |precision| rounds.max(precision.time.as_secs_f64()))]
    };
    let sum = |[low, high]: [f64; 2], [rounds, most]: [f64; 2]| [low + rounds, high + most];
    run.suites.iter().enumerate().map(of_suite).fold([0.0; 2], sum)
}

fn key_of(trial: &Trial) -> (String, String, u32, bool) {
    (trial.suite.clone(), trial.cell.clone(), trial.round, trial.warmup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Choice;
    use crate::suite;
    use crate::system::Registry;
    use std::path::Path;

    /// Seconds of a unit whose load alternates, with the start of its systems, on two CPUs.
    const ALTERNATING: f64 = 2.4;
    const QUARTER_OF_AN_HOUR: f64 = 900.0;

    #[test]
    fn a_run_in_full_fits_into_a_quarter_of_an_hour_and_has_a_competitor_in_each_table() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let timings = Timings::default();
        for suite in suite::load_all(&home).unwrap().iter().filter(|suite| !suite.file.apart) {
            let suites = plan::suites(std::slice::from_ref(suite), &registry, &Choice::default()).unwrap();
            let run = Run { suites, ..Run::default() };
            let time = |step: &Step| {
                let alternates = run.suites[0].cells[step.cell].pairs == Some(Sharing::Alternating);
                match step.against {
                    Some(_) if alternates => ALTERNATING,
                    _ => seconds_or_guess(&run, &timings, step).unwrap_or_else(|guess| guess),
                }
            };
            let steps = plan::order(&run);
            let seconds: f64 = steps.iter().map(time).sum();
            assert!(seconds < QUARTER_OF_AN_HOUR, "{}: {seconds} s", suite.name);
            let most = run.suites[0].precision.unwrap().time.as_secs_f64();
            assert!(most < QUARTER_OF_AN_HOUR, "{}: {most} s", suite.name);
            assert!(run.suites[0].tables.iter().all(|table| table.cells.len() > 1), "{}", suite.name);
        }
    }
}
