//! `report.json`: what other programs read. Its schema is `docs/report.schema.json`. Every number is
//! measured, or computed from measured ones by `stats/`; a number without trials is absent.

mod published;

use super::comparison::{ComparisonReport, Reason};
use super::words::json;
pub use linerate_analysis::judge::{
    AgainstTruth, Alone, Comparison, Disturbance, DuetReport, Flag, OutcomeWord, Quantity, ShareOf,
    SoloRatio, TableUnit,
};
use linerate_analysis::stats::bound::Bottleneck;
use linerate_analysis::stats::cost::{Consumer, Per};
use linerate_analysis::stats::latency::{Latency, LatencyCurve};
pub use linerate_analysis::stats::sensitivity::Sensitivity;
pub use linerate_analysis::stats::transport::{DatagramReport, SeriesReport, TcpReport};
pub use linerate_analysis::stats::usage::UsageReport;
use linerate_contract::{Errors, Role};
use linerate_model::axes::Axes;
use linerate_model::{Better, Host, PlannedHost, PlannedSystem};
pub use published::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// The whole report of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// `linerate.report/4`.
    pub schema: String,
    pub run: RunFacts,
    pub host: Host,
    /// The machines of the roles, where they are on several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<PlannedHost>,
    /// Set where the run compares two builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonReport>,
    pub suites: Vec<SuiteReport>,
}

pub const REPORT_SCHEMA: &str = "linerate.report/4";

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunFacts {
    pub id: String,
    /// The exact command that repeats this run.
    pub command: String,
    pub seed: u64,
    /// Measured rounds that are complete.
    pub rounds: u32,
    /// Measured rounds in the plan; in a run with a budget, those of every cell.
    pub planned_rounds: u32,
    /// True if every planned trial is in the journal.
    pub complete: bool,
    pub quick: bool,
    /// Only the tables that repeat a document's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub published: bool,
    pub linerate: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// Time of all trials, all stages included.
    pub wall_seconds: f64,
    /// The part of it inside measurement windows.
    pub measuring_seconds: f64,
    /// The rest, by stage: `raise`, `start`, `verify`, `measure` (around the window), `stop`; and `warmup`,
    /// all stages of the trials that are left out of the numbers.
    pub stage_seconds: BTreeMap<String, f64>,
    /// Set where others used the CPUs: the first line of every text has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// Oddities of the journal, such as lines of cells that are not in the plan.
    #[serde(serialize_with = "json::oddities")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub flags: Vec<Oddity>,
}

/// Lines of a journal that do not count, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oddity {
    NotInPlan(usize),
    /// A later line for the same cell or pair and round counts.
    Replaced(usize),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuiteReport {
    pub name: String,
    pub question: String,
    /// Unit of the first table, such as `seconds for 10000 operations`.
    #[serde(serialize_with = "json::first_unit")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: Option<TableUnit>,
    pub better: Better,
    /// Id of the first baseline.
    pub baseline: String,
    pub tables: Vec<TableReport>,
    /// The document that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedReport>,
    pub cells: Vec<CellReport>,
    /// Rows that were profiled beside their baselines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// The axis of offered load, in percent of the closed loop of the same row.
pub(crate) const LOAD_AXIS: &str = "load";

/// How a table is laid out; its numbers are in the cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableReport {
    pub name: String,
    pub title: String,
    #[serde(serialize_with = "json::table_unit")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: TableUnit,
    pub better: Better,
    pub rows: String,
    pub columns: String,
    pub row_values: Vec<String>,
    pub column_values: Vec<String>,
    /// The relative difference that matters: smaller ones can be `within the margin`.
    pub margin: f64,
    /// The rows were looked at while they were measured, and the verdict on all of them is above the tables,
    /// which have no tiers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sequential: bool,
    /// Set where the true values are known: the relative difference from the truth that a right value may
    /// have. The cells of such a table have no baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth_tolerance: Option<f64>,
    /// Values of the compared axes that nobody chooses between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_choice: Vec<String>,
    /// The baseline in duet with itself. Where it differs, the verdicts of the table's duets are withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aa: Option<Comparison>,
    /// The smallest bias, as a share, that this control shows: half of its interval's width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_bias: Option<f64>,
    pub cells: Vec<TableCell>,
    /// One system against the best of its competitors, row by row; empty where the suite requests none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_of: Vec<BestOfResult>,
    pub notes: Vec<String>,
}

