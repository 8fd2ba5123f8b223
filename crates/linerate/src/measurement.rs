//! What trials leave behind: the nouns of the journal and of `run.json`.
//!
//! `run.json` holds a [`Run`]: what was planned, on which machine. `journal.jsonl` holds a [`Trial`] a line.
//! Every report is made of these two and of nothing else.

use crate::axes::Axes;
use crate::system::manifest::Topology;
use linerate_contract::{Bytes, Counts, Datagrams, Errors, Nanos, Role, Sample, TcpEnds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The plan of a run and the machine it ran on; written before the first trial, never changed after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// `linerate.run/1`.
    pub schema: String,
    /// Names the run: its start and the start of its seed in hex.
    pub id: String,
    /// The exact command that makes this run again.
    pub command: String,
    pub seed: u64,
    /// The most measured rounds that a suite of it asks for; the journal tells how many there are.
    pub rounds: u32,
    pub quick: bool,
    /// Rounds are added until this time is used or every interval is narrow enough; `None`: as many as asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// RFC 3339, UTC.
    pub started: String,
    /// The version of linerate that planned it.
    pub linerate: String,
    pub host: Host,
    pub suites: Vec<PlannedSuite>,
}

pub const RUN_SCHEMA: &str = "linerate.run/1";

/// The machine, as far as it bears on the numbers. Open-ended: a fact is a name and a value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    pub kernel: String,
    pub cpu_model: String,
    /// CPUs that the run may use.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// `root`, or `user namespace`.
    pub privileges: String,
    /// Everything else: mitigations, governor, congestion control, socket buffers, MTU, offloads, virtualisation.
    pub facts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedSuite {
    pub name: String,
    pub question: String,
    /// Measured rounds asked for.
    pub rounds: u32,
    pub warmup_rounds: u32,
    pub tables: Vec<PlannedTable>,
    pub cells: Vec<PlannedCell>,
    /// Id of the cell that runs twice in each round (A/A); its second run has the id `<cell>~twin`.
    pub twin: Option<String>,
}

/// How a table of the report is laid out, and what its cells are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTable {
    pub name: String,
    pub title: String,
    pub metric: Metric,
    /// Further metrics of the same cells, each with rows of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Metric>,
    /// The axis whose values are the rows, and the one whose values are the columns.
    pub rows: String,
    pub columns: String,
    /// Rows and columns in the order of the suite.
    pub row_values: Vec<String>,
    pub column_values: Vec<String>,
    /// Ids of the cells, in the order of the suite. A cell may stand in more than one table and is run once.
    pub cells: Vec<String>,
    /// Compare each cell with the one that differs from it by these axes alone.
    pub baseline: Axes,
    pub limit: Option<Axes>,
    /// The cells that scaling factors are of, such as those with one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Axes>,
    /// One system against the best of others, row by row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contest: Option<Contest>,
    /// Sentences under the table.
    pub notes: Vec<String>,
}

/// Which value of an axis is held against the best of which others, and by what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    pub axis: String,
    pub contender: String,
    pub rivals: Vec<String>,
    pub metrics: Vec<Metric>,
}

impl PlannedTable {
    /// The first is what its cells are compared by elsewhere.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        std::iter::once(self.metric).chain(self.also.iter().copied())
    }
}

/// What a table's numbers are, computed of a [`Measurement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Seconds for the operations of the trial; lower is better.
    Seconds,
    /// Operations per second; higher is better.
    OperationsPerSecond,
    /// Mebibytes per second; higher is better.
    MibPerSecond,
    /// Gigabits (10^9) per second; higher is better.
    GbitPerSecond,
    /// The same of what was sent, whether or not it arrived.
    SentGbitPerSecond,
    /// Latency in microseconds, of all operations of a trial; lower is better.
    MeanLatency,
    P50Latency,
    P90Latency,
    P99Latency,
    /// 99.9 %.
    P999Latency,
    MinLatency,
    MaxLatency,
    /// Mebibytes that the client had at most; lower is better.
    PeakMemory,
    /// Microseconds of a role's CPU time for each operation; lower is better.
    ClientCpu,
    ServerCpu,
    /// Nanoseconds of CPU, of all roles together, for each KiB of payload; lower is better.
    CpuPerKib,
    /// By how many descriptors, and by how many mebibytes of memory, the server's processes hold more after the window than
    /// before; below 0 where it is less. What grows with the number of operations is a leak.
    ServerDescriptorsGrowth,
    ServerMemoryGrowth,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Such as `nginx/haproxy-http`.
    pub id: String,
    pub axes: Axes,
    pub layer: String,
    pub workload: String,
    pub topology: Topology,
    /// Workload parameters: `operations`, `connections`, `threads`, `size`, ...
    pub parameters: BTreeMap<String, u64>,
    /// Parameters in place of these while the systems are verified, and while they are warmed up (empty: not at all).
    #[serde(default = "default_verify")]
    pub verify: BTreeMap<String, u64>,
    #[serde(default = "default_warmup")]
    pub warmup: BTreeMap<String, u64>,
    /// What the workload needs beside numbers, such as `direction`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The client is the system's own, and what bounds it bounds the system: it is no load generator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_client: bool,
    pub systems: Vec<PlannedSystem>,
    /// Set where the cell cannot run: nothing is tried, and this is its outcome.
    pub absent: Option<Outcome>,
}

