//! The latencies of a trial, packed: in the journal, of which they are most, and in memory.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use linerate_contract::Counts;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Counts by value. Nothing is lost: they come out as they went in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    pairs: Pairs,
    pub min: u64,
    pub max: u64,
}

/// For each value the difference from the one before it, and its count. Neighbouring values are near each
/// other and most counts are small, so most numbers have one byte or two (LEB128 of the DWARF standard). As
/// JSON: base64 (RFC 4648, section 4) without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pairs {
    packed: Box<[u8]>,
    /// Of all counts; `None` if it exceeds a number, as in a damaged journal.
    total: Option<u64>,
}

impl Histogram {
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.pairs.total
    }

    /// Values and counts, in increasing order of values.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pairs.iter()
    }

    /// As [`Counts::percentile`].
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = ((percent / 100.0 * self.total()? as f64).ceil() as u64).max(1);
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
        let total = self.total().filter(|total| *total > 0)?;
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
        Self { pairs: Pairs::of(packed), min: counts.min, max: counts.max }
    }
}

impl Pairs {
    fn of(packed: Vec<u8>) -> Self {
        let mut pairs = Self { packed: packed.into(), total: None };
        let total = pairs.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(count));
        pairs.total = total;
        pairs
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut rest, mut value) = (&*self.packed, 0_u64);
        std::iter::from_fn(move || {
            value = value.wrapping_add(take(&mut rest)?);
            Some((value, take(&mut rest)?))
        })
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(&self.packed))
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PairsVisitor)
    }
}

struct PairsVisitor;

impl Visitor<'_> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values and counts in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Pairs, E> {
        STANDARD_NO_PAD.decode(text).map(Pairs::of).map_err(E::custom)
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
        // Ten bytes are the longest number; a damaged journal may have more.
        if byte & 0x80 == 0 || shift == 63 {
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
            let json = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Histogram>(&json).unwrap(), &histogram);
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

    #[test]
    fn a_damaged_histogram_is_an_error_or_has_fewer_pairs() {
        let read = |pairs: &str| {
            serde_json::from_str::<Histogram>(&format!(r#"{{"pairs":"{pairs}","min":0,"max":0}}"#))
        };
        assert!(read("not base64!").is_err());
        // Twelve bytes that all announce another, and a value without a count.
        for damaged in ["//////////////8", "AQ"] {
            assert!(read(damaged).unwrap().pairs().count() < 2, "{damaged}");
        }
    }

    /// Five times, so that a report of a hundred thousand trials fits into memory.
    #[test]
    fn a_recorded_histogram_has_a_fifth_of_the_size_of_its_counts() {
        let mut recorder = Recorder::default();
        (0..5_000_u64).for_each(|i| recorder.record(100_000 + i * i * 31 % 900_000));
        let counts = recorder.counts();
        let plain = counts.pairs.len() * size_of::<(u64, u64)>();
        assert!(Histogram::from(counts).pairs.packed.len() * 5 <= plain, "{plain} bytes");
    }
}
