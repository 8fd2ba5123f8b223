//! The comparison of two cells: from their duets where the run has them, else from their solo trials by
//! round.

use super::cell::CellSummary;
use super::journal::SortedJournal;
use crate::measurement::{Metric, Sharing};
use crate::stats::compare::log_ratios;
use crate::stats::difference::LatencyDifference;
use crate::stats::duet::{log_cpu_ratio, log_ratio};
use crate::stats::estimate::{Estimate, FEWEST_ROUNDS};
use crate::stats::ratio::RatioEstimate;
use crate::stats::sensitivity::Sensitivity;
use crate::stats::verdict::{Verdict, control_fails, verdict};
use linerate_contract::Role;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The ratio of two cells: Hodges-Lehmann estimate of the units' log ratios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Comparison {
    /// Id of the cell compared with.
    pub with: String,
    /// Performance of this cell over that of `with`: above 1 is better, whatever the unit's direction.
    pub ratio: f64,
    /// From the signed-rank distribution; with fewer than six units their range.
    pub ci95: [f64; 2],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci90: Option<[f64; 2]>,
    /// The same in microseconds, of latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<LatencyDifference>,
    /// Of the signed-rank test, two-sided, that the ratio is 1. Absent where the numbers were looked at while
    /// they were measured: the interval is then that of all looks together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// Of Benjamini and Hochberg, over the comparisons of a table with its baselines by one metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<f64>,
    /// |ratio - 1| that this number of units with this spread finds with a power of 80 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Units of duets; of a ratio from solo trials: rounds in which both succeeded.
    pub n: u32,
    /// The ratio of each unit or round, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<f64>,
    pub verdict: Verdict,
    /// Set where the two were measured in duet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<DuetReport>,
}

impl Comparison {
    /// True if a baseline in duet with itself differs from itself, so that its duets decide nothing.
    /// `margin`: the difference that matters.
    #[must_use]
    pub fn fails_as_control(&self, margin: f64) -> bool {
        self.n >= FEWEST_ROUNDS && control_fails(self.ci95, margin)
    }
}

/// What duets add to a ratio.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DuetReport {
    /// True if the ratio is that of the duets. False if it is that of the solo trials, because the duets
    /// contradict them.
    pub has_rate: bool,
    /// How the two shared the CPUs.
    pub sharing: Option<Sharing>,
    /// CPU time per operation (or byte) of all roles, this cell over `with`: above 1 is more expensive.
    pub cpu_ratio: Option<f64>,
    /// Absent with fewer than 6 units.
    pub cpu_ci95: Option<[f64; 2]>,
    /// Of a comparison of builds: the verdict on the CPU time by itself; slower is more expensive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_verdict: Option<Verdict>,
}

/// The comparisons of a suite.
#[derive(Debug, Clone, Copy)]
pub struct Comparisons<'a> {
    pub suite: &'a str,
    pub journal: &'a SortedJournal<'a>,
}

impl Comparisons<'_> {
    /// `cell` against `other`; `None` without a common round or unit.
    ///
    /// Where the duets contradict the solo trials (docs/method.md), the ratio is that of the solo trials, and
    /// the duets give the CPU cost.
    #[must_use]
    pub fn of(&self, cell: &CellSummary<'_>, other: &CellSummary<'_>, metric: Metric) -> Option<Comparison> {
        let with = &other.planned.id;
        let logs = log_ratios(&cell.values(metric), &other.values(metric), metric.better()).collect();
        let alone = Ratio::of(logs).filter(|_| !metric.is_growth());
        let together = self.by_duet(&cell.planned.id, with, metric);
        let ratio = match (together, alone) {
            (Some(together), Some(alone)) if together.contradicts(&alone) => {
                let duet = together.duet.map(|duet| DuetReport { has_rate: false, ..duet });
                Ratio { duet, ..alone }
            }
            (together, alone) => together.or(alone)?,
        };
        let found = ratio.report(with, self.journal.margin);
        let baseline = Estimate::of(other.values(metric).into_values()).filter(|_| metric.is_latency());
        let difference =
            baseline.and_then(|baseline| LatencyDifference::of(found.ratio, found.ci95, baseline.median));
        Some(Comparison { difference, ..found })
    }

    /// The cell in duet with itself; `None` without a unit.
    pub(super) fn control(&self, id: &str, metric: Metric) -> Option<Comparison> {
        Some(self.by_duet(id, id, metric)?.report(id, self.journal.margin))
    }

    /// What the probes of the cell's roles found.
    pub fn sensitivity(&self, cell: &CellSummary<'_>) -> BTreeMap<Role, Sensitivity> {
        let of_role = |role: Role| {
            let units = self.journal.probe(self.suite, &cell.planned.id, role);
            Some((role, Sensitivity::of(units, cell.metric)?))
        };
        cell.planned.systems.iter().filter_map(|system| of_role(system.role)).collect()
    }

    fn by_duet(&self, id: &str, other: &str, metric: Metric) -> Option<Ratio> {
        let units = || self.journal.duets(self.suite, [id, other]);
        let ratio = Ratio::of(units().filter_map(|duet| log_ratio(duet, metric)).collect())?;
        let cpu = RatioEstimate::of(units().filter_map(|duet| log_cpu_ratio(duet, metric, None)));
        let duet = DuetReport {
            has_rate: true,
            sharing: units().next().map(|duet| duet.sharing),
            cpu_ratio: cpu.map(|cpu| cpu.ratio),
            cpu_ci95: cpu.and_then(|cpu| cpu.ci95),
            cpu_verdict: None,
        };
        Some(Ratio { duet: Some(duet), ..ratio })
    }
}

/// Shorter than all digits of a binary number, and finer than any plot.
#[must_use]
pub fn rounded_unit(ratio: f64) -> f64 {
    (ratio * 1e5).round() / 1e5
}

struct Ratio {
    estimate: RatioEstimate,
    units: Vec<f64>,
    duet: Option<DuetReport>,
}

impl Ratio {
    fn of(logs: Vec<f64>) -> Option<Self> {
        let units = logs.iter().filter(|log| log.is_finite()).map(|log| log.exp()).map(rounded_unit);
        let units = units.filter(|unit| unit.is_finite());
        Some(Self { units: units.collect(), estimate: RatioEstimate::of(logs)?, duet: None })
    }

    fn contradicts(&self, alone: &Self) -> bool {
        let [a, b] = [self, alone].map(|ratio| ratio.estimate.ci95.unwrap_or(ratio.estimate.range));
        alone.estimate.n >= FEWEST_ROUNDS && (a[1] < b[0] || b[1] < a[0])
    }

    fn report(self, with: &str, margin: f64) -> Comparison {
        let RatioEstimate { ratio, range, ci95, ci90, p, n, detectable } = self.estimate;
        Comparison {
            with: with.to_owned(),
            ratio,
            ci95: ci95.unwrap_or(range),
            ci90,
            difference: None,
            p: Some(p),
            q: None,
            smallest_detectable: detectable,
            n,
            units: self.units,
            verdict: verdict(&self.estimate, margin),
            duet: self.duet,
        }
    }
}
