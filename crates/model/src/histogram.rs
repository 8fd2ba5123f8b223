//! The latencies of a trial as the journal and a report keep them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use linerate_contract::Counts;
use linerate_contract::packed::{PackedForm, PackedPairs};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Counts by value, as [`JournalHistogram`] writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "JournalHistogram", into = "JournalHistogram")]
pub struct Histogram {
    pairs: PackedPairs,
    pub min: u64,
    pub max: u64,
}

/// `{"buckets": "<base64>", "min": .., "max": ..}`; `pairs`, with differences of values, in journals of
/// earlier versions, and where a value is not the highest of its bucket.
#[derive(Serialize, Deserialize)]
struct JournalHistogram {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<Packed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<Packed>,
    min: u64,
    max: u64,
}

impl TryFrom<JournalHistogram> for Histogram {
    type Error = &'static str;

    fn try_from(journal: JournalHistogram) -> Result<Self, Self::Error> {
        let (packed, form) = match (journal.buckets, journal.pairs) {
            (Some(buckets), None) => (buckets, PackedForm::Buckets),
            (None, Some(pairs)) => (pairs, PackedForm::Values),
            _ => return Err("a histogram has either `buckets` or `pairs`"),
        };
        Ok(Self { pairs: PackedPairs::from_bytes(packed.0, form), min: journal.min, max: journal.max })
    }
}

impl From<Histogram> for JournalHistogram {
    fn from(histogram: Histogram) -> Self {
        let packed = Some(Packed(histogram.pairs.bytes().to_vec()));
        let (buckets, pairs) = match histogram.pairs.form() {
            PackedForm::Buckets => (packed, None),
            PackedForm::Values => (None, packed),
        };
        Self { buckets, pairs, min: histogram.min, max: histogram.max }
    }
}

impl Histogram {
    /// `None` if it exceeds a number, as in a damaged journal.
    pub fn total(&self) -> Option<u64> {
        self.pairs.total()
    }

    /// As [`Counts::percentile`].
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.pairs.percentile(percent)
    }

    /// As [`Counts::mean`].
    pub fn mean(&self) -> Option<f64> {
        let total = self.total().filter(|total| *total > 0)?;
        Some(self.sum() / total as f64)
    }

    /// The sum of all latencies.
    pub fn sum(&self) -> f64 {
        self.pairs.sum()
    }

    /// The latencies of both together.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut both = self.counts();
        both.merge(&other.counts());
        both.into()
    }

    pub fn counts(&self) -> Counts {
        Counts { pairs: self.pairs.to_vec(), min: self.min, max: self.max }
    }
}

impl From<Counts> for Histogram {
    fn from(counts: Counts) -> Self {
        Self { pairs: PackedPairs::pack(&counts.pairs), min: counts.min, max: counts.max }
    }
}

/// Bytes in base64 (RFC 4648, section 4) without padding.
struct Packed(Vec<u8>);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PackedVisitor)
    }
}

struct PackedVisitor;

impl Visitor<'_> for PackedVisitor {
    type Value = Packed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values and counts in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Packed, E> {
        STANDARD_NO_PAD.decode(text).map(Packed).map_err(E::custom)
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
    fn what_a_recorder_returns_is_written_by_buckets_and_journals_by_values_are_read() {
        let mut recorder = linerate_contract::Recorder::default();
        (0..1_000).for_each(|i| recorder.record(1_000 + i * 977));
        let histogram = Histogram::from(recorder.counts());
        assert!(serde_json::to_string(&histogram).unwrap().starts_with(r#"{"buckets":"#));
        // 7 once, then 9 (7 + 2) three times.
        let earlier = serde_json::from_str::<Histogram>(r#"{"pairs":"BwECAw","min":7,"max":9}"#).unwrap();
        assert_eq!(earlier.counts().pairs, [(7, 1), (9, 3)]);
    }

    #[test]
    fn text_that_is_not_base64_and_a_histogram_of_two_forms_or_none_are_errors() {
        for wrong in [r#""pairs":"no base64!","#, "", r#""pairs":"BwE","buckets":"BwE","#] {
            let json = format!(r#"{{{wrong}"min":0,"max":0}}"#);
            assert!(serde_json::from_str::<Histogram>(&json).is_err(), "{json}");
        }
    }
}