/// A cell and the competitor that has the best median.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BestOfResult {
    pub id: String,
    /// By what: the metric and its unit.
    #[serde(serialize_with = "json::metric")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub metric: Quantity,
    pub vs_best: Comparison,
}

/// A cell in a table: its number by the table's metric, and its comparisons. [`CellReport`] has the numbers
/// of the first table that contains the cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TableCell {
    pub id: String,
    /// Which of several metrics this is; absent where the table has but one.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "json::some_metric")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub metric: Option<Quantity>,
    /// The number of the row, in the unit of the table. A row that is compared has the value of its baseline
    /// by the ratio: values of a table divide to the ratios beside them. Any other has that of its trials
    /// alone. Absent of a cell that is not `ok`.
    pub value: Option<f64>,
    /// 95 % interval of the value; absent with fewer units or trials than it needs.
    pub ci95: Option<[f64; 2]>,
    /// The cell's trials alone, whatever its ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// CPU time, by the table's first metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<RowCpu>,
    /// Absent for the baseline itself, and for limits, which are no competitors.
    pub vs_baseline: Option<Comparison>,
    /// By the table's first metric.
    pub vs_limit: Option<ShareOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vs_reference: Option<ShareOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vs_truth: Option<AgainstTruth>,
    /// Against the same system's cell that is the base of scaling, such as that with one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Comparison>,
}

impl TableCell {
    /// The cell's value is that of its baseline by the ratio, and not that of its trials alone.
    pub fn is_by_ratio(&self) -> bool {
        self.value.is_some() && self.vs_baseline.as_ref().is_some_and(|found| found.with_value.is_some())
    }
}

impl TableReport {
    /// The cells by the table's first metric, for sentences and plots.
    pub fn main_cells(&self) -> impl Iterator<Item = &TableCell> {
        let first = self.cells.first().and_then(|cell| cell.metric);
        self.cells.iter().filter(move |cell| cell.metric == first)
    }

    /// Whether the baseline in duet with itself differs from itself.
    pub fn control_fails(&self) -> bool {
        self.aa.as_ref().is_some_and(|aa| aa.fails_as_control(self.margin))
    }

    /// The table with a part of its cells.
    pub fn with_cells(&self, is_meant: impl Fn(&TableCell) -> bool) -> Self {
        Self { cells: self.cells.iter().filter(|cell| is_meant(cell)).cloned().collect(), ..self.clone() }
    }

    /// Whether each row was under a share of its own capacity, so that values of two rows are of two rates.
    pub fn is_of_own_load(&self) -> bool {
        !self.is_sequential && [&self.rows, &self.columns].into_iter().any(|axis| axis == LOAD_AXIS)
    }

