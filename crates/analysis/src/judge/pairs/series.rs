//! The units of a pair by one measure, in order, and what they show at each look.

use super::ALPHA;
use super::finding::{Confirmation, Finding, Measure, ordered};
use crate::stats::difference::LatencyDifference;
use crate::stats::duet::{latencies, log_ratio_of};
use crate::stats::early;
use crate::stats::estimate::standard_deviation;
use crate::stats::ratio::{RatioEstimate, interval, p_value, shift};
use crate::stats::sequential::{looks, nominal};
use crate::stats::verdict::{Verdict, direction};
use linerate_model::{
    ComparisonKind, DecidingPercentile, LatencyMargin, Metric, PlannedComparison, Run, SideWindow, Unit,
};

/// Error probability of a suspect's second series, both directions together.
const CONFIRMATION: f64 = 0.1;
/// The second series has at most this many units for each one of the first. Chance favours a first series
/// that ends early, so the difference is smaller than it looked.
const CONFIRMING_UNITS: u32 = 2;

/// The looks of a run: units of each pair, and the share of the budget that was used by then.
pub(super) struct Looks(Vec<(u32, f64)>);

impl Looks {
    pub(super) fn from_run(run: &Run, units: &[&Unit]) -> Self {
        let budget = run.budget.map_or(f64::INFINITY, |budget| budget.as_secs_f64());
        let (alone, together): (Vec<&Unit>, Vec<&Unit>) = units.iter().partition(|unit| unit.sides.is_one());
        let before: f64 = alone.iter().map(|unit| unit.time().as_secs_f64()).sum();
        let last = together.iter().filter(|unit| !unit.warmup).map(|unit| unit.number).max().unwrap_or(0);
        let used = |number: u32| {
            let until = together.iter().filter(|unit| unit.warmup || unit.number <= number);
            until.map(|unit| unit.time().as_secs_f64()).sum::<f64>()
        };
        Self(looks(last).into_iter().map(|unit| (unit, ((before + used(unit)) / budget).min(1.0))).collect())
    }

    /// Nominal p values of repeated intervals that miss the truth with this probability, by look.
    pub(super) fn bounds(&self, alpha: f64) -> Vec<f64> {
        nominal(alpha, &self.0)
    }

    /// Looks up to a series' last unit, with their index.
    fn until(&self, last: u32) -> impl Iterator<Item = (usize, u32)> {
        self.0.iter().map(|(unit, _)| *unit).take_while(move |unit| *unit <= last).enumerate()
    }
}

/// Log ratios of performance, head over base, with the number of their unit.
pub(super) struct PairSeries {
    logs: Vec<(u32, f64)>,
    /// The variance of the log ratios of a unit's windows, where it has several.
    within: Vec<(u32, f64)>,
    /// The log ratio of each window of the units.
    windows: Vec<(u32, f64)>,
    /// The difference of latencies: head less base, in microseconds.
    differences: Vec<(u32, f64)>,
    last: u32,
}

/// A difference: after which unit it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    unit: u32,
    is_slower: bool,
}

impl PairSeries {
    pub(super) fn from_units(units: &[&Unit], log: impl Fn(&[SideWindow; 2]) -> Option<f64>) -> Self {
        let last = units.iter().map(|unit| unit.number).max().unwrap_or(0);
        let within = |unit: &Unit| {
            let windows: Option<Vec<f64>> = unit.together()?.windows.iter().map(&log).collect();
            early::within(&windows?)
        };
        let (logs, within) = (by_unit(units, |unit| log(unit.both()?)), by_unit(units, within));
        let of_unit = |unit: &&Unit| {
            let windows = unit.together().into_iter().flat_map(|both| &both.windows);
            let logs: Vec<f64> = windows.filter_map(&log).collect();
            let number = unit.number;
            logs.into_iter().map(move |log| (number, log))
        };
        let windows = units.iter().flat_map(of_unit).collect();
        Self { logs, within, windows, differences: Vec::new(), last }
    }

