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
    ComparisonKind, Measurement, Metric, Outcome, PlannedRate, Policy, Run, SecondLoadRate, Sides, Stage,
    Unit, is_given_up,
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
/// The units of the first early looks, and how long their windows together are at most: three of them, with
/// the starts, the first trials and the second loads, end within ten seconds.
pub const EARLY_UNITS: u32 = 5;
const EARLY_WINDOWS: Nanos = Nanos(800_000_000);
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

/// A unit that an open question needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub sides: Sides,
    /// The number of the unit in the journal: of a cell alone the round, of a pair the unit.
    pub number: u32,
}

/// The prospect of a comparison before its units are made.
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
    pub units: &'a [Unit],
}

impl<'a> Made<'a> {
    /// The next units that the open questions of a suite need, in the order of their numbers; none: the suite
    /// is done.
    pub fn needs(self, suite: usize) -> Vec<Need> {
        match self.run.policy() {
            Policy::Tables => self.of_tables(suite),
            Policy::Verdict(_) => self.of_builds(suite),
        }
    }

    /// The difference that the time of the budget finds, less that of the `solos` still to be made. `None`
    /// without a comparison, and before the first unit of the warm-up.
    pub fn prospect(self, suite: usize, solos: usize) -> Option<Prospect> {
        let together: Vec<&Unit> = self.together().collect();
        let judged = judge(self.run, self.units).filter(|_| !together.is_empty())?;
        let made = self.last(suite);
        let pairs = judged.pairs.len();
        // Units of the warm-up and the first ones have shorter windows than those that follow.
        let [least, of_later] = [made + 1, u32::MAX].map(|unit| self.least_window(suite, unit));
        let of_unit = |unit: &Unit| unit.preparation() + unit.time_of(Stage::Measure) + of_later.since(least);
        let first = |unit: &Unit| unit.preparation() + unit.time_of(Stage::Measure).max(of_later);
        let unit = match made {
            0 => mean(together.into_iter().map(first)),
            _ => mean(self.pair_units(suite).map(of_unit)),
        };
        let unit = unit + self.time_of_second_load();
        let solos = solos as f64 * mean(self.alone().map(Unit::time));
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
        let pairs = pairs.filter(|pair| pair.cells[0] != pair.cells[1]).count().max(1);
        let warm = self.together().filter(|unit| unit.warmup && unit.suite == suite);
        let share = budget.as_secs_f64() / pairs as f64 / enough - self.time_of_second_load();
        let usual = worthwhile(mean(warm.map(Unit::preparation)), share);
        let usual = if unit <= EARLY_UNITS { usual.min(EARLY_WINDOWS) } else { usual };
        let alone = self.alone().filter(|unit| unit.suite == suite);
        let slowest = alone.filter_map(Unit::measurement).map(time_for_some).max();
        // Not longer than would leave time for an early verdict.
        let longest = Duration::from_secs_f64(budget.as_secs_f64() / pairs as f64 / LEAST_UNITS).into();
        usual.max(slowest.unwrap_or(Nanos::ZERO).min(longest))
    }

