//! The figures of a document whose tables a suite repeats.

use super::Metric;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A document, and those of its tables that one table of a suite repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub document: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    pub machine: String,
    /// What differs from the document, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    pub tables: Vec<PublishedTable>,
}

/// A table of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    pub title: String,
    pub figures: Vec<PublishedFigure>,
}

/// A figure of the document, in the document's unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    pub row: String,
    /// The cell that repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Why no cell does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// In place of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of the document's baseline, in the direction of performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    pub metric: Metric,
    pub unit: DocumentUnit,
}

/// The units of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum DocumentUnit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "Kops/s")]
    ThousandsPerSecond,
    #[serde(rename = "Mops/s")]
    MillionsPerSecond,
    #[serde(rename = "MiB/s")]
    MibPerSecond,
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    #[serde(rename = "Gbit/s")]
    GbitPerSecond,
    /// Of 2^30 bits.
    #[serde(rename = "Gibit/s")]
    GibitPerSecond,
}

impl DocumentUnit {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Microseconds => "us",
            Self::ThousandsPerSecond => "Kops/s",
            Self::MillionsPerSecond => "Mops/s",
            Self::MibPerSecond => "MiB/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::GbitPerSecond => "Gbit/s",
            Self::GibitPerSecond => "Gibit/s",
        }
    }

    /// The number in this unit of a value by a [`Metric`] of the same quantity.
    #[must_use]
    pub fn convert(self, value: f64) -> f64 {
        match self {
            Self::Seconds | Self::Microseconds | Self::MibPerSecond | Self::GbitPerSecond => value,
            Self::ThousandsPerSecond => value / 1e3,
            Self::MillionsPerSecond => value / 1e6,
            Self::MegabytesPerSecond => value * f64::from(1 << 20) / 1e6,
            Self::GibitPerSecond => value * 1e9 / f64::from(1 << 30),
        }
    }

    /// Whether it is a unit of this metric's quantity.
    #[must_use]
    pub fn is_of(self, metric: Metric) -> bool {
        match self {
            Self::Seconds => metric == Metric::Seconds,
            Self::Microseconds => metric.is_latency(),
            Self::ThousandsPerSecond | Self::MillionsPerSecond => metric == Metric::OperationsPerSecond,
            Self::MibPerSecond | Self::MegabytesPerSecond => metric == Metric::MibPerSecond,
            Self::GbitPerSecond | Self::GibitPerSecond => metric == Metric::GbitPerSecond,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted_into_the_units_of_documents() {
        assert!((DocumentUnit::GibitPerSecond.convert(24.05) - 22.4).abs() < 0.01);
        assert!((DocumentUnit::MegabytesPerSecond.convert(100.0) - 104.857_6).abs() < 1e-9);
        assert!((DocumentUnit::ThousandsPerSecond.convert(90_290.0) - 90.29).abs() < 1e-9);
        assert!(DocumentUnit::Microseconds.is_of(Metric::P99Latency));
        assert!(!DocumentUnit::GibitPerSecond.is_of(Metric::MibPerSecond));
    }
}
