//! Flags, outcomes and units as text. The first word of a flag is its kind, for programs; the rest is for
//! readers.

use super::model::OutcomeWord;
use crate::measurement::{Metric, Outcome};
use crate::stats::accuracy::Accuracy;
use crate::stats::bound::Bottleneck;
use crate::stats::verdict::Verdict;
use crate::summary::{Confirmation, FailedTrial};
use std::fmt::Write;

/// A note on a cell's numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flag {
    /// Planned, not run.
    NotMeasured,
    /// Too few for an interval or a verdict.
    FewRounds(u32),
    BoundByGenerator,
    /// Better than a part of its own work.
    AboveLimit {
        ratio: f64,
        limit: String,
    },
    LittlesLaw {
        in_flight: f64,
        connections: u64,
    },
    /// Their rounds.
    Outliers(Vec<u32>),
    /// Round and share of the CPU time that the hypervisor gave to others.
    Steal(Vec<(u32, f64)>),
    /// Share of the lab's CPU time that went to processes outside of the trials.
    Disturbed(f64),
    /// Share of the median by which the values moved over the run.
    Drift(f64),
    /// Growth of the server's open descriptors after this number of connections.
    Leak {
        descriptors: u64,
        connections: u64,
    },
    /// A flag of the lab.
    Lab(String),
}

impl Flag {
    pub(super) fn text(&self) -> String {
        match self {
            Self::NotMeasured => "not-measured".to_owned(),
            Self::FewRounds(n) => {
                format!("few-rounds ({n})")
            }
            Self::BoundByGenerator => "bound-by-generator".to_owned(),
            Self::AboveLimit { ratio, limit } => format!("above-limit ({ratio:.2}x {limit})"),
            Self::LittlesLaw { in_flight, connections } => {
                format!("littles-law ({in_flight:.1} of {connections} connections in flight)")
            }
            Self::Outliers(rounds) => format!("outlier ({})", rounds_text(rounds)),
            Self::Steal(rounds) => {
                let most = rounds.iter().map(|(_, share)| *share).fold(0.0, f64::max) * 100.0;
                let rounds: Vec<u32> = rounds.iter().map(|(round, _)| *round).collect();
                format!("steal ({}, up to {most:.0} %)", rounds_text(&rounds))
            }
            Self::Disturbed(share) => {
                format!("disturbed ({:.0} % of the CPU time used by other processes)", share * 100.0)
            }
            Self::Drift(share) => format!("drift ({:+.1} % over the run)", share * 100.0),
            Self::Leak { descriptors, connections } => {
                format!("leak ({descriptors} more descriptors after {connections} connections)")
            }
            Self::Lab(flag) => flag.clone(),
        }
    }
}

fn rounds_text(rounds: &[u32]) -> String {
    let listed = rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if rounds.len() == 1 { format!("round {listed}") } else { format!("rounds {listed}") }
}

/// The number of failed trials, and the first reason; `None` if none failed.
pub(super) fn failures(failures: &[FailedTrial], measured: usize) -> Option<String> {
    let FailedTrial { round, outcome } = failures.first()?;
    let reason = reason(outcome).unwrap_or_default();
    Some(format!("{} of {measured} trials failed, the first in round {round} {reason}", failures.len()))
}

/// The start of the detail of a cell that was planned and not run, and its text in a table.
pub(super) const NOT_MEASURED: &str = "not measured";

pub(super) fn not_measured(warmup: Option<&FailedTrial>) -> String {
    let mut text = format!("{NOT_MEASURED}: the run ended before the first round of this cell");
    if let Some(failure) = warmup {
        let _ = write!(text, "; its warm-up failed {}", reason(&failure.outcome).unwrap_or_default());
    }
    text
}

/// The reason of an outcome that is not `ok`: with the stage and the end of the log, or with the installation
/// command.
pub(super) fn reason(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Ok => None,
        Outcome::Failed { stage, reason, log } if log.trim().is_empty() => {
            Some(format!("at {stage}: {reason}"))
        }
        Outcome::Failed { stage, reason, log } => Some(format!("at {stage}: {reason}\n{}", tail(log))),
        Outcome::Unsupported { reason } => Some(reason.clone()),
        Outcome::Missing { reason, install } if install.is_empty() => Some(reason.clone()),
        Outcome::Missing { reason, install } => Some(format!("{reason}; to install it: {install}")),
    }
}

