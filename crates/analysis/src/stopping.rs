//! When a run has measured enough: one rule for tables and for builds.
//!
//! A suite makes its first rounds. After them its open questions alone get further units, until none is open
//! or the time is used. Two things differ by run:
//!
//! | run | open is | the numbers are looked at |
//! |---|---|---|
//! | tables | a ratio whose 95 % interval is wider than the precision | after each batch |
//! | builds | a pair without a verdict, by an error probability that all looks spend | at each look |
//!
//! In tables the width alone decides, never where an interval lies, so that no verdict is favoured (Chow and
//! Robbins, "On the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals", 1965). Of builds see
//! [`crate::stats::sequential`].

mod tables;

use crate::judge::pairs::{JudgedPair, Judgement, judge, judge_until};
use crate::stats::early;
use crate::stats::estimate::FEWEST_ROUNDS;
use crate::stats::metric::Value;
use crate::stats::sequential::{last_look, next_look};
use linerate_contract::Nanos;
use linerate_model::{
    ComparisonKind, Duet, Measurement, Metric, Outcome, PlannedPair, PlannedRate, PlannedSuite, Policy, Run,
    SecondLoadRate, Stage, Trial, is_given_up, pair_id,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The rounds that every cell of a run with a budget gets, if there is time: of tables fewer have no interval
/// of 95 %, and of builds fewer have no early look.
pub fn first_rounds(run: &Run) -> u32 {
    if run.policy().is_sequential() { early::FEWEST_UNITS } else { FEWEST_ROUNDS }
}

/// The base in duet with itself has one unit in this number of rounds of a comparison, after the first ones:
/// a control shows nothing with fewer than six units, and a short budget is for the question.
const CONTROL_ROUNDS: u32 = 4;
const ROUNDS_WITHOUT_CONTROL: u32 = 16;
/// The units that a budget should have time for, however long their systems take to be ready. A gate's
/// suspects need a second series.
const ENOUGH_UNITS: f64 = 11.0;
const ENOUGH_UNITS_OF_A_GATE: f64 = 16.0;
/// A window as a multiple of the time until its systems are ready. Most of the spread is of windows and not
/// of launches, so that longer windows are worth more than further launches.
const WINDOW_OF_PREPARATION: f64 = 4.0;
/// The units of the first early looks, and how long their windows together are at most.
const EARLY_UNITS: u32 = 5;
const EARLY_WINDOWS: Nanos = Nanos(1_200_000_000);
/// Operations of a unit below which their number alone would be a large part of its spread.
const SOME_OPERATIONS: f64 = 60.0;
const SIDES: f64 = 2.0;
/// The units that a budget has time for, however slow its systems are.
const LEAST_UNITS: f64 = 6.0;
/// The part of the other side's capacity that a share of the baseline's may be: beyond, a queue would grow.
const MOST_OF_CAPACITY: f64 = 0.8;
/// The windows of a second load, and the starts of their clients.
const TIME_OF_SECOND_LOAD: f64 = 1.05;
/// The part of the budget that the second series of suspects may take beyond it.
const FOR_CONFIRMATION: f64 = 0.5;

/// Whether a round of a comparison has a unit of the control.
pub fn has_control(round: u32) -> bool {
    round > ROUNDS_WITHOUT_CONTROL && round % CONTROL_ROUNDS == 1
}

/// A trial or unit that an open question needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Its number in the journal: of a trial the round, of a pair the unit.
    pub unit: u32,
    pub cell: String,
    /// The other cell of a pair; `None`: a solo trial.
    pub against: Option<String>,
}

impl Need {
    fn for_unit(pair: &PlannedPair, unit: u32) -> Self {
        Self { unit, cell: pair.cells[0].clone(), against: Some(pair.cells[1].clone()) }
    }

    /// The id under which it is journaled.
    pub fn id(&self) -> String {
        self.against.as_ref().map_or_else(|| self.cell.clone(), |other| pair_id([&self.cell, other]))
    }
}

