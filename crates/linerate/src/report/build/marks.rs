//! The marks of a table besides its baseline: limit, reference and ground truth.

use super::cell::Cell;
use crate::measurement::{Metric, Truth};
use crate::report::model::{AgainstTruth, Comparison, ShareOf};
use crate::stats::accuracy::{accuracy, over_truth};
use crate::stats::estimate::FEWEST_ROUNDS;

pub(super) fn share(comparison: Comparison) -> ShareOf {
    let Comparison { with, ratio, ci95, n, .. } = comparison;
    ShareOf { with, ratio, ci95, n }
}

/// True if a row exceeds its limit beyond noise: the 95 % interval of the ratio is wholly above 1.
pub(crate) fn is_above(limit: &ShareOf) -> bool {
    limit.n >= FEWEST_ROUNDS && limit.ci95[0] > 1.0
}

/// The values that a cell reports against the true one; `None` where it is not known by this metric.
pub(super) fn against_truth(cell: &Cell<'_>, metric: Metric, truth: &Truth) -> Option<AgainstTruth> {
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
            is_above(&ShareOf { with: "limit".to_owned(), ratio: 1.5, ci95: [low, 2.0], n })
        };
        assert!(exceeds(1.01, FEWEST_ROUNDS));
        assert!(!exceeds(1.0, FEWEST_ROUNDS));
        assert!(!exceeds(1.01, FEWEST_ROUNDS - 1), "the range of five rounds is no 95 % interval");
    }
}
