//! Measurements of one cell by itself, how its unit ended, and the stages of a unit.

use crate::{Count, Histogram, RequestWindow};
use linerate_contract::{Bytes, Causes, Datagrams, Errors, Nanos, Role, Sample, TcpEnds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A cell or pair that failed this often and never succeeded is not tried again: a hang costs its deadline
/// each round.
const GIVE_UP_AFTER: usize = 3;

/// True if these are the outcomes of a cell or pair that is not tried again.
pub fn is_given_up<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> bool {
    let outcomes: Vec<bool> = outcomes.map(|outcome| *outcome == Outcome::Ok).collect();
    outcomes.len() >= GIVE_UP_AFTER && !outcomes.contains(&true)
}

/// How a unit ended.
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

/// The stages of a unit, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Namespaces, links, addresses, routes.
    Raise,
    /// Systems started and ready.
    Start,
    /// The systems do the work, byte for byte; also warms them up.
    Verify,
    /// Learning about commands before their first unit: their responses, and when they are warm.
    Learn,
    Measure,
    /// Processes ended, namespaces dropped.
    Stop,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name in journals.
        self.serialize(f)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A condition of a trial that the lab could not provide as well as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabFlag {
    /// Process times come from `/proc`, which omits children that were never waited for.
    CpuFromProc,
    /// Roles share a CPU.
    CpuShared,
    /// Roles have more threads than there are CPUs, so that the scheduler affects the result.
    MoreThreadsThanCpus,
    /// The server printed more than what is kept of it, so that logging is a part of what is measured.
    Logs,
    /// The relay of an impaired path was too slow, and lost packets that it should not have lost.
    PathOverrun,
}

/// The raw numbers of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The window as the client saw it: its time, or until the last operation of a count ended.
    pub elapsed: Nanos,
    /// Operations that succeeded.
    pub operations: u64,
    /// Payload bytes of those, counted at the receiver.
    pub bytes: Bytes,
    /// Operations that had begun and not ended when the time was over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: u64,
    /// A client that works in turns: the part of the window that counts, and the operations outside of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Nanos>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The longest time within the window without progress, where the client reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Nanos>,
    #[serde(default)]
    pub errors: Errors,
    /// The first cause of each kind of failure, for the reason of a trial; the journal has that alone.
    #[serde(skip)]
    pub causes: Causes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Histogram>,
    /// HTTP: each of several requests by itself, for [`crate::SideWindow`]; the journal of a trial alone has
    /// them not.
    #[serde(skip)]
    pub requests: Vec<RequestWindow>,
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
    /// Counted where the transport may lose some.
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
    /// The part of the client's CPU time in which it polled: for the time when the next operation was due, or
    /// in place of sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling: Option<Nanos>,
    /// The lab's CPUs inside the window, from `/proc/stat`.
    pub cpus: Vec<CpuWindow>,
    /// The share of the machine's CPU time that processes of others used meanwhile, by their own clocks;
    /// absent where they are not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// The kernel's counts of the servers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<Count, u64>,
    /// The counts of impaired links of the path while the client ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wires: Vec<WireCounts>,
    /// Flags of the lab, such as `cpu-shared` or `cpu-from-proc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<LabFlag>,
}

/// Packets of an impaired link, by its own counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireCounts {
    /// Counted from the client, from 1.
    pub link: u32,
    /// By what packets are impaired: `relay`, or `netem`, `tbf` or both of the kernel.
    pub means: String,
    /// To the server and to the client; `None`: the kernel's means are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<PacketCounts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<PacketCounts>,
    /// CPU time of the relay.
    #[serde(default)]
    pub cpu: Nanos,
}

/// Packets of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketCounts {
    /// All that arrived, except those of `overrun`.
    pub packets: u64,
    /// Dropped as the path's loss requires.
    pub lost: u64,
    /// Dropped because the queue of the rate was full.
    pub overflowed: u64,
    /// Dropped because the relay was too slow: not part of the path's description.
    pub overrun: u64,
    /// Left more than 100 microseconds after their time.
    pub late: u64,
}

impl PacketCounts {
    /// The packets after an earlier count.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            lost: self.lost.saturating_sub(earlier.lost),
            overflowed: self.overflowed.saturating_sub(earlier.overflowed),
            overrun: self.overrun.saturating_sub(earlier.overrun),
            late: self.late.saturating_sub(earlier.late),
        }
    }
}

/// Resource usage of the server's processes before the client started, and shortly after it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePair {
    pub before: Usage,
    pub after: Usage,
}

/// Sums over the processes of a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Open file descriptors.
    pub descriptors: u64,
    /// The proportional set, of earlier runs the resident one.
    pub memory: Bytes,
}

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