/// What is known about a comparison before its units are made.
#[derive(Debug)]
pub struct Prospect {
    /// Units of each cell in the budget.
    pub units: f64,
    pub pairs: usize,
    /// Readings of the family.
    pub tests: usize,
    /// Seconds, also of one unit.
    pub budget: f64,
    pub unit: f64,
    /// `None`: not known yet.
    pub spread: Option<f64>,
}

/// The plan of a run, and what of it is made.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    pub run: &'a Run,
    pub trials: &'a [Trial],
    pub duets: &'a [Duet],
}

impl<'a> Made<'a> {
    /// What the open questions of a suite need next, in the order of their numbers. Nothing: it is done.
    pub fn needs(self, suite: usize) -> Vec<Need> {
        match self.run.policy() {
            Policy::Tables => self.of_tables(suite),
            Policy::Verdict(_) => self.of_builds(suite),
        }
    }

    /// What the time of the budget finds, less that of the `solos` still to be made. `None` without a
    /// comparison, and before the first unit of the warm-up.
    pub fn prospect(self, suite: usize, solos: usize) -> Option<Prospect> {
        let judged = judge(self.run, self.trials, self.duets).filter(|_| !self.duets.is_empty())?;
        let made = self.units(&self.run.suites[suite]).map(|duet| duet.unit).max().unwrap_or(0);
        let pairs = judged.pairs.len();
        // Units of the warm-up and the first ones have shorter windows than those that follow.
        let [least, of_later] = [made + 1, u32::MAX].map(|unit| self.least_window(suite, unit));
        let of_unit = |duet: &Duet| duet.preparation() + duet.time_of(Stage::Measure) + of_later.since(least);
        let first = |duet: &Duet| duet.preparation() + duet.time_of(Stage::Measure).max(of_later);
        let unit = match made {
            0 => mean(self.duets.iter().map(first)),
            _ => mean(self.units(&self.run.suites[suite]).map(of_unit)),
        };
        let unit = unit + self.time_of_second_load();
        let solos = solos as f64 * mean(self.trials.iter().map(Trial::time));
        let time = (self.seconds_left(suite) - solos).max(0.0);
        let in_round = unit * pairs as f64;
        let first = (time / in_round).min(f64::from(ROUNDS_WITHOUT_CONTROL.saturating_sub(made)));
        let later = (time - first * in_round) / (in_round + unit / f64::from(CONTROL_ROUNDS));
        Some(Prospect {
            units: f64::from(made) + first + later,
            pairs,
            tests: judged.tests,
            budget: self.run.budget.map_or(0.0, |budget| budget.as_secs_f64()),
            unit,
            spread: judged.spread,
        })
    }

    /// The least length of all windows of a unit together: several times as long as its systems take to be
    /// ready, since shorter ones would spend most of the budget on starts and warm-ups, but not at the cost
    /// of enough units; and as long as some operations take. The units of early looks are short, so that a
    /// large difference is found soon. Follows from the units of the warm-up and the number of the unit
    /// alone.
    pub fn least_window(self, suite: usize, unit: u32) -> Nanos {
        let (Some(budget), Some(comparison)) = (self.run.budget, self.run.policy().verdict()) else {
            return Nanos::ZERO;
        };
        let enough = match comparison.kind {
            ComparisonKind::Compare => ENOUGH_UNITS,
            ComparisonKind::Gate => ENOUGH_UNITS_OF_A_GATE,
        };
        let pairs = self.run.suites.iter().flat_map(|suite| &suite.pairs);
        let pairs = pairs.filter(|pair| pair.cells[0] != pair.cells[1]).count();
        let name = &self.run.suites[suite].name;
        let warm = self.duets.iter().filter(|duet| duet.warmup && duet.suite == *name);
        let share = budget.as_secs_f64() / pairs as f64 / enough - self.time_of_second_load();
        let usual = worthwhile(mean(warm.map(Duet::preparation)), share);
        let usual = if unit <= EARLY_UNITS { usual.min(EARLY_WINDOWS) } else { usual };
        let alone = self.trials.iter().filter(|trial| trial.suite == *name);
        let slowest = alone.filter_map(|trial| trial.measurement.as_ref()).map(time_for_some).max();
        // Not longer than would leave time for an early verdict.
        let longest = Duration::from_secs_f64(budget.as_secs_f64() / pairs as f64 / LEAST_UNITS).into();
        usual.max(slowest.unwrap_or(Nanos::ZERO).min(longest))
    }

