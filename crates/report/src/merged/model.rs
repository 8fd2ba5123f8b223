//! `report.json` of several hosts: the reports of the runs, and what their ratios have in common. Its schema
//! is `docs/merge.schema.json`.

use crate::model::{CellReport, Quantity, Report, SuiteReport, TableCell, TableReport};
use crate::words::json;
use serde::Serialize;
use std::collections::BTreeMap;

/// One report of runs on several hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedReport {
    /// `linerate.merge/3`.
    pub schema: String,
    pub hosts: Vec<MergedHost>,
    pub suites: Vec<MergedSuite>,
    /// Facts that a reader must know before the numbers, such as runs of different versions of linerate.
    pub flags: Vec<String>,
}

pub const MERGE_SCHEMA: &str = "linerate.merge/3";

/// A machine and the runs that were made on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedHost {
    pub name: String,
    pub runs: Vec<Report>,
}

/// Ratios of a suite on several hosts, with what they have in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedSuite {
    pub name: String,
    pub tables: Vec<MergedTable>,
}

/// Ratios of a table on several hosts, with what they have in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedTable {
    pub name: String,
    /// By cell and metric, in the order of the suite.
    pub cells: Vec<MergedCell>,
    pub disagreements: Vec<Disagreement>,
}

/// A cell by one metric on all hosts; its numbers are in the reports of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedCell {
    pub id: String,
    /// Which of several metrics this is; absent where the table has but one.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "json::some_metric")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub metric: Option<Quantity>,
    /// Absent for the baseline itself, and where no host has a ratio.
    pub over_hosts: Option<OverHosts>,
}

/// The estimate of the ratios within the hosts; each host counts once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverHosts {
    /// Hosts with a ratio.
    pub hosts: u32,
    pub median: f64,
    /// The smallest and the largest.
    pub range: [f64; 2],
    /// Number of hosts by verdict; of values whose truth is known: by `right`, `wrong` and `cannot tell`.
    pub verdicts: BTreeMap<String, u32>,
}

/// A host whose result is not that of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// The subject of a disagreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// The host's interval is apart from most others, by more than the margin.
    Ratio,
    /// The cell failed there, and is ok on another host.
    Outcome,
}

/// A table as a run has it, with its suite and the name of the host.
#[derive(Clone, Copy)]
pub(super) struct TableOfRun<'a> {
    pub(super) host: &'a str,
    pub(super) suite: &'a SuiteReport,
    pub(super) table: &'a TableReport,
}

/// A cell on one host.
#[derive(Clone, Copy)]
pub(super) struct OnHost<'a> {
    pub(super) host: &'a str,
    pub(super) cell: &'a CellReport,
    pub(super) entry: &'a TableCell,
}

/// The tables of this name in the runs of all hosts.
pub(super) fn tables_of_runs<'a>(hosts: &'a [MergedHost], suite: &str, table: &str) -> Vec<TableOfRun<'a>> {
    let suites = hosts.iter().flat_map(|host| host.runs.iter().map(|run| (host.name.as_str(), run)));
    let of_run = |(host, run): (&'a str, &'a Report)| {
        let suite = run.suites.iter().find(|known| known.name == suite)?;
        let table = suite.tables.iter().find(|known| known.name == table)?;
        Some(TableOfRun { host, suite, table })
    };
    suites.filter_map(of_run).collect()
}

impl<'a> TableOfRun<'a> {
    pub(super) fn cells(self) -> impl Iterator<Item = OnHost<'a>> {
        let Self { host, suite, table } = self;
        table.cells.iter().filter_map(move |entry| {
            let cell = suite.cells.iter().find(|cell| cell.id == entry.id)?;
            Some(OnHost { host, cell, entry })
        })
    }
}

/// A table of all hosts with the numbers of each.
pub(super) struct Shown<'a> {
    pub(super) question: &'a str,
    pub(super) suite: &'a str,
    pub(super) merged: &'a MergedTable,
    pub(super) runs: Vec<TableOfRun<'a>>,
    pub(super) cells: Vec<(&'a MergedCell, Vec<OnHost<'a>>)>,
}

impl MergedReport {
    /// All tables, those of a suite one after the other.
    pub(super) fn shown(&self) -> Vec<Shown<'_>> {
        let tables =
            self.suites.iter().flat_map(|suite| suite.tables.iter().map(move |table| (suite, table)));
        tables.filter_map(|(suite, table)| Shown::new(self, &suite.name, table)).collect()
    }
}

impl<'a> Shown<'a> {
    /// `None` for a table that no run has.
    fn new(report: &'a MergedReport, suite: &'a str, merged: &'a MergedTable) -> Option<Self> {
        let runs = tables_of_runs(&report.hosts, suite, &merged.name);
        let all: Vec<OnHost<'a>> = runs.iter().flat_map(|run| run.cells()).collect();
        let on_hosts = |cell: &MergedCell| {
            let is_it = |on: &&OnHost<'a>| on.entry.id == cell.id && on.entry.metric == cell.metric;
            all.iter().filter(is_it).copied().collect()
        };
        let cells = merged.cells.iter().map(|cell| (cell, on_hosts(cell))).collect();
        Some(Self { question: &runs.first()?.suite.question, suite, merged, cells, runs })
    }

    /// The table as the first run has it: title, unit, margin.
    pub(super) fn table(&self) -> &'a TableReport {
        self.runs[0].table
    }

    /// Whether the table is the first of its suite.
    pub(super) fn is_first(&self) -> bool {
        self.runs[0].suite.tables.first().is_some_and(|first| first.name == self.merged.name)
    }
}
