//! `suites/<name>.toml`: a question, as data. Tables of cells; each table spans its axes.

use crate::measurement::{Metric, Precision, Sharing, Truth, default_verify, default_warmup};
use crate::parameters::Parameters;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A suite file as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SuiteFile {
    /// One sentence that ends in a question mark.
    pub question: String,
    /// Runs before suites that need as many builds.
    #[serde(default)]
    pub first: bool,
    /// Runs only where it is named: a question about linerate itself.
    #[serde(default)]
    pub apart: bool,
    /// Measured rounds of a full run.
    pub rounds: u32,
    /// Rounds that are journaled and left out of the numbers.
    #[serde(default)]
    pub warmup_rounds: u32,
    /// Solo trials of a cell that is measured in duet; absent: one in each round.
    pub solos: Option<u32>,
    /// Units of each pair in a round; absent: two.
    pub units: Option<u32>,
    /// Narrower intervals where the rounds leave them wide.
    pub precision: Option<PrecisionEntry>,
    /// Changes of `--quick`.
    pub quick: Changes,
    /// Changes of `--published`, in place of those of `--quick` where both are given. Absent: as without it.
    pub published: Option<Changes>,
    pub published_quick: Option<Changes>,
    /// Values of an axis that several tables have in common, by name: `axes.system = "loops"`.
    #[serde(default)]
    pub lists: toml::Table,
    pub tables: Vec<Table>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Changes {
    pub rounds: u32,
    #[serde(default)]
    pub warmup_rounds: u32,
    /// Solo trials of a cell that is measured in duet; absent: one in each round.
    pub solos: Option<u32>,
    pub precision: Option<PrecisionEntry>,
    /// Workload parameters in place of the tables' own.
    #[serde(default)]
    pub parameters: BTreeMap<String, u64>,
}

/// `precision = { half-width = 0.02, time = "220s" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrecisionEntry {
    /// Half the width of the 95 % interval of a ratio, as a share of the ratio.
    pub half_width: f64,
    /// The most time of the whole suite, builds left out.
    pub time: String,
}

impl PrecisionEntry {
    /// # Errors
    /// A half-width that is no share, or a time that cannot be read; with the key.
    pub(super) fn parse(&self) -> Result<Precision, String> {
        if !(self.half_width > 0.0 && self.half_width < 1.0) {
            return Err("precision.half-width: expected a share such as 0.02".to_owned());
        }
        let time = humantime::parse_duration(&self.time).ok().filter(|time| !time.is_zero());
        let time =
            time.ok_or_else(|| format!("precision.time: `{}` is not a time such as \"4min\"", self.time))?;
        Ok(Precision { half_width: self.half_width, time: time.into() })
    }
}

/// One table of the report: every combination of the axes' values is a cell.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Table {
    pub name: String,
    /// A template over the parameters, such as `Seconds for {{ operations }} requests`.
    pub title: String,
    pub metric: Metric,
    /// Further metrics of the same cells, each with rows of its own, such as `p99-latency`.
    #[serde(default)]
    pub also: Vec<Metric>,
    /// Templates over the axes.
    pub layer: String,
    pub workload: String,
    /// The path between client and server, such as `"loopback"` or `{ delay = "20ms" }`; texts are templates
    /// over the axes. Absent: client - router - server.
    pub path: Option<toml::Value>,
    /// Which axis makes the rows, which the columns.
    pub rows: String,
    pub columns: String,
    /// Template over the axes that gives a cell its id. Equal ids in two tables are one cell, run once.
    pub id: String,
    /// System variant for each role; templates over the axes. Absent roles have no process. Several relays
    /// are on routers of their own, the first one next to the client.
    pub roles: BTreeMap<linerate_contract::Role, Variants>,
    /// Axis values that differ in the cell to compare with, such as `path = "direct"`; empty beside `truth`.
    #[serde(default)]
    pub baseline: BTreeMap<String, String>,
    /// Values of axes that nobody chooses between: a baseline with nothing in place of what is compared, so
    /// that the others have costs, and further references. `direct`, `none` and the plain layer are known.
    #[serde(default)]
    pub no_choice: Vec<String>,
    /// Known true values, in place of a baseline: a wrong report is neither fast nor slow.
    pub truth: Option<TruthEntry>,
    /// Axis values that differ in the limit's cell: its work is a strict subset of that of every row.
    pub limit: Option<BTreeMap<String, String>>,
    /// Axis values that differ in the cell of another honest mark, which rows may exceed.
    pub reference: Option<BTreeMap<String, String>>,
    /// Axis values that differ in the cell that scaling factors are of, such as `threads = "1"`.
    pub scaling: Option<BTreeMap<String, String>>,
    /// One system against the best of its competitors in each row.
    pub best_of: Option<BestOfEntry>,
    #[serde(default)]
    pub parameters: BTreeMap<String, Amount>,
    /// How duets share the CPUs: `alternating`, where the client can ([`crate::system::manifest::Variant`]);
    /// `together`, where all rows keep equal CPUs busy to the same degree; else in `turns`.
    pub pairs: Option<Sharing>,
    /// Parameters in place of these before the clock starts: while it verifies (default: 10 operations on one
    /// connection), and while it warms up (default: 200 operations; empty: not at all).
    #[serde(default = "default_verify")]
    pub verify: Parameters,
    #[serde(default = "default_warmup")]
    pub warmup: Parameters,
    /// Parameters of the workload that are not numbers, such as `direction = "{{ direction }}"`; templates
    /// over the axes.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Changes of `--quick` in this table.
    #[serde(default)]
    pub quick: TableChanges,
    /// Changes of `--published` without `--quick`.
    #[serde(default)]
    pub published: TableChanges,
    /// Changes of all runs in full but those with `--complete`.
    #[serde(default)]
    pub full: TableChanges,
    /// In the order of rows and columns.
    pub axes: toml::Table,
    /// Names of lists of points, for tables without all combinations. A point is a table of axes with one
    /// value each; it is combined with the axes above.
    #[serde(default)]
    pub points: Vec<String>,
    /// Sentences for the report, under the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// `truth = { tolerance = 0.1, values = { p99-latency = "90ms" } }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruthEntry {
    /// The share of the truth by which a right value may differ from it.
    pub tolerance: f64,
    /// Latencies, as times with a unit.
    pub values: BTreeMap<Metric, String>,
}

