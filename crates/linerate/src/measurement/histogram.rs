//! The latencies of a trial as the journal and a report keep them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use linerate_contract::{Counts, packed::PackedPairs};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Counts by value: `{"pairs": "<base64>", "min": .., "max": ..}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pairs: PackedPairs,
    pub min: u64,
    pub max: u64,
}

impl Histogram {
    /// `None` if it exceeds a number, as in a damaged journal.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.pairs.total()
    }

    /// As [`Counts::percentile`].
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.pairs.percentile(percent)
    }

    /// As [`Counts::mean`].
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total = self.total().filter(|total| *total > 0)?;
        Some(self.sum() / total as f64)
    }

    /// Of all latencies.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.pairs.sum()
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { pairs: self.pairs.to_vec(), min: self.min, max: self.max }
    }
}

impl From<Counts> for Histogram {
    fn from(counts: Counts) -> Self {
        Self { pairs: PackedPairs::of(&counts.pairs), min: counts.min, max: counts.max }
    }
}

/// RFC 4648, section 4, without padding.
fn to_base64<S: Serializer>(pairs: &PackedPairs, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD_NO_PAD.encode(pairs.bytes()))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PackedPairs, D::Error> {
    deserializer.deserialize_str(PairsVisitor)
}

struct PairsVisitor;

impl Visitor<'_> for PairsVisitor {
    type Value = PackedPairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values and counts in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PackedPairs, E> {
        STANDARD_NO_PAD.decode(text).map(PackedPairs::from_bytes).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn text_that_is_not_base64_is_an_error() {
        assert!(serde_json::from_str::<Histogram>(r#"{"pairs":"no base64!","min":0,"max":0}"#).is_err());
    }
}
