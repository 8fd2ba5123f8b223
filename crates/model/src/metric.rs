//! The quantities that tables show.

use serde::{Deserialize, Serialize};

/// The metric of a table, computed of a [`Measurement`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Seconds for the operations of the trial; lower is better.
    #[default]
    Seconds,
    /// Operations per second; higher is better.
    OperationsPerSecond,
    /// Mebibytes per second; higher is better.
    MibPerSecond,
    /// Gigabits (10^9) per second; higher is better.
    GbitPerSecond,
    /// The rate of what was sent, whether or not it arrived.
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
    /// Growth of the server's open descriptors, and of its memory in MiB, over the window; negative if it
    /// shrank. Growth in proportion to the number of operations is a leak.
    ServerDescriptorsGrowth,
    ServerMemoryGrowth,
}

/// Which way a number is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
}

impl Metric {
    pub fn better(self) -> Better {
        match self {
            Self::OperationsPerSecond
            | Self::MibPerSecond
            | Self::GbitPerSecond
            | Self::SentGbitPerSecond => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// Whether work is counted in bytes, not operations.
    pub fn is_bulk(self) -> bool {
        matches!(self, Self::MibPerSecond | Self::GbitPerSecond | Self::SentGbitPerSecond | Self::CpuPerKib)
    }

    /// A time of single operations, in microseconds.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Self::MeanLatency
                | Self::P50Latency
                | Self::P90Latency
                | Self::P99Latency
                | Self::P999Latency
                | Self::MinLatency
                | Self::MaxLatency
        )
    }

    /// A difference, which may be 0 or negative and so has no ratios.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::ServerDescriptorsGrowth | Self::ServerMemoryGrowth)
    }
}
