//! The part of `report.json` that a comparison of builds adds.

use crate::words::json;
use linerate_analysis::judge::pairs::{Findings, OfferedLoad, RequestFinding, SecondLoad};
use linerate_analysis::judge::{Disturbance, Quantity, SoloRatio};
use linerate_analysis::stats::bound::Bottleneck;
use linerate_analysis::stats::starts::StartReport;
use linerate_analysis::stats::verdict::Verdict;
use linerate_analysis::why::{CountDifference, Explanation};
use linerate_model::{ComparisonKind, DecidingPercentile, LatencyMargin, PairProfile, PlannedArm};
use serde::{Deserialize, Serialize};

/// Two builds of a system, cell by cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparisonReport {
    pub kind: ComparisonKind,
    pub base: PlannedArm,
    pub head: PlannedArm,
    /// Servers of the user's own, the baseline first; empty for builds of a system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<NamedCommand>,
    /// The verdict on all cells together.
    pub conclusion: Verdict,
    /// The conclusion as one sentence.
    pub sentence: String,
    /// Relative difference that matters.
    pub margin: f64,
    /// The margin of latencies.
    pub latency_margin: LatencyMargin,
    /// The highest percentile of open loops that has to be decided.
    pub percentile: DecidingPercentile,
    pub budget_seconds: f64,
    /// Time of all units and trials.
    pub seconds: f64,
    /// The standard deviation of one unit's log ratio of rates: the median over the cells.
    pub spread: Option<f64>,
    /// The slowdown that the budget finds in 90 % of runs, by this spread.
    pub smallest_detectable: Option<f64>,
    /// The base in duet with itself.
    pub aa: Option<ControlReport>,
    pub cells: Vec<ComparedCell>,
    /// How the servers started, the baseline first; of commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<StartReport>,
    /// Remarks, such as what was left out.
    pub notes: Vec<String>,
    /// Text that the subjects wrote on stderr at their start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<String>,
    /// Gates of the same cells with the same history, the oldest first, this one included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedCommand {
    pub name: String,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ControlReport {
    pub ratio: f64,
    pub ci95: Option<[f64; 2]>,
    pub n: u32,
    /// The smallest bias, as a share, that it shows: half of its interval's width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_bias: Option<f64>,
    /// The control differs from itself, so that no cell has a verdict.
    pub is_void: bool,
}

/// A cell with both builds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedCell {
    /// The id of the suite's cell.
    pub id: String,
    /// The system with two builds.
    pub system: String,
    pub verdict: Verdict,
    /// The unit of the rate's values.
    #[serde(serialize_with = "json::some_unit")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: Option<Quantity>,
    /// Units of both builds, and their time.
    pub units: u32,
    pub seconds: f64,
    /// Rate of head by that of base, unit by unit; of an open loop p50.
    pub unit_ratios: Vec<f64>,
    /// The rate or, of an open loop, the latencies; and the CPU time per operation of the system with two
    /// builds, of all roles where the kernel does its work, and of the server where commands are compared.
    pub findings: Findings,
    /// The verdict on the latencies that decide, together; slower where any latency is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_verdict: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<OfferedLoad>,
    /// The latencies and the CPU time at a share of the baseline's capacity, beside the closed loop. Decides
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_load: Option<SecondLoad>,
    /// Each of several requests by itself, the most frequent ones first: at the second load, else at that of
    /// the findings. Decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestFinding>,
    /// A role used a CPU all the time in the trials alone: the CPU time is the first finding, and decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cpu_first: bool,
    /// The client used a CPU all the time, so that equal rates show nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_is_limit: bool,
    /// The memory of the server after its trial by itself, base and head; of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<[f64; 2]>,
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub bound_by: Option<Bottleneck>,
    /// The mean time of a response of base and head alone, in microseconds, where head's is longer and no CPU
    /// is busy all the time meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_us: Option<[f64; 2]>,
    /// True: most responses of the head, and not of the base, wait 40 ms for a delayed acknowledgement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_acks: bool,
    /// The ratio of trials alone, where it contradicts the pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<SoloRatio>,
    /// Why there is no verdict, or what failed.
    pub detail: Option<String>,
    /// Events that the kernel counts for a request and that differ for certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountDifference>,
    /// Known causes, each with what shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Where the difference comes from, by profiles of both servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyReport>,
}

impl ComparedCell {
    /// Whether this is the planned cell of this suite: of two builds, the head's is `ID@head`.
    pub fn is_of(&self, suite: &str, id: &str) -> bool {
        let id = id.strip_suffix("@head").unwrap_or(id);
        self.id.strip_prefix(suite).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&self.id) == id
    }
}

/// Which functions cost more or less than those of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhyReport {
    pub sentence: String,
    /// The operation that costs and counts are for: `request`, or `write` of a bulk transfer.
    pub operation: &'static str,
    /// Absent with too few samples, or where there may be none.
    #[serde(flatten)]
    pub explanation: Option<Explanation>,
    /// The samples, for pictures.
    #[serde(skip)]
    pub profile: PairProfile,
}

/// The functions and system calls that a row spends more or less CPU time in than its baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reason {
    pub id: String,
    pub baseline: String,
    #[serde(flatten)]
    pub why: WhyReport,
    /// Known causes, each with what shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// A gate in one line of JSON, for programs that look for change points as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HistoryEntry {
    /// RFC 3339, UTC.
    pub started: String,
    pub run: String,
    pub linerate: String,
    pub cpu_model: String,
    pub kernel: String,
    pub base: String,
    pub head: String,
    pub versions: Vec<String>,
    pub margin: f64,
    pub conclusion: Verdict,
    /// Set where others used the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    pub aa: Option<ControlReport>,
    pub cells: Vec<HistoryCell>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HistoryCell {
    pub id: String,
    pub verdict: Verdict,
    pub units: u32,
    pub findings: Findings,
}