/// `best_of = { axis = "system", subject = "native", competitors = "libraries" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BestOfEntry {
    pub axis: String,
    pub subject: String,
    /// Values of the axis, or the name of one of the lists.
    pub competitors: toml::Value,
    /// Absent: the table's own.
    #[serde(default)]
    pub metrics: Vec<Metric>,
}

/// A form may have fewer rows and other parameters, the quick one fewer tables. The full form has them all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TableChanges {
    pub leave_out: bool,
    /// Fewer values of an axis.
    pub axes: toml::Table,
    /// Fewer lists of points.
    pub points: Option<Vec<String>>,
    /// In place of the table's own.
    pub parameters: BTreeMap<String, Amount>,
}

impl Table {
    /// The true values of the table: `truth = { tolerance = 0.1, values = { p99-latency = "90ms" } }`. `None`
    /// for a table that compares its cells with a baseline.
    ///
    /// # Errors
    /// A table with both or with neither, a metric that it does not show or that is no latency, or a time
    /// that cannot be read; with the key.
    pub(super) fn truth(&self) -> Result<Option<Truth>, String> {
        let Some(entry) = &self.truth else {
            let has_baseline = !self.baseline.is_empty();
            return has_baseline
                .then_some(None)
                .ok_or("baseline: a table needs one, or a `truth`".to_owned());
        };
        let others = [&self.limit, &self.reference, &self.scaling];
        let compares = !self.baseline.is_empty() || others.iter().any(|other| other.is_some());
        if compares || self.best_of.is_some() {
            return Err("truth: its cells are compared with the truth, and so with no other cell".to_owned());
        }
        if !(entry.tolerance > 0.0 && entry.tolerance < 1.0) {
            return Err("truth.tolerance: expected a share such as 0.1".to_owned());
        }
        let mut values = BTreeMap::new();
        for (metric, text) in &entry.values {
            if !(*metric == self.metric || self.also.contains(metric)) || !metric.is_latency() {
                return Err("truth.values: expected latencies that the table shows".to_owned());
            }
            let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
            let time = time
                .ok_or_else(|| format!("truth.values: `{text}` is not a time above 0, such as \"90ms\""))?;
            values.insert(*metric, time.into());
        }
        Ok(Some(Truth { tolerance: entry.tolerance, values }))
    }
}

/// A variant, or several in a row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected the name of a variant, or a list of names")]
pub enum Variants {
    One(String),
    Row(Vec<String>),
}

impl Variants {
    /// Along the path.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Row(names) => names,
        }
    }
}

/// A parameter: a number, or arithmetic over the axes such as `"{{ size * 65536 }}"`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, or a template that gives one")]
pub enum Amount {
    Number(u64),
    Template(String),
}

impl Amount {
    pub(super) fn template(&self) -> Option<&String> {
        match self {
            Self::Number(_) => None,
            Self::Template(text) => Some(text),
        }
    }
}