    /// The first metric of the table.
    pub fn quantity(&self) -> Option<Quantity> {
        match self.unit {
            TableUnit::One(quantity) => Some(quantity),
            TableUnit::OfRow => self.cells.first()?.metric,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellReport {
    pub id: String,
    pub axes: Axes,
    pub systems: Vec<PlannedSystem>,
    /// Its work is a part of that of the other rows, so that it is no competitor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_limit: bool,
    /// Absent where nothing on the path is impaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathReport>,
    #[serde(serialize_with = "json::unit")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: Quantity,
    pub better: Better,
    pub outcome: OutcomeWord,
    /// The reason where it is not `ok`, or the number of failed trials and the first reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Successful measured trials.
    pub n: u32,
    /// The cell's number in the first table that contains it; a cell that is not `ok` has none.
    pub value: Option<f64>,
    /// 95 % interval of the value; absent with fewer units or trials than it needs.
    pub ci95: Option<[f64; 2]>,
    /// The trials alone, whatever the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// The value of each trial alone, by round.
    pub values: Vec<f64>,
    pub vs_baseline: Option<Comparison>,
    /// Against the row whose work is a strict subset of this one's: nothing should exceed 1.
    pub vs_limit: Option<ShareOf>,
    /// Against another honest mark, which rows may exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vs_reference: Option<ShareOf>,
    /// Against the known true value, by the metric of the first table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vs_truth: Option<AgainstTruth>,
    /// `server`, `client`, `relay`, `path`, `waiting` (no CPU was busy for the whole window), `spinning`
    /// (none but those of roles that are always busy) or `unknown`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub bound_by: Option<Bottleneck>,
    /// By role, of a run with `--probe`: d ln(rate) / d ln(CPU time of the role).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Sensitivity>"))]
    pub sensitivity: BTreeMap<Role, Sensitivity>,
    /// In the trials alone. Keys: the roles, and `machine` (busy time of all the lab's CPUs).
    #[cfg_attr(test, schemars(with = "BTreeMap<String, CpuCost>"))]
    pub cpu: BTreeMap<Consumer, CpuCost>,
    /// Latency of all measured trials together.
    pub latency_us: Option<Latency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_curve: Option<LatencyCurve>,
    /// Connection set-up alone, where each operation has one.
    pub connect_us: Option<Latency>,
    /// Version, cipher suite and library of the client's TLS, as negotiated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Datagrams of all measured trials together, of a transport that may lose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramReport>,
    /// The sending kernel's `TCP_INFO`: medians over the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpReport>,
    /// Throughput over time: medians over the trials, step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesReport>,
    /// Resource usage of the server's processes, where a table shows its growth: medians over the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
    /// Successful operations of all measured trials.
    pub operations: u64,
    /// Operations that failed in all measured trials, by kind.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub errors: Errors,
    /// Each begins with its kind: `few-rounds`, `bound-by-generator`, `above-limit`, `littles-law`,
    /// `outlier`, `steal`, `disturbed`, `drift`, `autocorrelated`, `leak`, `not-measured`; or a lab's.
    #[serde(serialize_with = "json::flags")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub flags: Vec<Flag>,
}

/// Exactly one of the two is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuCost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us_per_op: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us_per_mb: Option<f64>,
    /// 95 %; absent with fewer units or trials than it needs.
    pub ci95: Option<[f64; 2]>,
    /// The lowest and the highest of fewer than six trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

impl CpuCost {
    /// In microseconds per operation or megabyte.
    pub(crate) fn new(per: Per, micros: f64, ci95: Option<[f64; 2]>) -> Self {
        Self {
            us_per_op: (per == Per::Operation).then_some(micros),
            us_per_mb: (per == Per::Megabyte).then_some(micros),
            ci95,
            range: None,
        }
    }

    /// The median over trials alone.
    pub(crate) fn alone(per: Per, alone: Alone) -> Self {
        Self { range: alone.range, ..Self::new(per, alone.value, alone.ci95) }
    }

    pub(crate) fn micros(&self) -> Option<f64> {
        self.us_per_op.or(self.us_per_mb)
    }
}

/// CPU time of a row: that of its baseline by the ratio of the CPU times, else that of its trials alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RowCpu {
    #[serde(flatten)]
    pub cost: CpuCost,
    /// The roles whose CPU time it is; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub of: Vec<Role>,
}

/// A path that delays, drops or holds back packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathReport {
    /// In one line.
    pub description: String,
    /// By what packets were impaired: `relay`, or disciplines of the kernel; empty without a trial.
    pub means: String,
    /// Counts of the relay, of all measured trials and links together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<WayReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<WayReport>,
}

/// Packets of one direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WayReport {
    pub packets: u64,
    /// Percent that were dropped as required.
    pub lost_percent: f64,
    /// Percent that the queue of the rate dropped.
    pub overflowed_percent: f64,
    /// Percent that left more than 100 microseconds after their time.
    pub late_percent: f64,
    /// Packets that the relay itself lost.
    pub overrun: u64,
}
