//! The marks of a table besides its baseline: limit and reference.

use crate::report::model::{Comparison, ShareOf};
use crate::stats::estimate::FEWEST_ROUNDS;

pub(super) fn share(comparison: Comparison) -> ShareOf {
    let Comparison { with, ratio, ci95, n, .. } = comparison;
    ShareOf { with, ratio, ci95, n }
}

/// True if a row exceeds its limit beyond noise: the 95 % interval of the ratio is wholly above 1.
pub(super) fn is_above(limit: &ShareOf) -> bool {
    limit.n >= FEWEST_ROUNDS && limit.ci95[0] > 1.0
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
