//! A line of `journal.jsonl`: one cell measured once, by itself.

use super::Histogram;
use linerate_contract::{Bytes, Datagrams, Errors, Nanos, Role, Sample, TcpEnds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

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

impl Trial {
    /// Wall time of all stages.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.stages.values().fold(Nanos::ZERO, |sum, time| sum + *time)
    }
}

/// A cell or pair that failed this often and never succeeded is not tried again: a hang costs its deadline
/// each round.
const GIVE_UP_AFTER: usize = 3;

/// True if these are the outcomes of a cell or pair that is not tried again.
pub fn is_given_up<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> bool {
    let outcomes: Vec<bool> = outcomes.map(|outcome| *outcome == Outcome::Ok).collect();
    outcomes.len() >= GIVE_UP_AFTER && !outcomes.contains(&true)
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    Ok,
    Failed {
        stage: Stage,
        reason: String,
        /// The last lines of the failing system's output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        log: String,
    },
    /// The system does not support this: by its manifest, or by exit status 127.
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
    pub latency: Option<Histogram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Histogram>,
    /// Latencies as printed by a foreign client without a histogram, by name: `mean`, `p50`, `p99`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reported_latency: BTreeMap<String, Nanos>,
    /// Peak resident set of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<Bytes>,
    /// Resource usage of the server before and after, for tables that show its growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsagePair>,
    /// Operations whose content was compared.
    #[serde(default)]
    pub verified: u64,
    /// Version, cipher suite and library of the client's TLS, as the connection reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Of a transport that may lose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Datagrams>,
    /// The kernel's `TCP_INFO` of the connections at the end of their stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpEnds>,
    /// Progress inside the window, from the receiver if it prints samples, else from the client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sample>,
    /// CPU time (user and system) of each role's processes, dead children included, inside the window.
    pub cpu: BTreeMap<Role, Nanos>,
    /// The lab's CPUs inside the window, from `/proc/stat`.
    pub cpus: Vec<CpuWindow>,
    /// Flags of the lab, such as `cpu-shared` or `cpu-from-proc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

/// Resource usage of the server's processes before the client started, and shortly after it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePair {
    pub before: Usage,
    pub after: Usage,
}

/// Of all processes of a role together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Open file descriptors.
    pub descriptors: u64,
    /// The resident set.
    pub memory: Bytes,
}

/// The flag of a measurement whose process times come from `/proc`, which omits children that were never
/// waited for.
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
    /// Time that the hypervisor gave to other guests.
    pub steal: Nanos,
}