    /// The second load of a pair of cells, by their trials alone: a share of the baseline's capacity or,
    /// where that is more than the other can do, of its own. `None` without one, and before these trials.
    pub fn second_load(self, suite: usize, [head, base]: [usize; 2]) -> Option<SecondLoadRate> {
        let PlannedRate::Share(share) = self.run.servers()?.1.latency? else { return None };
        // Where little time is left, it is for the first question, and that needs some launches.
        let times = self.mean_times(suite);
        let unit = times.get(&Sides::Two([head, base])).copied().unwrap_or_else(|| {
            let warm = self.together().filter(|unit| unit.warmup && unit.suite == suite);
            mean(warm.map(Unit::time)) + self.least_window(suite, 1).as_secs_f64()
        });
        let of_sides =
            |sides: Sides| self.units.iter().filter(move |unit| unit.suite == suite && unit.sides == sides);
        let launches = of_sides(Sides::Two([head, base])).filter(|unit| !unit.warmup).count() as u32;
        let missing = early::FEWEST_UNITS.saturating_sub(launches).max(1);
        let needed = f64::from(missing) * unit + TIME_OF_SECOND_LOAD;
        if self.run.budget.is_some() && self.seconds_left(suite) < needed {
            return None;
        }
        let capacity = |cell: usize| {
            of_sides(Sides::One(cell)).find_map(|unit| Metric::OperationsPerSecond.value(unit.measurement()?))
        };
        let [of_head, of_base] = [capacity(head)?, capacity(base)?];
        let mut made = of_sides(Sides::AtRate([head, base])).peekable();
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
            (None, Some(precision)) => precision.time.as_secs_f64() - self.spent(|of| of == suite),
            (None, None) => 0.0,
        }
    }

    /// Whether these trials and units of the first rounds fit into the budget, by their mean times so far.
    pub fn has_time_for(self, suite: usize, units: impl Iterator<Item = Sides>) -> bool {
        let times = self.mean_times(suite);
        let seconds: f64 = units.filter_map(|sides| times.get(&sides)).sum();
        self.run.budget.is_none() || seconds <= self.seconds_left(suite)
    }

    /// True for a cell, pair or probe that is not tried again. A pair is also left out while one of its cells
    /// has only failed: its unit would take the same deadline.
    pub fn is_given_up(self, suite: usize, sides: Sides) -> bool {
        let outcomes = |sides: Sides| {
            let of_sides = move |unit: &&Unit| unit.suite == suite && unit.sides == sides;
            self.units.iter().filter(of_sides).map(|unit| &unit.outcome)
        };
        let has_only_failed = |cell: usize| {
            let mut of_cell = outcomes(Sides::One(cell)).peekable();
            of_cell.peek().is_some() && of_cell.all(|outcome| *outcome != Outcome::Ok)
        };
        let beside = sides.beside().into_iter().flat_map(|other| [sides.cell(), other]);
        is_given_up(outcomes(sides)) || beside.into_iter().any(has_only_failed)
    }

    /// True for a pair that has its verdict before the first rounds end: a factor of two needs two launches.
    pub fn is_answered(self, suite: usize, sides: Sides) -> bool {
        let Sides::Two(cells) = sides else { return false };
        let is_decided = |judged: &Judgement| {
            let pair = judged.pairs_of(suite).find(|judged| judged.places == cells);
            pair.is_some_and(JudgedPair::is_decided)
        };
        self.pair_units(suite).any(|unit| unit.sides == sides)
            && judge(self.run, self.units).as_ref().is_some_and(is_decided)
    }

    /// The units of open pairs up to the next look, and those of the control between them.
    fn of_builds(self, index: usize) -> Vec<Need> {
        let last = self.last(index);
        // A round that was interrupted is finished first, by those that were open before it.
        if let Some(before) = last_look(last.saturating_sub(1)) {
            let newest = |pair: &[usize; 2]| {
                let of_pair = self.pair_units(index).filter(|unit| unit.sides == Sides::Two(*pair));
                of_pair.map(|unit| unit.number).max().unwrap_or(0)
            };
            let lacks_last = |pair: &[usize; 2]| (before..last).contains(&newest(pair));
            if self.pairs(index).any(|pair| lacks_last(&pair)) {
                let (open, _) = self.open_builds(index, before);
                let unfinished: Vec<_> = open.into_iter().filter(lacks_last).collect();
                if !unfinished.is_empty() {
                    let need = |pair| Need { sides: Sides::Two(pair), number: last };
                    return unfinished.into_iter().map(need).collect();
                }
            }
        }
        let Some(look) = last_look(last) else { return Vec::new() };
        let (open, rounds) = self.open_builds(index, look);
        let end = next_look(last).min(last.saturating_add(rounds));
        let control = self.pairs(index).find(|[cell, other]| cell == other);
        let in_round = |number: u32| {
            let control = control.filter(|_| has_control(number));
            let pairs = open.iter().copied().chain(control);
            pairs.map(move |pair| Need { sides: Sides::Two(pair), number }).collect::<Vec<_>>()
        };
        if open.is_empty() { Vec::new() } else { (last + 1..=end).flat_map(in_round).collect() }
    }

    /// The pairs without a verdict at a look, and the rounds of these for which there is time. Where there is
    /// none, those that wait for their second series.
    fn open_builds(self, index: usize, look: u32) -> (Vec<[usize; 2]>, u32) {
        let Some(judged) = judge_until(self.run, self.units, look) else {
            return (Vec::new(), 0);
        };
        let chosen = |is_chosen: fn(&JudgedPair) -> bool| self.chosen(index, &judged, is_chosen);
        let of_suite = self.together().filter(|unit| unit.suite == index);
        let (second, units): (Vec<_>, Vec<_>) =
            of_suite.partition(|unit| matches!(unit.sides, Sides::AtRate(_)));
        // A second load is a part of its unit.
        let share_of_second = second.len() as f64 / units.len().max(1) as f64;
        let times = |units: Vec<&Unit>| mean(units.into_iter().map(Unit::time));
        let unit = times(units) + times(second) * share_of_second;
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

    fn chosen(self, index: usize, judged: &Judgement, is: fn(&JudgedPair) -> bool) -> Vec<[usize; 2]> {
        let is_chosen =
            |pair: &[usize; 2]| judged.pairs_of(index).find(|judged| judged.places == *pair).is_some_and(is);
        self.pairs(index).filter(is_chosen).collect()
    }

    /// Pairs that are measured in duet and not given up, by their cells.
    fn pairs(self, index: usize) -> impl Iterator<Item = [usize; 2]> {
        let suite = &self.run.suites[index];
        let pairs = suite.pairs.iter().filter(|pair| pair.no_duet.is_none());
        let pairs = pairs.filter_map(|pair| suite.places(pair));
        pairs.filter(move |pair| !self.is_given_up(index, Sides::Two(*pair)))
    }

    /// The measured units of a suite's pairs.
    fn pair_units(self, suite: usize) -> impl Iterator<Item = &'a Unit> {
        let is_pair = |unit: &Unit| matches!(unit.sides, Sides::Two(_)) && !unit.warmup;
        self.units.iter().filter(move |unit| unit.suite == suite && is_pair(unit))
    }

    /// The highest number of a suite's units of pairs.
    fn last(self, suite: usize) -> u32 {
        self.pair_units(suite).map(|unit| unit.number).max().unwrap_or(0)
    }

    fn alone(self) -> impl Iterator<Item = &'a Unit> {
        self.units.iter().filter(|unit| unit.sides.is_one())
    }

    fn together(self) -> impl Iterator<Item = &'a Unit> {
        self.units.iter().filter(|unit| !unit.sides.is_one())
    }

    fn spent(self, is_meant: impl Fn(usize) -> bool) -> f64 {
        let units = self.units.iter().filter(|unit| is_meant(unit.suite));
        units.map(|unit| unit.time().as_secs_f64()).sum()
    }

    /// Seconds of a unit of these cells.
    fn mean_times(self, suite: usize) -> BTreeMap<Sides, f64> {
        let mut times = BTreeMap::<Sides, (f64, f64)>::new();
        for unit in self.units.iter().filter(|unit| unit.suite == suite && !unit.warmup) {
            let (sum, count) = times.entry(unit.sides).or_default();
            (*sum, *count) = (*sum + unit.time().as_secs_f64(), *count + 1.0);
        }
        times.into_iter().map(|(sides, (sum, count))| (sides, sum / count)).collect()
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
