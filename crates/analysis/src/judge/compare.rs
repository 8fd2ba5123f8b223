//! The comparison of two cells: from their duets where the run has them, else from their solo trials by
//! round.

use super::alone::{Alone, SoloRatio};
use super::cell::CellSummary;
use super::comparison::{Comparison, DuetReport};
use super::journal::SortedJournal;
use crate::judge::pairs::Judgement;
use crate::stats::autocorrelation::autocorrelation;
use crate::stats::bound::DISTURBED;
use crate::stats::compare::log_ratios;
use crate::stats::cost::Per;
use crate::stats::difference::LatencyDifference;
use crate::stats::duet::{is_busy_loop, is_rate, log_cpu_ratio, log_ratio, log_ratio_of_loops};
use crate::stats::estimate::{Estimate, FEWEST_ROUNDS};
use crate::stats::ratio::RatioEstimate;
use crate::stats::sensitivity::Sensitivity;
use crate::stats::verdict::{Verdict, is_equal, verdict};
use linerate_contract::Role;
use linerate_model::{Metric, Sides, Unit};
use std::collections::BTreeMap;

/// The comparisons of a suite.
#[derive(Debug, Clone, Copy)]
pub struct Comparisons<'a> {
    /// The index of the suite.
    pub suite: usize,
    pub journal: &'a SortedJournal<'a>,
    /// The pairs of a run that is looked at while it is measured.
    pub judgement: Option<&'a Judgement>,
}