    pub(super) fn of_latency(units: &[&Unit], metric: Metric) -> Self {
        let difference = |unit: &Unit| latencies(unit, metric).map(|[head, base]| head - base);
        let differences = by_unit(units, difference);
        Self { differences, ..Self::from_units(units, |sides| log_ratio_of(sides, metric)) }
    }

    pub(super) fn spread(&self) -> Option<f64> {
        standard_deviation(&self.between(0, self.last))
    }

    fn between(&self, after: u32, until: u32) -> Vec<f64> {
        between(&self.logs, after, until)
    }

    /// The first look that shows a difference: an early one, or one whose p value is at most the nominal one.
    fn crossing(&self, looks: &Looks, bounds: &[f64], early_alpha: f64) -> Option<Crossing> {
        let ranked = looks.until(self.last).find_map(|(index, unit)| {
            let logs = self.between(0, unit);
            (p_value(&logs) <= bounds[index]).then(|| Crossing { unit, is_slower: is_slower(&logs) })
        });
        [self.early_crossing(0, early_alpha), ranked].into_iter().flatten().min_by_key(|found| found.unit)
    }

    /// The first unit after one until which all windows show a factor of two, or the first early look that
    /// shows a difference.
    fn early_crossing(&self, after: u32, alpha: f64) -> Option<Crossing> {
        if let Some(unit) = (after + 1..=self.last).find(|unit| self.is_factor(after, *unit)) {
            return Some(Crossing { unit, is_slower: is_slower(&self.between(after, unit)) });
        }
        early::looks(self.last.saturating_sub(after)).find_map(|units| {
            let unit = after + units;
            let interval =
                self.early_interval(after, unit, alpha).filter(|interval| early::is_large(*interval))?;
            Some(Crossing { unit, is_slower: interval[1] < 1.0 })
        })
    }

    /// Whether every window of these units is beyond a factor of two.
    fn is_factor(&self, after: u32, until: u32) -> bool {
        early::is_factor(&of_units(&self.windows, after, until).collect::<Vec<_>>())
    }

    fn early_interval(&self, after: u32, until: u32, alpha: f64) -> Option<[f64; 2]> {
        early::interval(&self.between(after, until), &between(&self.within, after, until), alpha)
    }

    /// Whether units after the crossing show the same again.
    fn confirmation(&self, first: Crossing, early_alpha: f64) -> Confirmation {
        let most = CONFIRMING_UNITS * first.unit;
        let made = self.last.saturating_sub(first.unit).min(most);
        let looks: Vec<(u32, f64)> =
            looks(made).into_iter().map(|unit| (unit, f64::from(unit) / f64::from(most))).collect();
        let bounds = nominal(CONFIRMATION, &looks);
        let is_shown = looks.iter().zip(bounds).any(|((unit, _), bound)| {
            let logs = self.between(first.unit, first.unit + unit);
            p_value(&logs) <= bound && is_slower(&logs) == first.is_slower
        });
        let again = self.early_crossing(first.unit, early_alpha);
        let is_shown_early =
            again.is_some_and(|again| again.is_slower == first.is_slower && again.unit - first.unit <= most);
        match is_shown || is_shown_early {
            true => Confirmation::Confirmed,
            false if made == most => Confirmation::Failed,
            false => Confirmation::Pending,
        }
    }