/// Checked byte for byte, one after the other, before anything is timed.
#[must_use]
pub fn default_verify() -> BTreeMap<String, u64> {
    BTreeMap::from([("operations".to_owned(), 10), ("connections".to_owned(), 1)])
}

/// Run at full concurrency after that, so that caches, pools and child processes are there.
#[must_use]
pub fn default_warmup() -> BTreeMap<String, u64> {
    BTreeMap::from([("operations".to_owned(), 200)])
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedSystem {
    #[schemars(with = "String")]
    pub role: Role,
    /// The variant's name, such as `haproxy-http`.
    pub name: String,
    /// Probed from the program; `None` where there is no program (an empty path) or it is missing.
    pub version: Option<String>,
}

/// The suffix of the id under which the A/A twin of a cell is journaled.
pub const TWIN: &str = "~twin";

/// One line of the journal: one cell in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub suite: String,
    pub cell: String,
    /// 1-based; warm-up rounds count from 1 on their own.
    pub round: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warmup: bool,
    /// Since the start of the run, when this trial began.
    pub at: Nanos,
    #[serde(flatten)]
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    /// Wall time by stage; only `measure` is measuring.
    pub stages: BTreeMap<Stage, Nanos>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    Ok,
    Failed {
        stage: Stage,
        reason: String,
        /// The tail of what the failing system said.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        log: String,
    },
    /// The system says, or is known, not to do this here.
    Unsupported {
        reason: String,
    },
    /// Not installed; `install` is the command that changes that.
    Missing {
        reason: String,
        install: String,
    },
}

/// The stages of a trial, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Namespaces, links, addresses, routes.
    Raise,
    /// Systems started and ready.
    Start,
    /// The systems do the work, byte for byte; also warms them up.
    Verify,
    Measure,
    /// Processes ended, namespaces dropped.
    Stop,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raise => "raise",
            Self::Start => "start",
            Self::Verify => "verify",
            Self::Measure => "measure",
            Self::Stop => "stop",
        })
    }
}

/// The raw numbers of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// First operation begun to last operation ended, as the client saw it.
    pub elapsed: Nanos,
    /// Operations that succeeded.
    pub operations: u64,
    /// Payload bytes of those, counted at the receiver.
    pub bytes: Bytes,
    #[serde(default)]
    pub errors: Errors,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Counts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Counts>,
    /// What a foreign client tells of latencies where it shows no histogram, by name: `mean`, `p50`, `p99`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, Nanos>,
    /// The most memory that the client ever had (its resident set).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<Bytes>,
    /// What the server held before and after, where a table asks for its growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Holdings>,
    /// Operations whose content was compared.
    #[serde(default)]
    pub verified: u64,
    /// Version, cipher suite and library of the client's TLS, as the connection told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Of a transport that may lose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// What the kernel told of TCP connections when their stream was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpEnds>,
    /// How it went inside the window, as the receiver saw it where it tells, or else the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
    /// CPU time (user and system) of each role's processes, dead children included, inside the window.
    pub cpu: BTreeMap<Role, Nanos>,
    /// The lab's CPUs inside the window, from `/proc/stat`.
    pub cpus: Vec<CpuWindow>,
    /// What the lab itself noticed, such as `cpu-shared` or `cpu-from-proc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

/// What the server's processes held before the client came, and a moment after it had gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    pub before: Held,
    pub after: Held,
}

/// Of all processes of a role together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Open file descriptors.
    pub descriptors: u64,
    /// The resident set.
    pub memory: Bytes,
}

/// The flag of a measurement whose process times come from `/proc`, which forgets children that nobody waited for.
pub const CPU_FROM_PROC: &str = "cpu-from-proc";

/// One CPU inside the window of a trial; times from `/proc/stat`, so in steps of a tick (10 ms as a rule).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuWindow {
    pub cpu: u32,
    /// Roles pinned to it.
    pub roles: Vec<Role>,
    /// Length of the window on this CPU: all its times together.
    pub total: Nanos,
    /// Everything but idle, I/O wait and steal.
    pub busy: Nanos,
    /// Part of `busy`: hardware and software interrupts.
    pub interrupts: Nanos,
    /// Time that the hypervisor gave to others.
    pub steal: Nanos,
}