impl Comparisons<'_> {
    /// `cell` against `other`; `None` without a common round or unit.
    ///
    /// Where the solo trials contradict the duets (docs/method.md), there is no verdict, and both ratios are
    /// in the result.
    pub fn compare(
        &self,
        cell: &CellSummary<'_>,
        other: &CellSummary<'_>,
        metric: Metric,
    ) -> Option<Comparison> {
        self.judge([cell, other], metric, self.by_duet([cell, other], metric))
    }

    /// `cell` against the baseline of its table: as the run judged its pair, where it was looked at while it
    /// was measured, else as [`Self::compare`].
    pub(super) fn with_baseline(
        &self,
        cell: &CellSummary<'_>,
        baseline: &CellSummary<'_>,
        metric: Metric,
    ) -> Option<Comparison> {
        let fixed = self.compare(cell, baseline, metric)?;
        let Some(judgement) = self.judgement else { return Some(fixed) };
        judgement.pairs_of(self.suite).find(|pair| pair.places[0] == cell.place)?.in_table(fixed)
    }

    /// The CPU time of a cell in its trials alone, and the roles whose CPU time it is (empty: all).
    pub(super) fn cpu_alone(&self, cell: &CellSummary<'_>, metric: Metric) -> (Option<Alone>, Vec<Role>) {
        let mut pairs = self.judgement.into_iter().flat_map(|judgement| judgement.pairs_of(self.suite));
        let of_pair =
            pairs.find_map(|pair| Some((pair, pair.places.iter().position(|place| *place == cell.place)?)));
        match of_pair {
            Some((pair, side)) => (pair.cpu_alone[side], pair.cpu_of.clone()),
            None => (cell.cost(Per::from_metric(metric), &[]).map(Alone::from), Vec::new()),
        }
    }

    /// As [`Self::compare`], but without a duet of the two it takes those of the other order, else those of
    /// both with one of `cells`.
    pub fn compare_any(
        &self,
        cell: &CellSummary<'_>,
        other: &CellSummary<'_>,
        metric: Metric,
        cells: &[CellSummary<'_>],
    ) -> Option<Comparison> {
        let reversed = || self.by_duet([other, cell], metric)?.inverse();
        // Both by the same measure: see `by_duet`.
        let is_alike = is_busy(cell) == is_busy(other);
        let through = |third: &CellSummary<'_>| {
            let both = [self.by_duet([cell, third], metric)?, self.by_duet([other, third], metric)?];
            Ratio::quotient(both, &third.planned.id)
        };
        let together = self.by_duet([cell, other], metric).or_else(reversed);
        let together = together.or_else(|| cells.iter().filter(|_| is_alike).find_map(through));
        self.judge([cell, other], metric, together)
    }

    fn judge(
        &self,
        [cell, other]: [&CellSummary<'_>; 2],
        metric: Metric,
        together: Option<Ratio>,
    ) -> Option<Comparison> {
        let logs: Vec<f64> =
            log_ratios(&cell.values(metric), &other.values(metric), metric.better()).collect();
        let alone = Some(logs).filter(|_| !metric.is_growth()).unwrap_or_default();
        let denial = together.as_ref().and_then(|both| both.denied_by(&alone));
        let mut found =
            together.or_else(|| Ratio::from_logs(alone))?.report(&other.planned.id, self.journal.margin);
        if let Some(duet) = found.duet.as_mut() {
            (duet.contradicted_by, duet.doubted_by) =
                (denial.filter(SoloRatio::is_exact), denial.filter(|alone| !alone.is_exact()));
            if duet.contradicted_by.is_some() || duet.strangers.is_some() {
                found.verdict = Verdict::CannotTell;
            }
            let cost = other.cost(Per::from_metric(metric), &[]);
            duet.with_cpu_us = cost.filter(|_| duet.cpu_ratio.is_some()).map(|cost| cost.median);
        }
        // A client that is late for its schedule makes a system slow: then no difference is the system's.
        let is_open_loop = cell.planned.parameters.rate.is_some();
        if (is_rate(metric) || metric.is_latency()) && (is_equal(found.verdict) || is_open_loop) {
            found.client_is_limit = cell.is_bound_by_generator() || other.is_bound_by_generator();
            if found.client_is_limit {
                found.verdict = Verdict::CannotTell;
            }
        }
        let baseline = Estimate::from_values(other.values(metric).into_values());
        found.with_value = baseline.map(|baseline| baseline.median).filter(|_| !metric.is_growth());
        let difference = found.with_value.filter(|_| metric.is_latency());
        let difference =
            difference.and_then(|value| LatencyDifference::from_ratio(found.ratio, found.ci95, value));
        Some(Comparison { difference, ..found })
    }

    /// The cell in duet with itself; `None` without a unit.
    pub(super) fn control(&self, cell: &CellSummary<'_>, metric: Metric) -> Option<Comparison> {
        Some(self.by_duet([cell, cell], metric)?.report(&cell.planned.id, self.journal.margin))
    }

    /// The sensitivities that the probes of the cell's roles found.
    pub fn sensitivity(&self, cell: &CellSummary<'_>) -> BTreeMap<Role, Sensitivity> {
        let of_role = |role: Role| {
            let units = self.journal.measured(self.suite, Sides::Probed(cell.place, role));
            Some((role, Sensitivity::from_units(units, cell.metric)?))
        };
        cell.planned.systems.iter().filter_map(|system| of_role(system.role)).collect()
    }

    fn by_duet(&self, cells: [&CellSummary<'_>; 2], metric: Metric) -> Option<Ratio> {
        let of_pair = self.journal.measured(self.suite, Sides::Two(cells.map(|cell| cell.place)));
        let (units, too_busy) = undisturbed(of_pair);
        let units = || units.iter().copied();
        let log = if cells.into_iter().all(is_busy) { log_ratio_of_loops } else { log_ratio };
        let ratio = Ratio::from_logs(units().filter_map(|unit| log(unit, metric)).collect())?;
        let cpu = RatioEstimate::from_logs(units().filter_map(|unit| log_cpu_ratio(unit, metric, &[])));
        let duet = DuetReport {
            sharing: units().find_map(|unit| Some(unit.together()?.sharing)),
            cpu_ratio: cpu.map(|cpu| cpu.ratio),
            cpu_ci95: cpu.and_then(|cpu| cpu.ci95),
            strangers: too_busy.map(|busy| busy.strangers),
            ..DuetReport::default()
        };
        Some(Ratio { duet: Some(duet), ..ratio })
    }
}

fn is_busy(cell: &CellSummary<'_>) -> bool {
    is_busy_loop(cell.planned, cell.good.iter().map(|(_, measurement)| *measurement))
}

/// Shorter than all digits of a binary number, and finer than any plot: five decimals, and five significant
/// digits of less than a tenth.
pub fn rounded_unit(ratio: f64) -> f64 {
    let digits = 4.0 - ratio.log10().floor();
    let scale = if digits.is_finite() { 10_f64.powf(digits.clamp(5.0, 20.0)) } else { 1e5 };
    (ratio * scale).round() / scale
}

/// Why a pair has no verdict: other processes used the CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TooBusy {
    /// Their mean share in the units beside them.
    pub(crate) strangers: f64,
    /// Units without them that a verdict lacks.
    pub(crate) lacks: u32,
}

/// The units in which other processes used at most a tenth of the CPUs' time, if there are six of them: their
/// choice does not depend on what they found. Else all.
pub(crate) fn undisturbed<'a>(units: impl Iterator<Item = &'a Unit>) -> (Vec<&'a Unit>, Option<TooBusy>) {
    let all: Vec<&Unit> = units.collect();
    let share = |unit: &Unit| unit.together().and_then(|both| both.strangers).unwrap_or(0.0);
    let (quiet, busy): (Vec<&Unit>, Vec<&Unit>) = all.iter().partition(|unit| share(unit) <= DISTURBED);
    if busy.is_empty() || quiet.len() >= FEWEST_ROUNDS as usize {
        return (quiet, None);
    }
    let strangers = busy.iter().map(|unit| share(unit)).sum::<f64>() / busy.len() as f64;
    let lacks = FEWEST_ROUNDS - quiet.len() as u32;
    (all, Some(TooBusy { strangers, lacks }))
}

