//! A document beside the run that repeats it: figures, what is derived from them, findings.

use linerate_analysis::judge::{Alone, Confirmation};
use linerate_analysis::stats::difference::LatencyDifference;
use linerate_model::{Decides, DerivedTable, DocumentUnit, Published};
use serde::{Deserialize, Serialize};

/// A document beside a run: all tables of a run with `--published`, else those with a number.
pub type PublishedReport = Published<PublishedRows, DerivedRows, FindingReport>;

/// Ratios that the document computes of two figures each.
pub type DerivedRows = DerivedTable<RatioOfTwo>;

/// A table of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedRows {
    pub title: String,
    pub rows: Vec<PublishedRow>,
}

/// A figure of the document, and the value of the cell that repeats it, in the same unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedRow {
    pub row: String,
    pub unit: DocumentUnit,
    pub published: Option<f64>,
    /// The range of several values of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The text of the document in place of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Performance as a share of the document's baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_ratio: Option<f64>,
    /// Id of the cell of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// As the table of the suite has it: by the ratio, where the row has one.
    pub value: Option<f64>,
    /// 95 %; absent with fewer units or trials than it needs.
    pub ci95: Option<[f64; 2]>,
    /// The cell's trials alone, whatever its ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// The value of each trial alone, by round.
    pub values: Vec<f64>,
    /// The cell's, where it is a time for another number of operations than the document's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Sent and not received, of datagrams: the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<f64>,
    /// Performance as a share of the baseline, with its 95 % interval; too few units have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_ci95: Option<[f64; 2]>,
    /// Why there is no number of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Two figures as a ratio of performance, of the document and of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RatioOfTwo {
    /// The row of a derived table, or the form of the measurement; empty where a finding has but one.
    pub row: String,
    /// Lower values are better.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inverse: bool,
    pub published: Option<f64>,
    /// In microseconds, of latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_difference: Option<f64>,
    pub cells: Vec<String>,
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<LatencyDifference>,
    /// Rounds or units.
    pub n: u32,
    /// The cell that each of the two was measured in duet with, where they were not with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Whether the first is ahead; of a finding, whether it holds.
    pub confirmation: Confirmation,
}

/// A sentence of the document, and whether it holds in this run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingReport {
    pub text: String,
    /// The figures that it is about, as the document has them.
    pub figures: Vec<String>,
    /// By the first reading.
    pub confirmation: Confirmation,
    pub readings: Vec<RatioOfTwo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decides: Option<Decides>,
}
