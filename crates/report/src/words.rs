//! Flags, outcomes and units as text, here alone. The first word of a flag is its kind, for programs; the
//! rest is for readers.

use super::model::{Disturbance, Oddity};
use super::numbers::{Digits, Ends, TimeUnit, count, plain};
use linerate_analysis::judge::pairs::{Finding, Findings, Measure};
use linerate_analysis::judge::{Confirmation, FailedTrial, Flag, OutcomeWord, Quantity, TableUnit};
use linerate_analysis::stats::accuracy::Accuracy;
use linerate_analysis::stats::bound::Bottleneck;
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::{LabFlag, Metric, Outcome};
use std::fmt::Write;

/// The kind of a flag, and its numbers for readers.
pub(super) fn flag(flag: &Flag) -> String {
    match flag {
        Flag::NotMeasured => "not-measured".to_owned(),
        Flag::FewRounds(n) => {
            format!("few-rounds ({n})")
        }
        Flag::BoundByGenerator => "bound-by-generator".to_owned(),
        Flag::AboveLimit { ratio, limit } => format!("above-limit ({ratio:.2}x {limit})"),
        Flag::LittlesLaw { in_flight, expected } => {
            format!("littles-law ({in_flight:.1} of {expected} operations in flight)")
        }
        Flag::Outliers(rounds) => format!("outlier ({})", rounds_text(rounds)),
        Flag::Steal(rounds) => {
            let most = rounds.iter().map(|(_, share)| *share).fold(0.0, f64::max) * 100.0;
            let rounds: Vec<u32> = rounds.iter().map(|(round, _)| *round).collect();
            format!("steal ({}, up to {most:.0} %)", rounds_text(&rounds))
        }
        Flag::Disturbed(share) => {
            format!("disturbed ({:.0} % of the CPU time used by other processes)", share * 100.0)
        }
        Flag::Drift(share) => format!("drift ({:+.1} % over the run)", share * 100.0),
        Flag::Autocorrelated(correlation) => {
            format!("autocorrelated ({correlation:.2} from unit to unit, the interval is too narrow)")
        }
        Flag::Leak { descriptors, connections } => {
            format!("leak ({descriptors} more descriptors after {connections} connections)")
        }
        Flag::Lab(flag) => lab_flag(*flag).to_owned(),
    }
}

fn lab_flag(flag: LabFlag) -> &'static str {
    match flag {
        LabFlag::CpuFromProc => "cpu-from-proc",
        LabFlag::CpuShared => "cpu-shared",
        LabFlag::MoreThreadsThanCpus => "more-threads-than-cpus",
        LabFlag::Logs => "logs (the server prints a lot, which is a part of what is measured)",
        LabFlag::PathOverrun => "path-overrun",
    }
}

/// Such as `21 of 24 pairs: other processes used 34 % of the CPU time`. `units`: what is counted, unless it
/// is cells.
pub(super) fn disturbance(found: &Disturbance, units: &str) -> String {
    let Disturbance { strangers, stolen, disturbed, of, is_of_cells } = found;
    let named = [("other processes used", strangers), ("other guests of the hypervisor", stolen)];
    let named = named.into_iter().filter(|(_, share)| **share >= 0.005);
    let shares: Vec<String> = named.map(|(who, share)| format!("{who} {:.0} %", share * 100.0)).collect();
    let what = if *is_of_cells { "cells" } else { units };
    format!("{disturbed} of {of} {what}: {} of the CPU time", shares.join(", "))
}

/// Lines of the journal that do not count.
pub(super) fn oddity(oddity: Oddity) -> String {
    let (count, what) = match oddity {
        Oddity::NotInPlan(count) => (count, "of cells or pairs that are not in the plan: ignored"),
        Oddity::Replaced(count) => {
            (count, "for a cell or pair and round that has a later line: the last one counts")
        }
    };
    format!("{count} journal line(s) {what}")
}

/// All of them in a line.
pub(super) fn flags(flags: &[Flag]) -> String {
    flags.iter().map(flag).collect::<Vec<_>>().join("; ")
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
        Verdict::SmallDifference => "differs by less than the margin",
        Verdict::WithinMargin => "within the margin",
        Verdict::NotSlower => "not slower",
        Verdict::CannotTell => "cannot tell",
        Verdict::Failed => "failed",
        Verdict::Missing => "missing",
    }
}

/// A verdict with the difference that matters, such as `5 %`.
pub(crate) fn verdict(verdict: Verdict, margin: &str) -> String {
    match verdict {
        Verdict::SmallDifference => format!("differs by less than {margin}"),
        Verdict::WithinMargin => format!("within {margin}"),
        Verdict::NotSlower => format!("not slower by {margin}"),
        Verdict::CannotTell => "undecided".into(),
        other => verdict_name(other).into(),
    }
}