struct Ratio {
    estimate: RatioEstimate,
    units: Vec<f64>,
    duet: Option<DuetReport>,
}

impl Ratio {
    fn from_logs(logs: Vec<f64>) -> Option<Self> {
        let units = logs.iter().filter(|log| log.is_finite()).map(|log| log.exp()).map(rounded_unit);
        let units = units.filter(|unit| unit.is_finite());
        Some(Self { units: units.collect(), estimate: RatioEstimate::from_logs(logs)?, duet: None })
    }

    /// The other way round.
    fn inverse(self) -> Option<Self> {
        let duet = self.duet.map(|duet| DuetReport {
            cpu_ratio: duet.cpu_ratio.map(f64::recip),
            cpu_ci95: duet.cpu_ci95.map(|[low, high]| [high.recip(), low.recip()]),
            ..duet
        });
        Some(Self { duet, ..Self::from_logs(self.units.iter().map(|unit| -unit.ln()).collect())? })
    }

    /// The ratio of two cells from those of both to a third one. The units of the two are independent, so
    /// each may be divided by any: where both are distributed symmetrically, which the signed-rank interval
    /// needs, their differences are so, too. The CPU time is left out.
    fn quotient([first, second]: [Self; 2], third: &str) -> Option<Self> {
        let logs = first.units.iter().zip(&second.units).map(|(first, second)| (first / second).ln());
        let strangers = |ratio: &Self| ratio.duet.as_ref().and_then(|duet| duet.strangers);
        let duet = DuetReport {
            sharing: first.duet.as_ref().and_then(|duet| duet.sharing),
            through: Some(third.to_owned()),
            strangers: strangers(&first).into_iter().chain(strangers(&second)).reduce(f64::max),
            ..DuetReport::default()
        };
        Some(Self { duet: Some(duet), ..Self::from_logs(logs.collect())? })
    }

    /// The solo trials, by the log ratio of each round, where they deny the duets.
    fn denied_by(&self, alone: &[f64]) -> Option<SoloRatio> {
        let ci95 = self.estimate.ci95?;
        SoloRatio::from_logs(alone).filter(|alone| alone.denies(self.estimate.ratio, ci95))
    }

    fn report(self, with: &str, margin: f64) -> Comparison {
        let RatioEstimate { ratio, range, ci95, ci90, p, n, detectable } = self.estimate;
        Comparison {
            with: with.to_owned(),
            with_value: None,
            ratio,
            ci95: ci95.unwrap_or(range),
            ci95_is_range: ci95.is_none(),
            ci90,
            difference: None,
            p: Some(p),
            q: None,
            smallest_detectable: detectable,
            n,
            autocorrelation: autocorrelation(&self.units),
            units: self.units,
            verdict: verdict(&self.estimate, margin),
            client_is_limit: false,
            duet: self.duet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(middle: f64) -> Ratio {
        let logs = [-0.03, 0.01, -0.02, 0.02, 0.03, -0.01].map(|noise| f64::ln(middle) + noise).into();
        let duet = DuetReport { cpu_ratio: Some(2.0), cpu_ci95: Some([1.9, 2.5]), ..DuetReport::default() };
        Ratio { duet: Some(duet), ..Ratio::from_logs(logs).unwrap() }
    }

    #[test]
    fn the_other_way_round_a_ratio_and_its_interval_are_reciprocals() {
        let (there, back) = (ratio(0.5), ratio(0.5).inverse().unwrap());
        assert!((there.estimate.ratio * back.estimate.ratio - 1.0).abs() < 1e-4);
        let [[low, high], [back_low, back_high]] =
            [there.estimate.ci95, back.estimate.ci95].map(Option::unwrap);
        assert!((low * back_high - 1.0).abs() < 1e-4 && (high * back_low - 1.0).abs() < 1e-4);
        assert_eq!(back.duet.unwrap().cpu_ci95, Some([0.4, 1.0 / 1.9]));
    }

    #[test]
    fn two_ratios_to_a_third_cell_give_that_of_the_two() {
        let found = Ratio::quotient([ratio(0.5), ratio(0.25)], "third").unwrap();
        let [low, high] = found.estimate.ci95.unwrap();
        assert!(low <= 2.0 && 2.0 <= high && found.estimate.n == 6, "{:?}", found.estimate);
        assert_eq!(found.duet.unwrap().through.as_deref(), Some("third"));
    }
}
