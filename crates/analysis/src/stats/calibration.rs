//! How often a comparison finds a difference: of none, the false alarms; of a planted one, the power.
//!
//! Units of a pair are independent, so consecutive groups of them are independent comparisons.

use super::ratio::RatioEstimate;
use super::verdict::{Verdict, direction};
use statrs::distribution::{Beta, ContinuousCDF};

/// What comparisons of the same two things found.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Detection {
    pub slower: u64,
    pub faster: u64,
    pub none: u64,
}

impl Detection {
    /// From the log ratios of a pair's units in order, in groups of `units`; an incomplete one is left out.
    /// A difference is an interval of 95 % that excludes 1, whatever its size.
    pub fn count(logs: &[f64], units: usize) -> Self {
        let estimates =
            logs.chunks_exact(units).filter_map(|group| RatioEstimate::from_logs(group.iter().copied()));
        let found = estimates.filter_map(|estimate| estimate.ci95).map(|ci95| Self::one(direction(ci95)));
        found.fold(Self::default(), Self::and)
    }

    /// One comparison with this verdict.
    pub fn one(verdict: Verdict) -> Self {
        let (slower, faster) = (verdict == Verdict::Slower, verdict == Verdict::Faster);
        Self { slower: slower.into(), faster: faster.into(), none: (!slower && !faster).into() }
    }

    /// The comparisons of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            slower: self.slower + other.slower,
            faster: self.faster + other.faster,
            none: self.none + other.none,
        }
    }

    pub fn comparisons(&self) -> u64 {
        self.slower + self.faster + self.none
    }
}

/// The 95 % interval of a probability from its share in `trials` (Clopper and Pearson 1934).
pub fn clopper_pearson(successes: u64, trials: u64) -> [f64; 2] {
    let quantile =
        |a: u64, b: u64, p: f64| Beta::new(a as f64, b as f64).map_or(f64::NAN, |d| d.inverse_cdf(p));
    let failures = trials - successes;
    let low = if successes == 0 { 0.0 } else { quantile(successes, failures + 1, 0.025) };
    let high = if failures == 0 { 1.0 } else { quantile(successes + 1, failures, 0.975) };
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// Noise of 1 %, roughly normal.
    fn logs(n: usize, shift: f64) -> Vec<f64> {
        let mut random = Pcg64::seed_from_u64(5);
        let mut noise = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        (0..n).map(|_| shift + 0.01 * noise()).collect()
    }

    #[test]
    fn equal_cells_give_few_alarms_and_a_planted_slowdown_is_found() {
        let none = Detection::count(&logs(6_000, 0.0), 6);
        assert_eq!(none.comparisons(), 1_000);
        assert!((10..70).contains(&(none.slower + none.faster)), "{none:?}: 3.1 % are expected");
        let planted = Detection::count(&logs(1_200, -0.02), 12);
        assert_eq!((planted.comparisons(), planted.faster), (100, 0));
        assert!(planted.slower >= 95, "{planted:?}");
    }

    #[test]
    fn an_incomplete_group_is_no_comparison() {
        assert_eq!(Detection::count(&[-0.1; 11], 6).comparisons(), 1);
        let both = Detection::count(&[-0.1; 6], 6).and(Detection::count(&[0.1; 12], 6));
        assert_eq!((both.comparisons(), both.slower, both.faster), (3, 1, 2));
    }

    /// Against the tables of Clopper and Pearson's method in R (binom.test).
    #[test]
    fn intervals_of_shares_equal_published_ones() {
        for (successes, trials, expected) in [
            (0, 20, [0.0, 0.1684]),
            (1, 20, [0.0013, 0.2487]),
            (10, 20, [0.2720, 0.7280]),
            (20, 20, [0.8316, 1.0]),
        ] {
            let found = clopper_pearson(successes, trials);
            let is_close = found.iter().zip(expected).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-4);
            assert!(is_close, "{successes} of {trials}: {found:?}");
        }
    }
}
