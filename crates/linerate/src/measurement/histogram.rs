//! The latencies of a trial in memory: [`Counts`] in a fifth of their size.
//!
//! A run has a histogram for each trial, most of a journal, and a report keeps all of them. Neighbouring
//! values are near each other and most counts are small, so differences and counts have few bytes each
//! (LEB128 of the DWARF standard).

use linerate_contract::Counts;
use serde::{Deserialize, Serialize};

/// Counts by value. Nothing is lost: they come out as they went in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Counts", into = "Counts")]
pub struct Histogram {
    /// For each pair the difference from the value before it, and the count.
    packed: Box<[u8]>,
    /// Of all counts; `None` if it exceeds a number, as in a damaged journal.
    total: Option<u64>,
    pub min: u64,
    pub max: u64,
}

impl Histogram {
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Values and counts, in the order of the journal.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut rest, mut value) = (&*self.packed, 0_u64);
        std::iter::from_fn(move || {
            value = value.wrapping_add(take(&mut rest)?);
            Some((value, take(&mut rest)?))
        })
    }

    /// As [`Counts::percentile`].
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.total? as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let is_reached = |(_, count): &(u64, u64)| {
            seen += count;
            seen >= rank
        };
        self.pairs().find(is_reached).map(|(value, _)| value)
    }

    /// As [`Counts::mean`].
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0)?;
        Some(self.pairs().map(|(value, count)| value as f64 * count as f64).sum::<f64>() / total as f64)
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { pairs: self.pairs().collect(), min: self.min, max: self.max }
    }
}

impl From<Counts> for Histogram {
    fn from(counts: Counts) -> Self {
        let (mut packed, mut before) = (Vec::with_capacity(counts.pairs.len() * 3), 0_u64);
        for (value, count) in &counts.pairs {
            put(&mut packed, value.wrapping_sub(before));
            put(&mut packed, *count);
            before = *value;
        }
        let total = counts.pairs.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        Self { packed: packed.into(), total, min: counts.min, max: counts.max }
    }
}

impl From<Histogram> for Counts {
    fn from(histogram: Histogram) -> Self {
        histogram.counts()
    }
}

/// Seven bits a byte, the lowest first; all bytes but the last have the eighth bit.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Recorder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_come_out_as_they_went_in_and_have_the_same_percentiles(
            pairs in prop::collection::vec((any::<u64>(), 0..=u64::MAX / 64), 0..60),
            percent in 0.0..=100.0,
        ) {
            let counts = Counts { min: 3, max: 4, pairs };
            let histogram = Histogram::from(counts.clone());
            prop_assert_eq!(histogram.percentile(percent), counts.percentile(percent));
            prop_assert_eq!(histogram.mean(), counts.mean());
            prop_assert_eq!(histogram.counts(), counts);
        }
    }

    #[test]
    fn a_total_beyond_every_number_is_none() {
        let counts = Counts { pairs: vec![(1, u64::MAX), (2, 1)], min: 1, max: 2 };
        let histogram = Histogram::from(counts.clone());
        assert_eq!((histogram.total(), histogram.percentile(50.0), histogram.mean()), (None, None, None));
        assert_eq!(histogram.counts(), counts);
    }

    /// Five times, so that a report of a hundred thousand trials fits into memory.
    #[test]
    fn a_recorded_histogram_has_a_fifth_of_the_size_of_its_counts() {
        let mut recorder = Recorder::default();
        (0..5_000_u64).for_each(|i| recorder.record(100_000 + i * i * 31 % 900_000));
        let counts = recorder.counts();
        let plain = counts.pairs.len() * size_of::<(u64, u64)>();
        assert!(Histogram::from(counts).packed.len() * 5 <= plain, "{plain} bytes");
    }
}