    /// `None` without a unit.
    pub(super) fn finding(
        &self,
        measure: Measure,
        looks: &Looks,
        found: Option<Crossing>,
        rules: &Rules,
    ) -> Option<Finding> {
        let of_level = |unit: u32, bound: f64| {
            let interval = interval(&self.between(0, unit), bound)?;
            let difference = shift(&between(&self.differences, 0, unit), bound);
            let difference = difference.map(|(us, ci95)| LatencyDifference { us, ci95 });
            Some(Look { unit, interval, difference })
        };
        let of_look = |(index, unit): (usize, u32)| {
            let shown = of_level(unit, rules.bounds[index])?;
            Some((shown, of_level(unit, rules.bounds_of_equals[index])?))
        };
        let made: Vec<(Look, Look)> = looks.until(self.last).filter_map(of_look).collect();
        let last = made.last().map(|(shown, _)| *shown).or_else(|| self.early_look(rules.early_alpha));
        // Once the budget is used there are no further intervals, and the estimate is that of the last one.
        let until = last.map_or(u32::MAX, |look| look.unit);
        let RatioEstimate { ratio, range, .. } = RatioEstimate::from_logs(self.between(0, until))?;
        let suspect = found.filter(|found| found.is_slower && rules.is_gate);
        let confirmation = suspect.map(|suspect| self.confirmation(suspect, rules.early_alpha));
        let is_latency = !self.differences.is_empty();
        let margins = |look: &Look| rules.in_margins(look, is_latency);
        let any =
            |is_meant: fn([f64; 2]) -> bool| made.iter().any(|(_, narrower)| is_meant(margins(narrower)));
        let is_within = any(|[low, high]| low >= -1.0 && high <= 1.0);
        let is_factor = self.is_factor(0, self.last);
        // A factor of two needs no interval, and one that denies it is not shown: the range of the units is.
        let excludes_1 = |look: &Look| direction(look.interval) != Verdict::CannotTell;
        let interval = last.filter(|look| excludes_1(look) || !is_factor).map(|look| look.interval);
        let excludes_1 = is_factor || last.as_ref().is_some_and(excludes_1);
        // Later units may contradict the look that found a difference, which is open then.
        let is_denied = confirmation.is_none() && found.is_some() && !excludes_1;
        let is_not_slower = rules.is_gate && any(|[low, _]| low >= -1.0);
        let verdict = match (found, confirmation) {
            _ if rules.is_void => Verdict::CannotTell,
            _ if is_within && excludes_1 => Verdict::SmallDifference,
            _ if is_within => Verdict::WithinMargin,
            _ if is_denied => Verdict::CannotTell,
            // The first series may have been chance: the margin can still decide.
            (Some(_), Some(Confirmation::Failed)) if is_not_slower => Verdict::NotSlower,
            (Some(_), Some(Confirmation::Pending | Confirmation::Failed)) => Verdict::CannotTell,
            (Some(found), _) if found.is_slower => Verdict::Slower,
            (Some(_), _) => Verdict::Faster,
            (None, _) if is_not_slower => Verdict::NotSlower,
            (None, _) => Verdict::CannotTell,
        };
        // A change that is open among all readings has an interval of them all, which contains no change.
        let of_family = || of_level(last?.unit, *rules.bounds_of_family.get(made.len().checked_sub(1)?)?);
        let is_narrower = verdict == Verdict::CannotTell && found.is_none() && excludes_1 && !is_factor;
        let interval = if is_narrower { of_family().map(|look| look.interval) } else { interval };
        // A few units more show that it is faster, if it is.
        let is_decided = match verdict {
            Verdict::CannotTell => false,
            Verdict::NotSlower => last.as_ref().map(margins).is_none_or(|[low, high]| low + high <= 2.0),
            _ => true,
        };
        let as_measured = |ends: [f64; 2]| ordered(ends.map(|end| Finding::of_measure(measure, end)));
        Some(Finding {
            measure,
            values: None,
            ratio: Finding::of_measure(measure, ratio),
            ci95: interval.map(as_measured),
            range: Some(as_measured(range)).filter(|_| interval.is_none()),
            difference: None,
            verdict,
            second_series: confirmation.filter(|_| !is_within),
            decides: rules.decides(measure),
            is_decided,
        })
    }

    /// The last early look, for findings whose ranks have no interval yet.
    fn early_look(&self, alpha: f64) -> Option<Look> {
        let unit = *early::looks(self.last).end();
        Some(Look { unit, interval: self.early_interval(0, unit, alpha)?, difference: None })
    }
}

/// A look at the units up to one.
#[derive(Clone, Copy)]
struct Look {
    unit: u32,
    interval: [f64; 2],
    difference: Option<LatencyDifference>,
}

