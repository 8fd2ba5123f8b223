//! Latency counts: [`Recorder`] while a window is open, [`Counts`] when they travel.
//!
//! The recorder is an HDR histogram (Gil Tene) of nanoseconds with three significant digits: any
//! reported percentile is within 0.1 % of a value that was recorded. Counts travel as pairs of value and
//! count, which every language can read and add up without a histogram library; adding them up is exact.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Three significant digits: 0.1 % resolution. Two would blur differences of a percent, four cost 8x the
/// memory.
const DIGITS: u8 = 3;
/// An hour in nanoseconds: longer than any deadline here. Larger values count as this one.
const HIGHEST: u64 = 3_600_000_000_000;

/// Records nanoseconds without lock or allocation.
#[derive(Debug, Clone)]
pub struct Recorder(Histogram<u64>);

impl Default for Recorder {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, HIGHEST, DIGITS).expect("constant bounds are valid"))
    }
}

impl Recorder {
    #[inline]
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    /// Records many values. It is compiled here and not in its caller, so that a caller without optimisation
    /// records as fast as an engine.
    pub fn record_all(&mut self, nanos: &[u64]) {
        nanos.iter().for_each(|nanos| self.record(*nanos));
    }

    /// Adds what another thread recorded.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("every recorder has the same bounds");
    }

    /// Takes away what another one recorded, all of which this one has recorded, too.
    pub fn subtract(&mut self, other: &Self) {
        self.0.subtract(&other.0).expect("every value was recorded here, too");
    }

    /// Forgets all values; keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            pairs: self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect(),
            min: if self.0.is_empty() { 0 } else { self.0.min() },
            max: self.0.max(),
        }
    }
}

/// Counts by value, ascending: `{"pairs": [[nanoseconds, count], ...], "min": .., "max": ..}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The highest value of each non-empty bucket and how many fell into it.
    pub pairs: Vec<(u64, u64)>,
    /// Lowest and highest value, to the same three digits; zero if nothing was recorded.
    pub min: u64,
    pub max: u64,
}

impl Counts {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.pairs.iter().map(|p| p.1).sum()
    }

    /// The smallest recorded value that at least `percent` percent of all values do not exceed; nothing is
    /// interpolated.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.total() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (value, count) in &self.pairs {
            seen += count;
            if seen >= rank {
                return Some(*value);
            }
        }
        None
    }

    /// As [`Self::percentile`], where at least one value in [`Self::total`] is expected to lie beyond it:
    /// else it would be the maximum by another name.
    #[must_use]
    pub fn supported_percentile(&self, percent: f64) -> Option<u64> {
        // The share of a percentile such as 99.9 is no binary fraction.
        let beyond = self.total() as f64 * (100.0 - percent) / 100.0;
        if beyond > 1.0 - 1e-9 { self.percentile(percent) } else { None }
    }

    /// Arithmetic mean of the bucket values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        let sum = self.pairs.iter().map(|(value, count)| u128::from(*value) * u128::from(*count));
        (total > 0).then(|| sum.fold(0, u128::saturating_add) as f64 / total as f64)
    }

    /// Adds the counts of another histogram; percentiles are never averaged, always taken of the sum.
    pub fn merge(&mut self, other: &Self) {
        self.append(other);
        self.compact();
    }

    /// The counts of many histograms. Pairs are sorted whenever their number has doubled, not once for each
    /// histogram: a cell may have thousands.
    #[must_use]
    pub fn sum(histograms: impl IntoIterator<Item = Self>) -> Self {
        let (mut sum, mut sorted) = (Self::default(), 0);
        for histogram in histograms {
            sum.append(&histogram);
            if sum.pairs.len() >= 2 * sorted {
                sum.compact();
                sorted = sum.pairs.len();
            }
        }
        sum.compact();
        sum
    }

    fn append(&mut self, other: &Self) {
        if other.pairs.is_empty() {
            return;
        }
        self.min = if self.pairs.is_empty() { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.pairs.extend(&other.pairs);
    }

    /// One pair for each value, ascending. Counts of other programs need not be sorted.
    fn compact(&mut self) {
        self.pairs.sort_by_key(|(value, _)| *value);
        self.pairs.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            kept.1 += if is_same { later.1 } else { 0 };
            is_same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_set_are_within_a_thousandth() {
        let mut recorder = Recorder::default();
        (1..=100_000).for_each(|us| recorder.record(us * 1_000));
        let counts = recorder.counts();
        assert_eq!(counts.total(), 100_000);
        for percent in [1.0, 50.0, 90.0, 99.0, 99.9, 99.99] {
            let truth = percent / 100.0 * 1e8;
            let reported = counts.percentile(percent).unwrap() as f64;
            assert!((reported / truth - 1.0).abs() < 1e-3, "p{percent}: {reported} is not {truth}");
        }
    }

    #[test]
    fn merging_counts_is_the_same_as_recording_together() {
        let (mut a, mut b, mut both) = (Recorder::default(), Recorder::default(), Recorder::default());
        for value in 1..5_000_u64 {
            let nanos = value * value;
            if value % 3 == 0 {
                a.record(nanos)
            } else {
                b.record(nanos)
            }
            both.record(nanos);
        }
        let mut merged = a.counts();
        merged.merge(&b.counts());
        assert_eq!(merged, both.counts());
        assert_eq!(Counts::sum([Counts::default(), a.counts(), b.counts()]), both.counts());
    }

    #[test]
    fn a_percentile_needs_a_value_beyond_it() {
        let of = |total| Counts { pairs: vec![(5, total)], min: 5, max: 5 };
        for (percent, least) in [(50.0, 2), (90.0, 10), (99.0, 100), (99.9, 1_000), (99.99, 10_000)] {
            assert_eq!(of(least).supported_percentile(percent), Some(5), "p{percent}");
            assert_eq!(of(least - 1).supported_percentile(percent), None, "p{percent}");
        }
    }

    #[test]
    fn what_is_subtracted_was_never_recorded() {
        let (mut all, mut part, mut rest) = (Recorder::default(), Recorder::default(), Recorder::default());
        for value in 1..5_000_u64 {
            let nanos = value * value;
            all.record(nanos);
            if value % 3 == 0 { part.record(nanos) } else { rest.record(nanos) }
        }
        all.subtract(&part);
        assert_eq!(all.counts(), rest.counts());
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(Counts::default().percentile(50.0), None);
        assert_eq!(Counts::default().mean(), None);
    }
}
