//! How much longer an operation takes than with the baseline, in microseconds.

use serde::{Deserialize, Serialize};

/// A ratio of latencies in the unit of the baseline: above 0 is slower.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyDifference {
    /// Microseconds of an operation.
    pub us: f64,
    /// That of the ratio.
    pub ci95: [f64; 2],
}

impl LatencyDifference {
    /// From a ratio of performance, and the median of the baseline in microseconds. `None` where a bound is
    /// not finite.
    ///
    /// The interval is that of the ratio, so that percent and microseconds agree. That of the baseline's
    /// median is left out: a baseline that is 2 % off moves the difference by 2 % of itself.
    pub fn from_ratio(ratio: f64, ci95: [f64; 2], baseline: f64) -> Option<Self> {
        let of = |ratio: f64| baseline * (1.0 / ratio - 1.0);
        let found = Self { us: of(ratio), ci95: [of(ci95[1]), of(ci95[0])] };
        [found.us, found.ci95[0], found.ci95[1]].iter().all(|us| us.is_finite()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_percent_of_ten_microseconds_are_four_tenths_and_their_interval_is_that_of_the_ratio() {
        let found = LatencyDifference::from_ratio(1.0 / 1.042, [1.0 / 1.0475, 1.0 / 1.0365], 10.0).unwrap();
        let [low, high] = found.ci95;
        for (value, expected) in [(found.us, 0.42), (low, 0.365), (high, 0.475)] {
            assert!((value - expected).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn a_faster_cell_has_a_negative_difference_and_an_endless_ratio_has_none() {
        assert_eq!(LatencyDifference::from_ratio(2.0, [2.0, 2.0], 10.0).map(|found| found.us), Some(-5.0));
        assert_eq!(LatencyDifference::from_ratio(0.5, [0.0, 1.0], 10.0), None);
    }
}
