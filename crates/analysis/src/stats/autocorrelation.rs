//! Whether units depend on one another. Intervals and tests assume that they do not: where one unit resembles
//! the next, an interval is narrower than the truth.

/// With fewer units the distribution of the statistic is not yet normal.
const FEWEST: usize = 10;
/// One-sided 1 % of the normal distribution: a run has dozens of pairs.
const Z: f64 = 2.326;

/// The rank correlation of each unit with the next, where independent units have as much in 1 of 100 series
/// (Bartels, "The Rank Version of von Neumann's Ratio Test for Randomness", 1982). A negative one makes
/// intervals too wide, and is no fault.
pub fn autocorrelation(units: &[f64]) -> Option<f64> {
    let n = units.len() as f64;
    if units.len() < FEWEST {
        return None;
    }
    let ranks = ranks(units);
    let steps: f64 = ranks.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let spread: f64 = ranks.iter().map(|rank| (rank - (n + 1.0) / 2.0).powi(2)).sum();
    let ratio = steps / spread;
    let variance =
        4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2));
    let is_found = (2.0 - ratio) / variance.sqrt() > Z;
    is_found.then_some(1.0 - ratio / 2.0)
}

/// From 1 on; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| other.total_cmp(value).is_lt()).count();
        let equal = values.iter().filter(|other| other.total_cmp(value).is_eq()).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// Series in which a unit keeps this part of the one before it; of how many of a thousand it is found.
    fn found(part: f64, length: usize) -> usize {
        let mut random = Pcg64::seed_from_u64(9);
        let mut series = || {
            let mut last = 0.0;
            let mut next = || {
                let noise: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                last = part * last + noise;
                last
            };
            (0..length).map(|_| next()).collect::<Vec<_>>()
        };
        (0..1_000).filter(|_| autocorrelation(&series()).is_some()).count()
    }

    #[test]
    fn one_series_of_independent_units_in_a_hundred_is_flagged_and_most_dependent_ones_are() {
        assert!((2..20).contains(&found(0.0, 12)), "{}", found(0.0, 12));
        assert!((2..20).contains(&found(0.0, 40)), "{}", found(0.0, 40));
        assert!(found(0.6, 40) > 800, "{}", found(0.6, 40));
        assert_eq!(found(-0.6, 40), 0);
    }

    /// By hand: 15 steps of 1, and a sum of squares of 340 about the mean.
    #[test]
    fn the_correlation_is_that_of_ranks_and_a_trend_has_nearly_one() {
        let trend: Vec<f64> = (1..=16).map(f64::from).collect();
        let found = autocorrelation(&trend).unwrap();
        assert!((found - (1.0 - 15.0 / 340.0 / 2.0)).abs() < 1e-12, "{found}");
        assert_eq!(autocorrelation(&[1.0; 16]), None, "equal units");
        assert_eq!(autocorrelation(&trend[..9]), None, "too few");
    }
}
