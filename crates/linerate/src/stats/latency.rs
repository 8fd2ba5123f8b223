//! Percentiles of all trials together: histograms are added up, percentiles never averaged.

use crate::measurement::Histogram;
use linerate_contract::Counts;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Percentiles of a histogram in microseconds, and the number of operations in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
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

/// No trial has more operations: this is a million per second for eleven days. Larger counts are from a
/// damaged journal and would overflow a sum.
const MOST: u64 = 1_000_000_000_000;

/// The histogram, if its counts are plausible.
#[must_use]
pub fn sound(histogram: &Option<Histogram>) -> Option<&Histogram> {
    histogram.as_ref().filter(|histogram| histogram.total().is_some_and(|total| total <= MOST))
}

/// In microseconds; `None` if nothing was recorded.
#[must_use]
pub fn latency<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> Option<Latency> {
    let mut all = Counts::default();
    for histogram in histograms {
        all.merge(&histogram.counts());
    }
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let percentile = |percent| all.percentile(percent).map(micros);
    Some(Latency {
        mean: all.mean()? / 1e3,
        p50: percentile(50.0)?,
        p90: percentile(90.0)?,
        p99: percentile(99.0)?,
        p999: percentile(99.9)?,
        min: micros(all.min),
        max: micros(all.max),
        count: all.total(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_trial_is_in_the_tail_of_the_merged_histogram() {
        let fast = Counts { pairs: vec![(1_000, 98)], min: 1_000, max: 1_000 };
        let slow = Counts { pairs: vec![(9_000, 2)], min: 9_000, max: 9_000 };
        let both = latency([&fast.into(), &slow.into()]).unwrap();
        assert_eq!((both.p50, both.p90, both.p99, both.max), (1.0, 1.0, 9.0, 9.0));
        assert_eq!((both.min, both.mean, both.count), (1.0, 1.16, 100));
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
        assert_eq!(latency([]), None);
        assert_eq!(latency([&Counts::default().into()]), None);
    }
}
