//! Figures of a document beside those of the run.

use crate::measurement::DocumentUnit;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PublishedReport {
    pub document: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Of the document.
    pub machine: String,
    /// What differs from the document in every row.
    pub differences: Vec<String>,
    pub tables: Vec<PublishedRows>,
}

/// A table of the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PublishedRows {
    pub title: String,
    pub rows: Vec<PublishedRow>,
}

/// A figure of the document, and the median of the cell that repeats it, in the same unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PublishedRow {
    pub row: String,
    pub unit: DocumentUnit,
    pub published: Option<f64>,
    /// Of several values of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// What the document has in place of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Performance as a share of the document's baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_ratio: Option<f64>,
    /// Id of the cell of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    pub median: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// Successful trials.
    pub n: u32,
    /// Performance as a share of the baseline, with its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_ci95: Option<[f64; 2]>,
    /// Why there is no number of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