/// An outcome in one sentence, such as `missing: ...`, for plan and report; `ok` for `None`.
#[must_use]
pub fn outcome_text(outcome: Option<&Outcome>) -> String {
    let word = outcome_name(outcome.map_or(OutcomeWord::Ok, OutcomeWord::from));
    outcome.and_then(reason).map_or_else(|| word.to_owned(), |reason| format!("{word}: {reason}"))
}

/// Enough to show a server's error messages; the journal contains more.
const LOG_LINES: usize = 10;

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

pub(super) fn outcome_name(word: OutcomeWord) -> &'static str {
    match word {
        OutcomeWord::Ok => "ok",
        OutcomeWord::Failed => "failed",
        OutcomeWord::Unsupported => "unsupported",
        OutcomeWord::Missing => "missing",
    }
}

pub(super) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::WithinMargin => "within the margin",
        Verdict::NotSlower => "not slower",
        Verdict::CannotTell => "cannot tell",
        Verdict::Failed => "failed",
        Verdict::Missing => "missing",
    }
}

pub(super) fn confirmation_name(confirmation: Confirmation) -> &'static str {
    match confirmation {
        Confirmation::Holds => "holds",
        Confirmation::DoesNotHold => "does not hold",
        Confirmation::NotDecided => "not decided",
        Confirmation::NotMeasured => "not measured here",
    }
}

pub(super) fn accuracy_name(accuracy: Accuracy) -> &'static str {
    match accuracy {
        Accuracy::Right => "right",
        Accuracy::Wrong => "wrong",
        Accuracy::CannotTell => "cannot tell",
    }
}

pub(super) fn bound(bound: Bottleneck) -> String {
    match bound {
        Bottleneck::Role(role) => role.to_string(),
        Bottleneck::Path => "path".to_owned(),
        Bottleneck::Waiting => "waiting".to_owned(),
        Bottleneck::Spinning => "spinning".to_owned(),
        Bottleneck::Unknown => "unknown".to_owned(),
    }
}

pub(super) fn unit(metric: Metric, operations: Option<u64>) -> String {
    match (metric, operations) {
        (Metric::Seconds, Some(operations)) => format!("seconds for {operations} operations"),
        (Metric::Seconds, None) => "seconds".to_owned(),
        (Metric::OperationsPerSecond, _) => "operations/s".to_owned(),
        (Metric::MibPerSecond, _) => "MiB/s".to_owned(),
        (Metric::GbitPerSecond, _) => "Gbit/s".to_owned(),
        (Metric::SentGbitPerSecond, _) => "Gbit/s sent".to_owned(),
        (Metric::PeakMemory, _) => "MiB of memory".to_owned(),
        (Metric::ClientCpu, _) => "client CPU, µs/operation".to_owned(),
        (Metric::ServerCpu, _) => "server CPU, µs/operation".to_owned(),
        (Metric::CpuPerKib, _) => "ns of CPU per KiB, all roles".to_owned(),
        (Metric::ServerDescriptorsGrowth, _) => "growth of the server's descriptors".to_owned(),
        (Metric::ServerMemoryGrowth, _) => "growth of the server's memory, MiB".to_owned(),
        _ => "microseconds".to_owned(),
    }
}

/// The unit in the caption of a table whose rows have different units.
pub(super) const UNIT_OF_ROW: &str = "the unit of each row";

/// The label of a row, in a table with several metrics.
pub(super) fn metric(metric: Metric, operations: Option<u64>) -> String {
    let name = match metric {
        Metric::Seconds
        | Metric::OperationsPerSecond
        | Metric::MibPerSecond
        | Metric::GbitPerSecond
        | Metric::SentGbitPerSecond
        | Metric::PeakMemory
        | Metric::ClientCpu
        | Metric::ServerCpu
        | Metric::CpuPerKib
        | Metric::ServerDescriptorsGrowth
        | Metric::ServerMemoryGrowth => {
            return unit(metric, operations);
        }
        Metric::MeanLatency => "mean",
        Metric::P50Latency => "p50",
        Metric::P90Latency => "p90",
        Metric::P99Latency => "p99",
        Metric::P999Latency => "p99.9",
        Metric::MinLatency => "min",
        Metric::MaxLatency => "max",
    };
    format!("{name} latency, µs")
}
