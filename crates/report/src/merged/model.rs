//! `report.json` of several hosts. Its schema is `docs/merge.schema.json`.

use crate::model::{AgainstTruth, Alone, Comparison, Flag, OutcomeWord, Quantity, RunFacts, TableUnit};
use crate::words::json;
use linerate_analysis::stats::bound::Bottleneck;
use linerate_model::Better;
use linerate_model::Host;
use linerate_model::axes::Axes;
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// One report of runs on several hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MergedReport {
    /// `linerate.merge/2`.
    pub schema: String,
    pub hosts: Vec<MergedHost>,
    pub suites: Vec<MergedSuite>,
    /// What a reader must know before the numbers, such as runs of different versions of linerate.
    pub flags: Vec<String>,
}

pub const MERGE_SCHEMA: &str = "linerate.merge/2";

/// A machine and the runs that were made on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MergedHost {
    pub name: String,
    pub machine: Host,
    pub runs: Vec<RunFacts>,
    /// By system, as its program reports it.
    pub versions: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MergedSuite {
    pub name: String,
    pub question: String,
    pub tables: Vec<MergedTable>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MergedTable {
    pub name: String,
    pub title: String,
    #[serde(serialize_with = "json::table_unit")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: TableUnit,
    pub better: Better,
    /// The relative difference that matters, also between hosts.
    pub margin: f64,
    /// By cell and metric, in the order of the suite.
    pub cells: Vec<MergedCell>,
    pub disagreements: Vec<Disagreement>,
    /// Hosts on which the baseline differs from itself, so that their verdicts are withdrawn.
    pub failed_controls: Vec<String>,
}

/// A cell by one metric on all hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct MergedCell {
    pub id: String,
    pub axes: Axes,
    /// Which of several metrics this is; absent where the table has but one.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "json::some_metric")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub metric: Option<Quantity>,
    /// Absent for the baseline itself, and where no host has a ratio.
    pub over_hosts: Option<OverHosts>,
    /// Hosts that planned the cell, in the order of the report.
    pub hosts: Vec<OnHost>,
}

/// The estimate of the ratios within the hosts; each host counts once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct OverHosts {
    /// Hosts with a ratio.
    pub hosts: u32,
    pub median: f64,
    /// The smallest and the largest.
    pub range: [f64; 2],
    /// Number of hosts by verdict; of values whose truth is known: by `right`, `wrong` and `cannot tell`.
    pub verdicts: BTreeMap<String, u32>,
}

/// A cell on one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct OnHost {
    pub host: String,
    pub outcome: OutcomeWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// As the report of the host has it: by the ratio, where the row has one.
    pub value: Option<f64>,
    /// 95 %; absent with fewer units or trials than it needs.
    pub ci95: Option<[f64; 2]>,
    /// The cell's trials alone, whatever its ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// Within this host.
    pub vs_baseline: Option<Comparison>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vs_truth: Option<AgainstTruth>,
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub bound_by: Option<Bottleneck>,
    #[serde(serialize_with = "json::flags")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub flags: Vec<Flag>,
}

/// A host whose result is not that of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Disagreement {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "json::some_metric")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub metric: Option<Quantity>,
    pub host: String,
    pub about: Subject,
    /// The ratio there; absent where the cell failed there.
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// The median of the other hosts' ratios.
    pub others: Option<f64>,
    /// Why it failed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a host disagrees about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Its interval is apart from most others, by more than the margin.
    Ratio,
    /// The cell failed there, and is ok on another host.
    Outcome,
}
