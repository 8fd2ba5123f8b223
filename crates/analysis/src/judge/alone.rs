//! Trials of a cell alone: its value, and its ratio to another cell beside that of their duets.

use crate::stats::estimate::{Estimate, FEWEST_ROUNDS, mean_interval, standard_deviation, student};
use crate::stats::ratio::RatioEstimate;
use crate::stats::verdict::MARGIN;
use serde::{Deserialize, Serialize};

/// Two estimates of a pair may differ by this, as a share of the ratio, and still agree: the margin.
const AGREEMENT: f64 = MARGIN;
/// Fewer rounds have no scatter that could be known.
const FEWEST_FOR_DOUBT: usize = 3;

/// A cell by its trials alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alone {
    /// The median.
    pub value: f64,
    /// 95 %; absent with fewer than six trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The lowest and the highest of fewer than six trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    pub n: u32,
}

impl From<Estimate> for Alone {
    fn from(estimate: Estimate) -> Self {
        let Estimate { median, interval, n } = estimate;
        let (ci95, range) = if estimate.is_sure() { (Some(interval), None) } else { (None, Some(interval)) };
        Self { value: median, ci95, range, n }
    }
}

impl Alone {
    /// In another unit.
    #[must_use]
    pub fn converted(self, unit: impl Fn(f64) -> f64) -> Self {
        let both = |ends: [f64; 2]| ends.map(&unit);
        Self { value: unit(self.value), ci95: self.ci95.map(both), range: self.range.map(both), n: self.n }
    }
}

/// A ratio of solo trials, by round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SoloRatio {
    pub ratio: f64,
    /// From the signed-rank distribution. With three to five rounds Student's, of the rounds' log ratios;
    /// with one or two, of builds, Student's by the scatter of what each side did in the units of duets.
    pub ci95: [f64; 2],
    /// Rounds in which both cells succeeded.
    pub n: u32,
}

impl SoloRatio {
    /// `None` with fewer than three rounds.
    pub(super) fn from_logs(logs: &[f64]) -> Option<Self> {
        let RatioEstimate { ratio, ci95, n, .. } = RatioEstimate::from_logs(logs.iter().copied())?;
        if let Some(ci95) = ci95 {
            return Some(Self { ratio, ci95, n });
        }
        let (mean, half) = mean_interval(logs).filter(|_| logs.len() >= FEWEST_FOR_DOUBT)?;
        Some(Self { ratio: mean.exp(), ci95: [(mean - half).exp(), (mean + half).exp()], n })
    }

    /// From fewer than three rounds: a trial is taken to scatter as the units of its side do, by the
    /// logarithms in `sides`. `None` with fewer than three units.
    pub(crate) fn from_scatter(logs: &[f64], sides: [&[f64]; 2]) -> Option<Self> {
        let n = u32::try_from(logs.len()).ok().filter(|n| *n > 0 && (*n as usize) < FEWEST_FOR_DOUBT)?;
        let units = sides[0].len().min(sides[1].len());
        let [ours, theirs] = [standard_deviation(sides[0])?, standard_deviation(sides[1])?];
        let half = student(units)? * ours.hypot(theirs) / f64::from(n).sqrt();
        let mean = logs.iter().sum::<f64>() / f64::from(n);
        let found = Self { ratio: mean.exp(), ci95: [(mean - half).exp(), (mean + half).exp()], n };
        (units >= FEWEST_FOR_DOUBT).then_some(found)
    }

    /// The ratio has an exact interval, so that it may withdraw a verdict.
    pub(super) fn is_exact(&self) -> bool {
        self.n >= FEWEST_ROUNDS
    }

    /// Whether the 95 % interval of the difference of the two log ratios excludes 0 and is not within
    /// [`AGREEMENT`]: they differ for certain, and by an amount that may matter.
    pub fn denies(&self, ratio: f64, ci95: [f64; 2]) -> bool {
        let half = |[low, high]: [f64; 2]| (high / low).ln() / 2.0;
        let difference = (ratio / self.ratio).ln().abs();
        let half = half(ci95).hypot(half(self.ci95));
        difference > half && difference + half > AGREEMENT.ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_trials_have_an_interval_and_fewer_a_range() {
        let alone = |n: u32| Alone::from(Estimate::from_values((1..=n).map(f64::from)).unwrap());
        assert_eq!((alone(3).ci95, alone(3).range, alone(3).value), (None, Some([1.0, 3.0]), 2.0));
        assert!(alone(6).ci95.is_some() && alone(6).range.is_none());
        assert_eq!(alone(3).converted(|value| value * 10.0).range, Some([10.0, 30.0]));
    }

    #[test]
    fn three_rounds_doubt_a_ratio_that_is_far_outside_of_their_scatter_and_two_none() {
        let solo = |logs: &[f64]| SoloRatio::from_logs(logs);
        // 10 % faster alone, 8 % slower in duet.
        let alone = solo(&[0.09, 0.1, 0.11]).unwrap();
        assert!(alone.denies(0.922, [0.91, 0.935]) && !alone.is_exact());
        assert!(!alone.denies(1.1, [1.08, 1.12]));
        assert!(!solo(&[-0.1, 0.1, 0.3]).unwrap().denies(0.922, [0.91, 0.935]), "it scatters as far");
        assert_eq!(solo(&[0.1, 0.1]), None);
    }

    #[test]
    fn a_single_trial_doubts_a_ratio_by_the_scatter_of_the_units() {
        let units = |scatter: f64| [-1.0, 0.0, 1.0, 0.5, -0.5].map(|unit| 10.0 + scatter * unit);
        let doubts = |scatter: f64| {
            let alone = SoloRatio::from_scatter(&[0.6_f64.ln()], [&units(scatter), &units(scatter)]).unwrap();
            alone.denies(0.69, [0.64, 0.72])
        };
        assert!(doubts(0.01) && !doubts(0.1));
        assert_eq!(
            SoloRatio::from_scatter(&[0.1; 3], [&units(0.1), &units(0.1)]),
            None,
            "they have their own"
        );
        assert_eq!(SoloRatio::from_scatter(&[0.1], [&units(0.1)[..2], &units(0.1)]), None);
    }

    #[test]
    fn estimates_within_the_margin_of_each_other_agree_however_certain_their_difference_is() {
        let alone = SoloRatio { ratio: 1.01, ci95: [1.009, 1.011], n: 100 };
        assert!(!alone.denies(1.0, [0.999, 1.001]) && alone.is_exact());
        assert!(alone.denies(0.95, [0.949, 0.951]));
    }
}