/// The verdict on a row whose ratio is that of its rate, or p50. Where another quantity decides, it is named:
/// `more CPU`.
pub(crate) fn deciding(findings: &Findings, verdict: Verdict, margin: &str) -> String {
    let is_of_main = findings.main().is_none_or(|main| main.verdict == verdict);
    let other = findings.0.iter().find(|found| found.verdict == verdict).filter(|_| !is_of_main);
    match other.map(|found| (found.measure, finding(found, margin))) {
        Some((Measure::Cpu, words)) if verdict.is_difference() => format!("{words} CPU"),
        Some((measure, words)) => format!("{}: {words}", measure.name()),
        None => findings
            .main()
            .filter(|main| main.verdict == verdict)
            .map_or_else(|| self::verdict(verdict, margin), |main| finding(main, margin)),
    }
}

/// The verdict of a finding about one quantity of two subjects.
pub(crate) fn finding(found: &Finding, margin: &str) -> String {
    match (found.verdict, found.second_series) {
        // The first series of a gate has shown a slowdown, and its interval says so.
        (Verdict::CannotTell, Some(_)) => "not confirmed".into(),
        (verdict, _) => verdict_on(found.measure, verdict, margin),
    }
}

/// The verdict on one quantity of two subjects: CPU time is more or less, all else slower or faster.
pub(crate) fn verdict_on(measure: Measure, found: Verdict, margin: &str) -> String {
    match (measure, found) {
        (Measure::Cpu, Verdict::Slower) => "more".into(),
        (Measure::Cpu, Verdict::Faster) => "less".into(),
        (_, Verdict::WithinMargin) => "no difference".into(),
        (_, Verdict::SmallDifference) => format!("less than {margin}"),
        (_, other) => verdict(other, margin),
    }
}

/// The verdict on all cells of a gate.
pub(crate) fn conclusion(conclusion: Verdict) -> &'static str {
    match conclusion {
        Verdict::Slower => "slowdown",
        Verdict::CannotTell | Verdict::Failed => "undecided",
        Verdict::Missing => "nothing measured",
        _ => "no slowdown",
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

/// As programs know it.
pub(super) fn accuracy_name(accuracy: Accuracy) -> &'static str {
    match accuracy {
        Accuracy::Right => "right",
        Accuracy::Wrong => "wrong",
        Accuracy::CannotTell => "cannot tell",
    }
}

/// A verdict on a report, as all other verdicts are told.
pub(super) fn accuracy(accuracy: Accuracy) -> &'static str {
    if accuracy == Accuracy::CannotTell { "undecided" } else { accuracy_name(accuracy) }
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

/// The name of a metric, empty where its unit says it, and the unit: of latencies this one.
pub(super) fn parts(quantity: Quantity, times: TimeUnit) -> (&'static str, String) {
    let (name, unit) = match quantity.metric {
        Metric::Seconds => ("", "seconds"),
        Metric::OperationsPerSecond => ("", "operations/s"),
        Metric::MibPerSecond => ("", "MiB/s"),
        Metric::GbitPerSecond => ("", "Gbit/s"),
        Metric::SentGbitPerSecond => ("", "Gbit/s sent"),
        Metric::PeakMemory => ("", "MiB of memory"),
        Metric::ClientCpu => ("client CPU", "µs/operation"),
        Metric::ServerCpu => ("server CPU", "µs/operation"),
        Metric::CpuPerKib => ("", "ns of CPU per KiB, all roles"),
        Metric::ServerDescriptorsGrowth => ("", "growth of the server's descriptors"),
        Metric::ServerMemoryGrowth => ("growth of the server's memory", "MiB"),
        Metric::MeanLatency => ("mean latency", times.name()),
        Metric::P50Latency => ("p50 latency", times.name()),
        Metric::P90Latency => ("p90 latency", times.name()),
        Metric::P99Latency => ("p99 latency", times.name()),
        Metric::P999Latency => ("p99.9 latency", times.name()),
        Metric::MinLatency => ("min latency", times.name()),
        Metric::MaxLatency => ("max latency", times.name()),
    };
    match (quantity.metric, quantity.operations) {
        (Metric::Seconds, Some(operations)) => (name, format!("{unit} for {} operations", count(operations))),
        _ => (name, unit.to_owned()),
    }
}

/// Where the value of a baseline is from.
pub(super) fn of_trials(n: u32) -> String {
    if n == 1 { "one trial alone".to_owned() } else { format!("median of {} trials alone", count(n.into())) }
}

/// Below it a rate of bits would begin with zeros, in Gbit/s.
const LEAST_GBIT: f64 = 0.1;