    /// The second load of a pair of cells, by their trials alone: a share of the baseline's capacity or,
    /// where that is more than the other can do, of its own. `None` without one, and before these trials.
    pub fn second_load(self, suite: usize, [head, base]: [usize; 2]) -> Option<SecondLoadRate> {
        let PlannedRate::Share(share) = self.run.servers()?.1.latency? else { return None };
        let suite = &self.run.suites[suite];
        let capacity = |cell: usize| {
            let id = &suite.cells[cell].id;
            let mut of_cell = self.trials.iter().filter(|t| t.suite == suite.name && t.cell == *id);
            of_cell.find_map(|trial| Metric::OperationsPerSecond.value(trial.measurement.as_ref()?))
        };
        let [of_head, of_base] = [capacity(head)?, capacity(base)?];
        let is_of_pair =
            |duet: &&Duet| duet.cells[0] == suite.cells[head].id && duet.cells[1] == suite.cells[base].id;
        let mut made =
            self.duets.iter().filter(|duet| duet.second_load.is_some()).filter(is_of_pair).peekable();
        if made.peek().is_some() && made.all(|unit| unit.outcome != Outcome::Ok) {
            return None;
        }
        let keeps_up = share * of_base <= MOST_OF_CAPACITY * of_head;
        let per_second =
            PlannedRate::Share(share).per_second(Some(if keeps_up { of_base } else { of_head }))?;
        Some(SecondLoadRate { per_second, of_capacity: keeps_up.then_some([share, of_base]) })
    }

    /// Seconds of a unit that its second load takes.
    fn time_of_second_load(self) -> f64 {
        let has_one = self.run.servers().is_some_and(|(_, load)| load.latency.is_some());
        if has_one { TIME_OF_SECOND_LOAD } else { 0.0 }
    }

    /// Seconds that a suite has left. A run with a budget gives each suite an equal share, and what the ones
    /// before it left.
    pub fn seconds_left(self, suite: usize) -> f64 {
        let suites = &self.run.suites;
        match (self.run.budget, suites[suite].precision) {
            (Some(budget), _) => {
                let share = (suite + 1) as f64 / suites.len() as f64;
                budget.as_secs_f64() * share - self.spent(|_| true)
            }
            (None, Some(precision)) => {
                precision.time.as_secs_f64() - self.spent(|of| *of == suites[suite].name)
            }
            (None, None) => 0.0,
        }
    }

