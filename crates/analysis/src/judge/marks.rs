//! The marks of a table besides its baseline: limit, reference and ground truth.

use super::cell::CellSummary;
use super::comparison::Comparison;
use crate::stats::accuracy::{Accuracy, accuracy, over_truth};
use crate::stats::estimate::FEWEST_ROUNDS;
use linerate_model::{Metric, Truth};
use serde::{Deserialize, Serialize};

/// Performance as a share of a limit's or a reference's: 1 is equal to it, above 1 is better than it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareOf {
    /// Id of the limit or the reference.
    pub with: String,
    /// From solo trials, paired by round.
    pub ratio: f64,
    /// From the signed-rank distribution; with fewer than six rounds their range.
    pub ci95: [f64; 2],
    pub n: u32,
}

/// A reported value against the known true one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgainstTruth {
    /// In the unit of the cell.
    pub truth: f64,
    /// Reported over true: Hodges-Lehmann estimate of the rounds' log ratios. The error is `ratio - 1`.
    pub ratio: f64,
    /// From the signed-rank distribution; with fewer than six rounds their range.
    pub ci95: [f64; 2],
    pub n: u32,
    pub accuracy: Accuracy,
}

pub(super) fn share(comparison: Comparison) -> ShareOf {
    let Comparison { with, ratio, ci95, n, .. } = comparison;
    ShareOf { with, ratio, ci95, n }
}

impl ShareOf {
    /// True if a row exceeds its limit beyond noise: the 95 % interval of the ratio is wholly above 1.
    pub fn is_above(&self) -> bool {
        self.n >= FEWEST_ROUNDS && self.ci95[0] > 1.0
    }
}

/// The values that a cell reports against the true one; `None` where it is not known by this metric.
pub(super) fn against_truth(cell: &CellSummary<'_>, metric: Metric, truth: &Truth) -> Option<AgainstTruth> {
    let value = truth.values.get(&metric)?.as_micros_f64();
    let estimate = over_truth(&cell.values(metric), value)?;
    Some(AgainstTruth {
        truth: value,
        ratio: estimate.ratio,
        ci95: estimate.ci95.unwrap_or(estimate.range),
        n: estimate.n,
        accuracy: accuracy(&estimate, truth.tolerance),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interval_wholly_above_one_exceeds_a_limit() {
        let exceeds = |low: f64, n: u32| {
            ShareOf { with: "limit".to_owned(), ratio: 1.5, ci95: [low, 2.0], n }.is_above()
        };
        assert!(exceeds(1.01, FEWEST_ROUNDS));
        assert!(!exceeds(1.0, FEWEST_ROUNDS));
        assert!(!exceeds(1.01, FEWEST_ROUNDS - 1), "the range of five rounds is no 95 % interval");
    }
}
