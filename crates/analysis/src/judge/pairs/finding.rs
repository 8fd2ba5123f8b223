//! The finding about two subjects by one measure.

use crate::stats::difference::LatencyDifference;
use crate::stats::verdict::{Verdict, is_equal};
use linerate_model::Metric;
use serde::{Deserialize, Serialize};

/// A measure by which two subjects are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Operations or bytes in a time: higher is better.
    Rate,
    /// Latencies of an open loop, in microseconds.
    P50,
    P90,
    Mean,
    P99,
    #[serde(rename = "p99.9")]
    P999,
    /// CPU time per operation or megabyte, in microseconds.
    Cpu,
}

impl Measure {
    /// Latencies of an open loop, in the order of reports.
    pub const LATENCIES: [Self; 5] = [Self::P50, Self::P90, Self::Mean, Self::P99, Self::P999];

    /// The metric of a latency.
    pub fn latency(self) -> Option<Metric> {
        match self {
            Self::P50 => Some(Metric::P50Latency),
            Self::P90 => Some(Metric::P90Latency),
            Self::Mean => Some(Metric::MeanLatency),
            Self::P99 => Some(Metric::P99Latency),
            Self::P999 => Some(Metric::P999Latency),
            Self::Rate | Self::Cpu => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::Mean => "mean",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Cpu => "CPU",
        }
    }
}

/// The second series of a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confirmation {
    Pending,
    Confirmed,
    Failed,
}

/// Head against base by one measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    pub measure: Measure,
    /// Base in its trials alone, and that value by the ratio, which is the value of head. Of latencies and
    /// CPU time in microseconds, of the rate in the unit of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<[f64; 2]>,
    /// The measure of head by that of base.
    pub ratio: f64,
    /// 95 % at all looks together; absent with too few units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The lowest and the highest of too few units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The latency of head less that of base in microseconds, by the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<LatencyDifference>,
    pub verdict: Verdict,
    /// The second series of a gate's suspect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_series: Option<Confirmation>,
    /// The pair is open while this finding is. The other latencies count only where they are certain to be
    /// slower: within minutes the mean and the percentiles of rare operations seldom are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decides: bool,
    /// Further units would not change it.
    #[serde(skip)]
    pub(super) is_decided: bool,
}

impl Finding {
    /// A ratio of performance, above 1 is better, as one of the measure.
    pub(super) fn of_measure(measure: Measure, performance: f64) -> f64 {
        if measure == Measure::Rate { performance } else { performance.recip() }
    }

    /// The ratio of performance: above 1 is better.
    pub fn performance(&self) -> f64 {
        Self::of_measure(self.measure, self.ratio)
    }

    /// Ends of an interval of the ratio as ends of one of performance.
    pub fn of_performance(&self, ends: [f64; 2]) -> [f64; 2] {
        ordered(ends.map(|end| Self::of_measure(self.measure, end)))
    }

    /// The interval or, of too few units, the range.
    pub fn ends(&self) -> [f64; 2] {
        self.ci95.or(self.range).unwrap_or([self.ratio; 2])
    }

    /// The change of the measure in percent, and its interval: -4.1 is 4.1 % less.
    pub fn percent(&self) -> f64 {
        (self.ratio - 1.0) * 100.0
    }

    pub fn percent_ci95(&self) -> Option<[f64; 2]> {
        self.ci95.map(|ends| ends.map(|end| (end - 1.0) * 100.0))
    }

    /// With the value of base in its trials alone; of a latency also the difference.
    pub(super) fn with_base(self, base: f64, value_of: impl Fn(f64) -> f64) -> Self {
        let values = Some([base, base * value_of(self.ratio)]);
        let performance = self.ci95.map(|ends| self.of_performance(ends));
        let of_latency = performance.filter(|_| self.measure.latency().is_some());
        let difference =
            of_latency.and_then(|ends| LatencyDifference::from_ratio(self.performance(), ends, base));
        Self { values, difference, ..self }
    }

    /// The rate where the client was the limit: it shows differences alone, and further units show no more.
    pub(super) fn limited(self) -> Self {
        Self { verdict: if is_equal(self.verdict) { Verdict::CannotTell } else { self.verdict }, ..self }
    }
}

/// The findings about two subjects under one load: the rate or, of an open loop, the latencies; and the CPU
/// time per operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    pub fn by(&self, measure: Measure) -> Option<&Finding> {
        self.0.iter().find(|found| found.measure == measure)
    }

    pub fn rate(&self) -> Option<&Finding> {
        self.by(Measure::Rate)
    }

    pub fn cpu(&self) -> Option<&Finding> {
        self.by(Measure::Cpu)
    }

    /// The rate, or p50.
    pub fn main(&self) -> Option<&Finding> {
        self.rate().or_else(|| self.by(Measure::P50))
    }

    pub fn latencies(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|found| found.measure.latency().is_some())
    }
}

/// Both ends, the lower one first.
pub(super) fn ordered([a, b]: [f64; 2]) -> [f64; 2] {
    [a.min(b), a.max(b)]
}
