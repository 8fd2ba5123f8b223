//! The trials of a suite, one after the other, each into the journal before the next.

use super::{Event, Session};
use crate::error::Error;
use crate::measurement::{
    ComparisonKind, Outcome, PlannedComparison, PlannedSuite, Run, Sharing, Sides, Unit,
};
use crate::plan::{self, Step};
use crate::progress::Left;
use crate::report::comparison::prospect;
use crate::stats::early::FEWEST_LAUNCHES;
use crate::stats::sharing::{Likeness, sharing};
use crate::stopping::first_rounds;
use crate::subject::Servers;
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
        let units = self.made.units.iter();
        let done: BTreeSet<_> =
            units.map(|unit| (unit.suite, unit.sides, unit.number, unit.warmup)).collect();
        let mut open = plan::order_of(&self.run, suite);
        open.retain(|step| !done.contains(&(step.suite, step.sides, step.number, step.warmup)));
        let cpus = self.lab.cpus();
        let later = self.later(suite);
        let (mut round, mut is_announced) = (1, false);
        for (index, step) in open.iter().enumerate() {
            if step.round > round && !step.warmup {
                round = step.round;
                let is_of_round =
                    |unit: &Unit| unit.sides.is_one() && (unit.number, unit.warmup) == (round, false);
                let has_begun = self.made.units.iter().any(|unit| unit.suite == suite && is_of_round(unit));
                let sides =
                    open[index..].iter().take_while(|step| step.round == round).map(|step| step.sides);
                if !has_begun && !self.questions().has_time_for(suite, sides) {
                    open[index..].iter().for_each(|_| self.progress.done());
                    break;
                }
            }
            // When a solo trial of each cell was made.
            if !is_announced && !step.warmup && !step.sides.is_one() {
                is_announced = true;
                let solos = open[index..].iter().filter(|step| step.sides.is_one()).count();
                if let Some(found) = self.questions().prospect(suite, solos) {
                    if self.is_gate_of_servers() && found.units < f64::from(FEWEST_LAUNCHES) {
                        return Err(Error::NothingMeasured(prospect(&found)));
                    }
                    on(Event::Prospect(found));
                }
            }
            let questions = self.questions();
            if questions.is_given_up(suite, step.sides) || questions.is_answered(suite, step.sides) {
                self.progress.done();
                continue;
            }
            let of_rounds = || seconds(&self.run, &self.timings, &open[index..]);
            let of_suite = self
                .run
                .budget
                .map_or_else(of_rounds, |_| Some(self.questions().seconds_left(suite).max(0.0)));
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
        if self.together().map(|unit| unit.number).max() == Some(first_rounds(&self.run)) {
            self.questions().prospect(suite, 0).map(Event::Prospect).into_iter().for_each(on);
        }
        loop {
            let open =
                plan::further(&self.run, suite, &self.questions().needs(suite), self.together().count());
            if open.is_empty() {
                return Ok(());
            }
            self.progress.add(open.len() as u64);
            for step in &open {
                let of_suite = Some(self.questions().seconds_left(suite).max(0.0));
                self.progress.next(step, &self.run.suites[suite], Left { suite: of_suite, later });
                self.make(step, &cpus)?;
            }
        }
    }

    fn is_gate_of_servers(&self) -> bool {
        let is_gate = |plan: &PlannedComparison| plan.kind == ComparisonKind::Gate;
        self.run.servers().is_some() && self.run.policy().verdict().is_some_and(is_gate)
    }

    /// How many suites follow this one, and the most seconds that they take, without their builds.
    fn later(&self, suite: usize) -> (usize, f64) {
        let last = self.run.suites.len() - 1;
        let seconds = match self.run.budget {
            Some(_) => self.questions().seconds_left(last) - self.questions().seconds_left(suite),
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
        let least =
            if step.warmup { Nanos::ZERO } else { self.questions().least_window(step.suite, step.number) };
        // Tables have one window: their units decide by ranks alone.
        let is_compared = self.run.policy().is_sequential() && !step.warmup && step.sides.probed().is_none();
        let windows = if is_compared { WINDOWS } else { 1 };
        let least = least.max(Nanos(self.run.learned.least_window().0 * u64::from(windows)));
        let manner = Manner::at_least(self.sharing_of(step), least, windows);
        let second_load = match step.sides {
            // Of an open loop, requests on connections that are kept waiting would wait without end.
            Sides::Two([head, base]) if is_compared && head != base && !self.run.learned.has_unserved() => {
                self.questions().second_load(step.suite, [head, base])
            }
            _ => None,
        };
        let units = match &mut self.second {
            Some(second) if !step.sides.is_one() => {
                let labs = [self.lab.as_mut(), second.as_mut()];
                trial::duet::run(labs, context, planned, step, manner, self.run.seed, second_load)?
            }
            _ => vec![trial::run(self.lab.as_mut(), context, planned, step)?],
        };
        units.into_iter().try_for_each(|unit| self.keep(unit))?;
        self.progress.done();
        Ok(())
    }

    /// Appends a unit to the journal.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn keep(&mut self, unit: Unit) -> Result<(), Error> {
        self.journal.append(&unit)?;
        let suite = &self.run.suites[unit.suite];
        // A second load that a kind of server does not have is left out.
        let is_second = matches!(unit.sides, Sides::AtRate(_));
        if let Outcome::Failed { stage, reason, .. } = &unit.outcome
            && !is_second
        {
            let (id, round) = (unit.sides.id(suite), unit.number);
            self.progress.failed(&format!("{id} failed in round {round} at {stage}: {reason}"));
        }
        self.timings.update(suite, &unit);
        self.made.units.push(unit);
        Ok(())
    }

    /// The units of two cells so far.
    fn together(&self) -> impl Iterator<Item = &Unit> {
        self.made.units.iter().filter(|unit| !unit.sides.is_one())
    }

    /// The units of these cells so far.
    pub(super) fn units(&self, suite: usize, sides: Sides) -> impl Iterator<Item = &Unit> {
        self.made.units.iter().filter(move |unit| unit.suite == suite && unit.sides == sides)
    }

    /// The sharing of all units of a pair: by its table, or, of builds and commands, by their warm-up units.
    /// Turns are right for all (docs/decisions/pairs.md).
    fn sharing_of(&self, step: &Step) -> Sharing {
        let suite = &self.run.suites[step.suite];
        let mut earlier = self.units(step.suite, step.sides).filter(|unit| !unit.warmup);
        let earlier = earlier.find_map(|unit| Some(unit.together()?.sharing));
        let (cell, is_probe) = (step.sides.cell(), step.sides.probed().is_some());
        let other = step.sides.beside().unwrap_or(cell);
        let [of_cell, of_other] = [cell, other].map(|cell| suite.cells[cell].pairs);
        let of_table = of_cell.filter(|_| of_cell == of_other && !is_probe);
        // Side by side, the other side of a probe would get what is taken.
        let can_share = self.can_share() && !is_probe;
        earlier.unwrap_or_else(|| match of_table {
            Some(Sharing::Alternating) => Sharing::Alternating,
            _ if !is_probe && self.servers.as_ref().and_then(Servers::turn).is_some() => Sharing::Alternating,
            _ if !can_share => Sharing::Turns,
            Some(sharing) => sharing,
            None if !self.run.policy().is_sequential() => Sharing::Turns,
            None if step.warmup => Sharing::Together,
            None if cell == other => self.as_most_pairs(step.suite, other),
            None => self.by_warm_up(step.suite, [cell, other]),
        })
    }

    /// A control is measured as most of the pairs are whose baseline it is, so that it has their bias.
    fn as_most_pairs(&self, suite: usize, baseline: usize) -> Sharing {
        let planned = &self.run.suites[suite];
        let pairs = planned.pairs.iter().filter(|pair| pair.no_duet.is_none());
        let pairs = pairs.filter_map(|pair| planned.places(pair));
        let others = pairs.filter(|[cell, other]| cell != other && *other == baseline);
        let found: Vec<Sharing> = others.map(|pair| self.by_warm_up(suite, pair)).collect();
        let in_turns = found.iter().filter(|sharing| **sharing == Sharing::Turns).count();
        if 2 * in_turns > found.len() { Sharing::Turns } else { Sharing::Together }
    }

    /// By a pair's warm-up unit, which runs side by side, and the first trial of each cell. A pair without
    /// them takes turns, which is right for all.
    fn by_warm_up(&self, suite: usize, cells: [usize; 2]) -> Sharing {
        let warm = self.units(suite, Sides::Two(cells)).find_map(Unit::both);
        let [cell, other] = cells.map(|cell| self.units(suite, Sides::One(cell)).find_map(Unit::measurement));
        let likeness = if self.servers.is_some() { Likeness::OF_COMMANDS } else { Likeness::OF_BUILDS };
        match (warm, cell, other) {
            (Some(sides), Some(cell), Some(other)) => sharing(sides, [cell, other], likeness),
            _ => Sharing::Turns,
        }
    }
}

/// Seconds that the steps take, if earlier trials of every cell are known.
fn seconds(run: &Run, timings: &Timings, steps: &[Step]) -> Option<f64> {
    let time = |step: &Step| {
        let suite = &run.suites[step.suite];
        match step.sides {
            Sides::One(cell) => timings.seconds(suite, cell),
            _ => Some(timings.seconds_of_pair(suite, step.sides)),
        }
    };
    steps.iter().map(time).sum()
}

/// Seconds of a step; `Err` is a guess: there is no earlier trial of the cell.
pub fn seconds_or_guess(run: &Run, timings: &Timings, step: &Step) -> Result<f64, f64> {
    let known = seconds(run, timings, std::slice::from_ref(step));
    known.ok_or_else(|| guess(&run.suites[step.suite], step.sides.cell()))
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
                let alternates = run.suites[0].cells[step.sides.cell()].pairs == Some(Sharing::Alternating);
                match step.sides.beside() {
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
