//! Percentiles of all trials together: histograms are added up, percentiles never averaged.

use linerate_contract::Counts;
use linerate_model::Histogram;
use serde::{Deserialize, Serialize};

/// Percentiles of a histogram in microseconds, and the number of operations in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub min: f64,
    pub max: f64,
    pub count: u64,
}

/// Latency by percentile, for plots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyCurve {
    /// 0, 50, 80, 90, 95, 98, 99, 99.5, ...: as far as there are slower operations.
    pub percent: Vec<f64>,
    /// All trials together, in microseconds.
    pub us: Vec<f64>,
    /// The smallest and the largest among the trials, as far as the operations of each trial reach.
    pub trials_us: Vec<[f64; 2]>,
}

/// The curve ends where fewer operations are slower: the next percentile would be that of single events.
const FEWEST_SLOWER: f64 = 5.0;

/// The share of slower operations at each point: 1, 1/2, 1/5, 1/10, ..., down to one in ten million.
fn shares() -> impl Iterator<Item = f64> {
    (0..8_i32).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| 1.0 / (digit * 10_f64.powi(power))))
}

/// Six decimals are those of one in fifty million, the smallest share: with fewer, it would be 100.
fn percent(share: f64) -> f64 {
    ((1.0 - share) * 1e8).round() / 1e6
}

/// The histograms of all trials, added up.
#[derive(Debug)]
pub struct Pool {
    all: Counts,
    /// The curve of each trial by itself.
    trials: Vec<Vec<f64>>,
}

impl Pool {
    pub fn from_histograms<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Self {
        let mut trials = Vec::new();
        let counts = histograms.into_iter().map(|histogram| {
            let counts = histogram.counts();
            trials.push(points(&counts));
            counts
        });
        Self { all: Counts::sum(counts), trials }
    }

    /// `None` if nothing was recorded.
    pub fn curve(&self) -> Option<LatencyCurve> {
        let us = points(&self.all);
        let shortest = self.trials.iter().map(Vec::len).min()?;
        let at = |point: usize| {
            let values = self.trials.iter().map(|trial| trial[point]);
            [values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max)]
        };
        let percent = shares().take(us.len()).map(percent).collect();
        (!us.is_empty()).then(|| LatencyCurve { percent, us, trials_us: (0..shortest).map(at).collect() })
    }

    /// In microseconds; `None` if nothing was recorded.
    pub fn latency(&self) -> Option<Latency> {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let percentile = |percent| self.all.percentile(percent).map(micros);
        Some(Latency {
            mean: self.all.mean()? / 1e3,
            p50: percentile(50.0)?,
            p90: percentile(90.0)?,
            p99: percentile(99.0)?,
            p999: percentile(99.9)?,
            min: micros(self.all.min),
            max: micros(self.all.max),
            count: self.all.total(),
        })
    }
}

/// The latency at each share, in one pass.
fn points(counts: &Counts) -> Vec<f64> {
    let total = counts.total() as f64;
    let (mut seen, mut pairs) = (0.0, counts.pairs.iter());
    let mut value = None;
    let due = shares().take_while(|share| total * share >= FEWEST_SLOWER);
    due.map_while(|share| {
        let rank = (total * (1.0 - share)).ceil().max(1.0);
        while seen < rank {
            let (nanos, count) = pairs.next()?;
            (value, seen) = (Some(*nanos), seen + *count as f64);
        }
        value.map(|nanos| nanos as f64 / 1e3)
    })
    .collect()
}

/// No trial has more operations: this is a million per second for eleven days. Larger counts are from a
/// damaged journal and would overflow a sum.
const MOST: u64 = 1_000_000_000_000;

/// The histogram, if its counts are plausible.
pub fn sound(histogram: &Option<Histogram>) -> Option<&Histogram> {
    histogram.as_ref().filter(|histogram| histogram.total().is_some_and(|total| total <= MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_trial_is_in_the_tail_of_the_merged_histogram() {
        let fast = Counts { pairs: vec![(1_000, 98)], min: 1_000, max: 1_000 };
        let slow = Counts { pairs: vec![(9_000, 2)], min: 9_000, max: 9_000 };
        let both = Pool::from_histograms([&fast.into(), &slow.into()]).latency().unwrap();
        assert_eq!((both.p50, both.p90, both.p99, both.max), (1.0, 1.0, 9.0, 9.0));
        assert_eq!((both.min, both.mean, both.count), (1.0, 1.16, 100));
    }

    #[test]
    fn a_curve_ends_with_its_samples_and_its_band_with_those_of_a_trial() {
        let trial = |offset: u64| -> Histogram {
            let pairs = (1..=100).map(|i| (1_000 * (i + offset), 1)).collect();
            Counts { pairs, min: 1_000, max: 200_000 }.into()
        };
        let curve = Pool::from_histograms([&trial(0), &trial(50)]).curve().unwrap();
        // Two hundred operations: five of them are slower than p97.5, and five of a hundred than p95.
        assert_eq!(curve.percent, [0.0, 50.0, 80.0, 90.0, 95.0]);
        assert_eq!(curve.trials_us[1], [50.0, 100.0]);
        assert_eq!(curve.trials_us.len(), 5);
        assert_eq!((curve.us[0], curve.us[1]), (1.0, 75.0));
        assert_eq!(Pool::from_histograms([]).curve(), None);
        assert_eq!(Pool::from_histograms([&Counts::default().into()]).curve(), None);
    }

    #[test]
    fn each_step_of_a_long_curve_is_nearer_to_a_hundred_percent_and_none_is_there() {
        let long = Counts { pairs: vec![(1_000, 400_000_000)], min: 1_000, max: 1_000 };
        let percent = Pool::from_histograms([&long.into()]).curve().unwrap().percent;
        assert!(percent.is_sorted_by(|a, b| a < b) && percent.last() < Some(&100.0), "{percent:?}");
        assert_eq!(percent[17..], [99.9998, 99.9999, 99.99995, 99.99998, 99.99999, 99.999995, 99.999998]);
    }

    #[test]
    fn implausible_counts_are_ignored() {
        let implausible = Some(Counts { pairs: vec![(1, u64::MAX), (2, u64::MAX)], min: 1, max: 2 }.into());
        assert_eq!(sound(&implausible), None);
        let empty = Some(Counts::default().into());
        assert_eq!(sound(&empty), empty.as_ref());
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        assert_eq!(Pool::from_histograms([]).latency(), None);
        assert_eq!(Pool::from_histograms([&Counts::default().into()]).latency(), None);
    }
}