    /// Whether these trials and units of the first rounds fit into the budget, by their mean times so far.
    pub fn has_time_for<'s>(self, suite: usize, ids: impl Iterator<Item = &'s String>) -> bool {
        let times = self.mean_times(suite);
        let seconds: f64 = ids.filter_map(|id| times.get(id)).sum();
        self.run.budget.is_none() || seconds <= self.seconds_left(suite)
    }

    /// True for a cell, or for a pair or probe by its id, that is not tried again. A pair is also left out
    /// while one of its cells has only failed: its unit would take the same deadline.
    pub fn is_given_up(self, suite: usize, id: &str, cell: &str, against: Option<&str>) -> bool {
        let suite = &self.run.suites[suite].name;
        let outcomes = |cell: &str| {
            let of_cell = self.trials.iter().filter(|trial| trial.suite == *suite && trial.cell == cell);
            of_cell.map(|trial| &trial.outcome).collect::<Vec<_>>()
        };
        let has_only_failed = |cell: &str| {
            let of_cell = outcomes(cell);
            !of_cell.is_empty() && of_cell.iter().all(|outcome| **outcome != Outcome::Ok)
        };
        let Some(against) = against else { return is_given_up(outcomes(cell).into_iter()) };
        let of_pair = |duet: &&Duet| duet.suite == *suite && duet.id() == id && duet.second_load.is_none();
        let units = self.duets.iter().filter(of_pair);
        has_only_failed(cell) || has_only_failed(against) || is_given_up(units.map(|duet| &duet.outcome))
    }

    /// The units of open pairs up to the next look, and those of the control between them.
    fn of_builds(self, index: usize) -> Vec<Need> {
        let suite = &self.run.suites[index];
        let last = self.units(suite).map(|duet| duet.unit).max().unwrap_or(0);
        // A round that was interrupted is finished first, by those that were open before it.
        if let Some(before) = last_look(last.saturating_sub(1)) {
            let newest = |pair: &&PlannedPair| {
                let of_pair = self.units(suite).filter(|duet| duet.cells == pair.cells);
                of_pair.map(|duet| duet.unit).max().unwrap_or(0)
            };
            let lacks_last = |pair: &&PlannedPair| (before..last).contains(&newest(pair));
            if self.pairs(index).any(|pair| lacks_last(&pair)) {
                let (open, _) = self.open_builds(index, before);
                let unfinished: Vec<_> = open.into_iter().filter(lacks_last).collect();
                if !unfinished.is_empty() {
                    return unfinished.into_iter().map(|pair| Need::for_unit(pair, last)).collect();
                }
            }
        }
        let Some(look) = last_look(last) else { return Vec::new() };
        let (open, rounds) = self.open_builds(index, look);
        let end = next_look(last).min(last.saturating_add(rounds));
        let control = self.pairs(index).find(|pair| pair.cells[0] == pair.cells[1]);
        let in_round = |unit: u32| {
            let control = control.filter(|_| has_control(unit));
            open.iter()
                .copied()
                .chain(control)
                .map(move |pair| Need::for_unit(pair, unit))
                .collect::<Vec<_>>()
        };
        if open.is_empty() { Vec::new() } else { (last + 1..=end).flat_map(in_round).collect() }
    }

    /// The pairs without a verdict at a look, and the rounds of these for which there is time. Where there is
    /// none, those that wait for their second series.
    fn open_builds(self, index: usize, look: u32) -> (Vec<&'a PlannedPair>, u32) {
        let Some(judged) = judge_until(self.run, self.trials, self.duets, look) else {
            return (Vec::new(), 0);
        };
        let suite = &self.run.suites[index];
        let chosen = |is_chosen: fn(&JudgedPair) -> bool| self.chosen(index, &judged, is_chosen);
        let of_suite = || self.duets.iter().filter(|duet| duet.suite == suite.name);
        let second = of_suite().filter(|duet| duet.second_load.is_some()).map(Duet::time);
        let units = of_suite().filter(|duet| duet.second_load.is_none()).map(Duet::time);
        // A second load is a part of its unit.
        let share_of_second = second.clone().count() as f64 / units.clone().count().max(1) as f64;
        let unit = mean(units) + mean(second) * share_of_second;
        let rounds = |pairs: usize, left: f64| (left / (unit * pairs as f64)).max(0.0) as u32;
        let (open, left) = (chosen(|pair| !pair.is_decided()), self.seconds_left(index));
        match rounds(open.len(), left) {
            0 => {
                let plan = self.run.policy().verdict();
                let is_gate = plan.is_some_and(|plan| plan.kind == ComparisonKind::Gate);
                let more = self.run.budget.filter(|_| is_gate).map_or(0.0, Nanos::as_secs_f64);
                let suspects = chosen(JudgedPair::is_suspect);
                match rounds(suspects.len(), left + more * FOR_CONFIRMATION) {
                    0 => (Vec::new(), 0),
                    rounds => (suspects, rounds),
                }
            }
            rounds => (open, rounds),
        }
    }

    fn chosen(self, index: usize, judged: &Judgement, is: fn(&JudgedPair) -> bool) -> Vec<&'a PlannedPair> {
        let suite = &self.run.suites[index].name;
        let is_chosen = |pair: &&PlannedPair| {
            let found =
                judged.pairs.iter().find(|judged| judged.suite == *suite && judged.cells == pair.cells);
            found.is_some_and(is)
        };
        self.pairs(index).filter(is_chosen).collect()
    }

    /// Pairs that are measured in duet and not given up.
    fn pairs(self, index: usize) -> impl Iterator<Item = &'a PlannedPair> {
        let is_tried = move |pair: &&PlannedPair| {
            let [cell, other] = &pair.cells;
            pair.no_duet.is_none() && !self.is_given_up(index, &pair.id(), cell, Some(other))
        };
        self.run.suites[index].pairs.iter().filter(is_tried)
    }

    fn units(self, suite: &PlannedSuite) -> impl Iterator<Item = &'a Duet> {
        self.duets.iter().filter(move |duet| duet.suite == suite.name && duet.is_of_first_load())
    }

    fn spent(self, is_meant: impl Fn(&String) -> bool) -> f64 {
        let trials = self.trials.iter().filter(|trial| is_meant(&trial.suite)).map(Trial::time);
        let duets = self.duets.iter().filter(|duet| is_meant(&duet.suite)).map(Duet::time);
        trials.chain(duets).map(Nanos::as_secs_f64).sum()
    }

    /// Seconds of a trial or unit, by its id.
    fn mean_times(self, suite: usize) -> BTreeMap<String, f64> {
        let suite = &self.run.suites[suite].name;
        let trials = self.trials.iter().filter(|trial| trial.suite == *suite && !trial.warmup);
        let duets = self.duets.iter().filter(|duet| duet.suite == *suite && !duet.warmup);
        let trials = trials.map(|trial| (trial.cell.clone(), trial.time(), 1.0));
        let mut times = BTreeMap::<String, (f64, f64)>::new();
        let duets =
            duets.map(|duet| (duet.id(), duet.time(), if duet.second_load.is_none() { 1.0 } else { 0.0 }));
        for (id, time, one) in trials.chain(duets) {
            let (sum, count) = times.entry(id).or_default();
            (*sum, *count) = (*sum + time.as_secs_f64(), *count + one);
        }
        times.into_iter().map(|(id, (sum, count))| (id, sum / f64::max(count, 1.0))).collect()
    }
}

/// As long as the preparation, where a unit may have this time in all.
fn worthwhile(preparation: f64, unit: f64) -> Nanos {
    Duration::from_secs_f64((WINDOW_OF_PREPARATION * preparation).min(unit - preparation).max(0.0)).into()
}

/// How long some operations take on a side of a pair, by a trial alone.
fn time_for_some(alone: &Measurement) -> Nanos {
    let each = alone.elapsed.0 as f64 / alone.operations.max(1) as f64;
    Nanos((SIDES * SOME_OPERATIONS * each) as u64)
}

fn mean(times: impl Iterator<Item = Nanos>) -> f64 {
    let (sum, n) = times.fold((0.0, 0.0), |(sum, n), time| (sum + time.as_secs_f64(), n + 1.0));
    sum / f64::max(n, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_four_times_the_preparation_while_there_is_time_for_enough_units() {
        let times = [(0.25, 2.0), (1.2, 2.0), (3.0, 2.0)].map(|(before, unit)| worthwhile(before, unit).0);
        assert_eq!(times, [1_000_000_000, 800_000_000, 0]);
    }
}
