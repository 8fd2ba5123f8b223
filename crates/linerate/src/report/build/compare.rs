//! The comparison of two cells: from their duets where the run has them, else from their solo trials by
//! round.

use super::aa::{AaControl, comparison};
use super::cell::Cell;
use crate::measurement::{Duet, Metric};
use crate::report::model::{Comparison, DuetReport};
use crate::stats::compare::{Verdict, ratio, verdict};
use crate::stats::duet::{log_cpu_ratio, log_ratio};
use crate::stats::ratio::RatioEstimate;

/// Differences of an A/A control up to this are tolerated: a third of the margin of 3 % that users care
/// about.
const CONTROL_TOLERANCE: f64 = 0.01;

/// True if a baseline in duet with itself differs from itself, so that its duets decide nothing.
pub(in crate::report) fn control_fails(aa: &Comparison) -> bool {
    aa.verdict != Verdict::NoDifferenceFound && (aa.ratio - 1.0).abs() > CONTROL_TOLERANCE
}

/// A duet that contradicts the solo trials does not measure the same: a side that needs little CPU waits
/// for the time slices of the other (docs/method.md). The solo trials then count.
fn overlap(a: [f64; 2], b: [f64; 2]) -> bool {
    a[0] <= b[1] && b[0] <= a[1]
}

/// The comparisons of a suite.
pub(super) struct Comparisons<'a> {
    pub(super) aa: AaControl,
    pub(super) duets: Vec<&'a Duet>,
}

impl Comparisons<'_> {
    /// `cell` against `other`; `None` without a common round or unit.
    pub(super) fn of(&self, cell: &Cell<'_>, other: &Cell<'_>, metric: Metric) -> Option<Comparison> {
        if metric.is_growth() {
            return None;
        }
        let alone = ratio(&cell.values(metric), &other.values(metric), metric.better());
        if let Some(mut by_duet) = self.by_duet(&cell.planned.id, &other.planned.id, metric)
            && alone.is_none_or(|alone| overlap(alone.interval, by_duet.ci95))
        {
            if self.by_duet(&by_duet.with, &by_duet.with, metric).is_some_and(|aa| control_fails(&aa)) {
                by_duet.verdict = Verdict::NoDifferenceFound;
            }
            return Some(by_duet);
        }
        let alone = alone?;
        let verdict = verdict(&alone, self.aa.noise_floor(metric));
        Some(comparison(other.planned.id.clone(), &alone, verdict))
    }

    /// The baseline in duet with itself, or its solo control.
    pub(super) fn control(&self, id: &str, metric: Metric) -> Option<Comparison> {
        self.by_duet(id, id, metric).or_else(|| self.aa.comparison(metric))
    }

    fn by_duet(&self, id: &str, other: &str, metric: Metric) -> Option<Comparison> {
        let units = || self.duets.iter().filter(|duet| duet.cells[0] == id && duet.cells[1] == other);
        let ratio = RatioEstimate::of(units().filter_map(|duet| log_ratio(duet, metric)))?;
        let ci95 = ratio.ci95?; // fewer units than an interval needs
        let cpu = RatioEstimate::of(units().filter_map(|duet| log_cpu_ratio(duet, metric, None)));
        Some(Comparison {
            with: other.to_owned(),
            ratio: ratio.ratio,
            ci95,
            n: ratio.n,
            verdict: match ci95 {
                [low, _] if low > 1.0 => Verdict::Faster,
                [_, high] if high < 1.0 => Verdict::Slower,
                _ => Verdict::NoDifferenceFound,
            },
            duet: Some(DuetReport {
                cpu_ratio: cpu.map(|cpu| cpu.ratio),
                cpu_ci95: cpu.and_then(|cpu| cpu.ci95),
                smallest_detectable: ratio.detectable,
            }),
        })
    }
}