/// A number of a cell with its interval; a small rate of bits with a unit of its own: `9.332 (9.311 to 9.342)
/// Mbit/s`.
pub(super) fn value(quantity: Option<Quantity>, value: f64, ends: Ends) -> String {
    small_rate(quantity, value, ends).unwrap_or_else(|| Digits::OF_VALUES.text(value, ends))
}

/// `None` for any other number.
pub(super) fn small_rate(quantity: Option<Quantity>, value: f64, ends: Ends) -> Option<String> {
    let is_of_bits = matches!(quantity?.metric, Metric::GbitPerSecond | Metric::SentGbitPerSecond);
    let number = || Digits::OF_VALUES.text(value * 1e3, ends.map(|end| end * 1e3));
    (is_of_bits && value > 0.0 && value < LEAST_GBIT).then(|| number() + " Mbit/s")
}

/// The difference that as many units would find in 80 % of runs; from 100 % on a factor: a percentage of four
/// digits would have to be converted by the reader.
pub(super) fn detectable(share: f64) -> String {
    if share < 1.0 {
        format!("only differences above {} % can be seen", plain(share * 100.0))
    } else {
        format!("only differences above {}x can be seen", plain(1.0 + share))
    }
}

/// Whether a metric is what an operation takes, so that a change is more or less of it and no performance.
pub(super) fn is_cost(quantity: Quantity) -> bool {
    let of_cpu = [Metric::ClientCpu, Metric::ServerCpu, Metric::CpuPerKib, Metric::PeakMemory];
    quantity.metric.is_latency() || of_cpu.contains(&quantity.metric)
}

/// The word for the best of a table by its metric.
pub(super) fn best_by(quantity: Option<Quantity>) -> String {
    match quantity.map(|quantity| quantity.metric) {
        Some(Metric::ClientCpu) => "needs the least CPU time of the client".to_owned(),
        Some(Metric::ServerCpu) => "needs the least CPU time of the server".to_owned(),
        Some(Metric::CpuPerKib) => "needs the least CPU time".to_owned(),
        Some(Metric::PeakMemory | Metric::ServerMemoryGrowth) => "needs the least memory".to_owned(),
        Some(Metric::ServerDescriptorsGrowth) => "needs the fewest descriptors".to_owned(),
        Some(metric) if metric.is_latency() => {
            let (name, _) = parts(Quantity { metric, operations: None }, TimeUnit::Micros);
            format!("has the lowest {name}")
        }
        _ => "is fastest".to_owned(),
    }
}

/// A metric with its unit, for programs.
pub(super) fn metric(quantity: Quantity) -> String {
    metric_in(quantity, TimeUnit::Micros)
}

/// A metric with its unit, of latencies this one: `p99 latency, ms`.
pub(super) fn metric_in(quantity: Quantity, times: TimeUnit) -> String {
    match parts(quantity, times) {
        ("", unit) => unit,
        (name, unit) => format!("{name}, {unit}"),
    }
}

/// The unit of the numbers of a cell, and of a table with one metric, for programs.
pub(super) fn unit(quantity: Quantity) -> String {
    if quantity.metric.is_latency() { "microseconds".to_owned() } else { metric(quantity) }
}

/// The unit of a table, for programs.
pub(super) fn table_unit(unit: TableUnit) -> String {
    match unit {
        TableUnit::One(quantity) => self::unit(quantity),
        TableUnit::OfRow => "the unit of each row".to_owned(),
    }
}

/// As JSON has them: the same words.
pub(super) mod json {
    use super::{Flag, Oddity, Quantity, TableUnit};
    use serde::{Serialize, Serializer};

    macro_rules! as_text {
        ($($name:ident($value:ident: $kind:ty) $text:expr;)*) => { $(
            pub(crate) fn $name<S: Serializer>($value: &$kind, to: S) -> Result<S::Ok, S::Error> {
                $text.serialize(to)
            }
        )* };
    }

    // A field with `None` is left out, and text of nothing is empty.
    as_text! {
        flags(all: [Flag]) all.iter().map(super::flag).collect::<Vec<_>>();
        oddities(all: [Oddity]) all.iter().copied().map(super::oddity).collect::<Vec<_>>();
        unit(unit: Quantity) super::unit(*unit);
        metric(metric: Quantity) super::metric(*metric);
        some_metric(metric: Option<Quantity>) metric.map(super::metric);
        some_unit(unit: Option<Quantity>) unit.map(super::unit).unwrap_or_default();
        table_unit(unit: TableUnit) super::table_unit(*unit);
        first_unit(unit: Option<TableUnit>) unit.map(super::table_unit).unwrap_or_default();
    }
}
