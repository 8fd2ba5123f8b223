//! A document whose tables a suite repeats: its figures, what it derives from them, and what it found.

use crate::Metric;
use serde::{Deserialize, Serialize};

/// A document with its tables, what it derives from them, and its findings: as it is written, or each beside
/// what a run has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Published"))]
#[serde(bound(
    serialize = "T: Serialize, D: Serialize, F: Serialize",
    deserialize = "T: Deserialize<'de>, D: Deserialize<'de>, F: Deserialize<'de>"
))]
pub struct Published<T = PublishedTable, D = DerivedTable, F = Finding> {
    pub document: String,
    /// Where it is, or its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The machine of the document.
    pub machine: String,
    /// Differences from the document, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    pub tables: Vec<T>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<D>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<F>,
}

/// A table of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    pub title: String,
    /// The table of the suite that repeats it.
    pub table: String,
    /// Operations of each figure that is a time for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
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
    /// Percent of the document's baseline, in the direction of performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    pub metric: Metric,
    pub unit: DocumentUnit,
}

/// The place of a figure: the title of its table, and its row.
pub type FigurePlace = [String; 2];

/// Numbers that the document computes from two figures each, the first in relation to the second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DerivedTable"))]
pub struct DerivedTable<R = DerivedRow> {
    pub title: String,
    pub form: DerivedForm,
    /// Whose figures they are, where the question is who is ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<[String; 2]>,
    pub rows: Vec<R>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DerivedRow {
    pub row: String,
    pub figures: [FigurePlace; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DerivedForm {
    /// The values' difference, whichever direction is better: `+29.6 %`.
    Difference,
    /// The ratio of performance: `76.4 %`.
    Percent,
    /// The ratio of performance: `1.59x`.
    Times,
}

/// A sentence of the document that figures of it support.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub text: String,
    /// Two that are compared, or the one that has no value.
    pub figures: Vec<FigurePlace>,
    #[serde(default)]
    pub claim: Claim,
    /// Cells that decide it; empty: those of the figures alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
    /// The condition on which the answer depends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
}

/// A finding's claim about the performance of the first figure in relation to the second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// The first is better.
    #[default]
    Ahead,
    /// The ratio is in this range.
    Between([f64; 2]),
    /// The only figure cannot be measured.
    Fails,
}

/// A form of the measurement in which a finding is looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    pub form: String,
    /// Ids, in the order of the figures.
    pub cells: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Decides {
    pub by: Decider,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decider {
    /// How it is measured.
    Form,
    /// The versions of the systems under test.
    Version,
    /// Operating system and hardware.
    Machine,
}

impl Published {
    pub fn figure(&self, [title, row]: &FigurePlace) -> Option<&PublishedFigure> {
        let table = self.tables.iter().find(|table| table.title == *title)?;
        table.figures.iter().find(|figure| figure.row == *row)
    }

    /// Two figures of the document.
    pub fn pair(&self, [first, second]: &[FigurePlace; 2]) -> Option<[&PublishedFigure; 2]> {
        Some([self.figure(first)?, self.figure(second)?])
    }
}

impl PublishedFigure {
    /// In the unit of its metric; of a range the middle.
    pub fn typical(&self) -> Option<f64> {
        let value = self.value.or(self.range.map(|[low, high]| f64::midpoint(low, high)))?;
        Some(value / self.unit.convert(1.0))
    }
}

/// The units of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Units of 2^30 bits.
    #[serde(rename = "Gibit/s")]
    GibitPerSecond,
}

impl DocumentUnit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Microseconds => "µs",
            Self::ThousandsPerSecond => "Kops/s",
            Self::MillionsPerSecond => "Mops/s",
            Self::MibPerSecond => "MiB/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::GbitPerSecond => "Gbit/s",
            Self::GibitPerSecond => "Gibit/s",
        }
    }

    /// The number in this unit of a value by a [`Metric`] of the same quantity.
    pub fn convert(self, value: f64) -> f64 {
        match self {
            Self::Seconds | Self::Microseconds | Self::MibPerSecond | Self::GbitPerSecond => value,
            Self::ThousandsPerSecond => value / 1e3,
            Self::MillionsPerSecond => value / 1e6,
            Self::MegabytesPerSecond => value * f64::from(1 << 20) / 1e6,
            Self::GibitPerSecond => value * 1e9 / f64::from(1 << 30),
        }
    }

    /// The unit of the metric and the number in it, where the document's is another of nearly the same size.
    pub fn own(self, value: f64) -> Option<(f64, &'static str)> {
        let name = match self {
            Self::GibitPerSecond => "Gbit/s",
            Self::MegabytesPerSecond => "MiB/s",
            _ => return None,
        };
        Some((value / self.convert(1.0), name))
    }

    /// Whether it is a unit of this metric's quantity.
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
        let (gbit, name) = DocumentUnit::GibitPerSecond.own(22.4).unwrap();
        assert!((gbit - 24.05).abs() < 0.01 && name == "Gbit/s");
        assert_eq!(DocumentUnit::Seconds.own(1.0), None);
    }
}