fn by_unit(units: &[&Unit], value: impl Fn(&Unit) -> Option<f64>) -> Vec<(u32, f64)> {
    let mut values: Vec<(u32, f64)> =
        units.iter().filter_map(|unit| Some((unit.number, value(unit)?))).collect();
    values.sort_by_key(|(unit, _)| *unit);
    values
}

/// Values with the numbers of their units, of the units after one until another.
fn of_units(values: &[(u32, f64)], after: u32, until: u32) -> impl Iterator<Item = (u32, f64)> {
    values.iter().copied().filter(move |(unit, _)| *unit > after && *unit <= until)
}

fn between(values: &[(u32, f64)], after: u32, until: u32) -> Vec<f64> {
    of_units(values, after, until).map(|(_, value)| value).collect()
}

/// The rules that decide about a finding besides its units.
#[derive(Clone)]
pub(super) struct Rules {
    /// Nominal p values of the repeated intervals of 95 %, by look.
    pub(super) bounds: Vec<f64>,
    /// The bounds of intervals that all contain the truth with 95 %, of a family of findings.
    pub(super) bounds_of_family: Vec<f64>,
    /// The bounds for 90 %, which decides about the margin: two one-sided tests of 5 % (Schuirmann 1987).
    pub(super) bounds_of_equals: Vec<f64>,
    /// The error probability of an early look.
    pub(super) early_alpha: f64,
    pub(super) margin: f64,
    pub(super) latency_margin: LatencyMargin,
    /// Suspects need a second series, and it is enough that nothing is slower.
    pub(super) percentile: DecidingPercentile,
    pub(super) is_gate: bool,
    pub(super) is_void: bool,
}

impl Rules {
    /// The rules of a family of so many findings.
    pub(super) fn new(plan: &PlannedComparison, looks: &Looks, tests: usize, is_void: bool) -> Self {
        Self {
            bounds: looks.bounds(ALPHA),
            bounds_of_family: looks.bounds(ALPHA / tests.max(1) as f64),
            bounds_of_equals: looks.bounds(0.1),
            early_alpha: early::alpha(tests),
            margin: plan.margin,
            latency_margin: plan.latency_margin,
            percentile: plan.percentile,
            is_gate: plan.kind == ComparisonKind::Gate,
            is_void,
        }
    }

    fn decides(&self, measure: Measure) -> bool {
        match measure {
            Measure::Rate | Measure::P50 => true,
            Measure::P90 => self.percentile == DecidingPercentile::P90,
            _ => false,
        }
    }

    /// The interval of a change of performance, in margins: from -1 to 1 it does not matter.
    fn in_margins(&self, look: &Look, is_latency: bool) -> [f64; 2] {
        let by_share = |margin: f64| look.interval.map(|ratio| (ratio - 1.0) / margin);
        match (self.latency_margin, look.difference) {
            (LatencyMargin::Microseconds(margin), Some(LatencyDifference { ci95: [low, high], .. })) => {
                [-high / margin, -low / margin]
            }
            (LatencyMargin::Share(margin), _) if is_latency => by_share(margin),
            _ => by_share(self.margin),
        }
    }
}

fn is_slower(logs: &[f64]) -> bool {
    RatioEstimate::from_logs(logs.iter().copied()).is_some_and(|estimate| estimate.ratio < 1.0)
}

/// Holm's procedure on the sequential p values of a family: each difference that is found leaves more of
/// the error probability to the others. In the order of the series.
pub(super) fn holm(series: &[&PairSeries], looks: &Looks, tests: usize) -> Vec<Option<Crossing>> {
    let mut found: Vec<Option<Crossing>> = series.iter().map(|_| None).collect();
    loop {
        let left = tests - found.iter().flatten().count();
        if left == 0 {
            return found;
        }
        let bounds = nominal(ALPHA / left as f64, &looks.0);
        let mut has_more = false;
        for (found, series) in found.iter_mut().zip(series).filter(|(found, _)| found.is_none()) {
            *found = series.crossing(looks, &bounds, early::alpha(left));
            has_more |= found.is_some();
        }
        if !has_more {
            return found;
        }
    }
}
