//! The ratio of two cells, and the verdict.
//!
//! The ratio is taken within each round, then the median of the ratios: slow drift of the machine cancels. It
//! is a ratio of performance: above 1 is better, for seconds as for bytes per second.

use super::by_round::ByRound;
use super::estimate::{Estimate, Scale};
use super::metric::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    #[serde(rename = "faster")]
    Faster,
    #[serde(rename = "slower")]
    Slower,
    #[serde(rename = "no difference found")]
    NoDifferenceFound,
}

/// Performance of `ours` over `theirs`, round by round; `None` where no round has both.
#[must_use]
pub fn ratio(ours: &ByRound, theirs: &ByRound, better: Better) -> Option<Estimate> {
    let ratios = ours.iter().filter_map(|(round, ours)| {
        let theirs = theirs.get(round)?;
        let ratio = match better {
            Better::Higher => ours / theirs,
            Better::Lower => theirs / ours,
        };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    });
    Estimate::of(ratios, Scale::Ratio)
}

/// |ratio - 1| of two runs of the same cell: smaller differences are ignored.
#[must_use]
pub fn noise_floor(aa: &Estimate) -> f64 {
    (aa.median - 1.0).abs()
}

/// Faster or slower if the interval excludes 1 and the difference is above the noise floor. Too few rounds
/// for an interval give no verdict.
///
/// The verdict on the A/A control itself has a floor of 0: its difference is the floor.
#[must_use]
pub fn verdict(ratio: &Estimate, noise_floor: f64) -> Verdict {
    if !ratio.is_sure() || !ratio.excludes(1.0) || (ratio.median - 1.0).abs() <= noise_floor {
        return Verdict::NoDifferenceFound;
    }
    if ratio.median > 1.0 { Verdict::Faster } else { Verdict::Slower }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    fn rounds(values: &[f64]) -> ByRound {
        (1..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn half_the_time_is_twice_the_performance() {
        let (ours, theirs) = (rounds(&[1.0; 6]), rounds(&[2.0; 6]));
        let lower = ratio(&ours, &theirs, Better::Lower).unwrap();
        assert_eq!((lower.median, lower.interval, lower.n), (2.0, [2.0, 2.0], 6));
        assert_eq!(ratio(&ours, &theirs, Better::Higher).unwrap().median, 0.5);
        assert_eq!(verdict(&lower, 0.1), Verdict::Faster);
        assert_eq!(verdict(&lower, 1.0), Verdict::NoDifferenceFound);
    }

    #[test]
    fn rounds_without_both_values_are_ignored() {
        let ours = ByRound::from([(1, 1.0), (2, 4.0), (4, 9.0)]);
        let theirs = ByRound::from([(2, 2.0), (3, 1.0)]);
        let common = ratio(&ours, &theirs, Better::Higher).unwrap();
        assert_eq!((common.median, common.n), (2.0, 1));
        assert_eq!(ratio(&ours, &ByRound::new(), Better::Higher), None);
    }

    #[test]
    fn too_few_rounds_give_no_verdict() {
        let clear = ratio(&rounds(&[1.0; 5]), &rounds(&[2.0; 5]), Better::Lower).unwrap();
        assert_eq!(verdict(&clear, 0.0), Verdict::NoDifferenceFound);
    }

    #[test]
    fn drift_of_the_machine_cancels() {
        let theirs = rounds(&[1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.8]);
        let ours = theirs.iter().map(|(round, v)| (*round, v * 1.05)).collect();
        let slower = ratio(&ours, &theirs, Better::Lower).unwrap();
        assert!((slower.median - 1.0 / 1.05).abs() < 1e-12);
        assert_eq!(verdict(&slower, 0.01), Verdict::Slower);
    }

    /// Seconds with 3 % noise, drift, and a disturbed trial in twenty, as in real runs.
    fn run(rng: &mut Pcg64, n: u32, truth: f64) -> ByRound {
        let noise = |rng: &mut Pcg64| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        (1..=n)
            .map(|round| {
                let disturbed = if rng.random_bool(0.05) { 1.5 } else { 1.0 };
                (round, truth * (1.0 + 0.03 * noise(rng) + 0.01 * f64::from(round)) * disturbed)
            })
            .collect()
    }

    /// 5 %, and four standard errors of 2,000 runs on top.
    #[test]
    fn equal_cells_get_a_verdict_in_at_most_five_percent_of_runs() {
        let mut rng = Pcg64::seed_from_u64(3);
        for n in [6, 7, 10, 30] {
            let runs = 2_000;
            let different = (0..runs)
                .filter(|_| {
                    let (a, b) = (run(&mut rng, n, 1.0), run(&mut rng, n, 1.0));
                    verdict(&ratio(&a, &b, Better::Lower).unwrap(), 0.0) != Verdict::NoDifferenceFound
                })
                .count();
            let rate = different as f64 / f64::from(runs);
            assert!(rate <= 0.07, "n = {n}: {rate}");
        }
    }

    #[test]
    fn a_difference_of_ten_percent_is_found_with_the_right_sign() {
        let mut rng = Pcg64::seed_from_u64(4);
        // Seven rounds need all seven on one side, so one disturbed trial hides the difference.
        for (n, power) in [(7, 0.6), (10, 0.75)] {
            let runs = 500;
            let found = (0..runs)
                .filter(|_| {
                    let (slow, fast) = (run(&mut rng, n, 1.1), run(&mut rng, n, 1.0));
                    let ratio = ratio(&slow, &fast, Better::Lower).unwrap();
                    assert_ne!(verdict(&ratio, 0.02), Verdict::Faster);
                    verdict(&ratio, 0.02) == Verdict::Slower
                })
                .count();
            assert!(found as f64 >= power * f64::from(runs), "n = {n}: {found} of {runs}");
        }
    }

    fn positive() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(1e-3..1e6_f64, 1..40)
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    proptest! {
        #[test]
        fn swapping_the_two_inverts_ratio_and_interval(a in positive(), b in positive()) {
            let (a, b) = (rounds(&a), rounds(&b));
            let (ab, ba) = (ratio(&a, &b, Better::Lower).unwrap(), ratio(&b, &a, Better::Lower).unwrap());
            prop_assert!(close(ab.median, 1.0 / ba.median));
            prop_assert!(close(ab.interval[0], 1.0 / ba.interval[1]));
            prop_assert!(close(ab.interval[1], 1.0 / ba.interval[0]));
        }

        #[test]
        fn the_unit_of_the_values_does_not_matter(a in positive(), b in positive(), unit in 1e-6..1e6_f64) {
            let scaled = |values: &[f64]| rounds(&values.iter().map(|v| v * unit).collect::<Vec<_>>());
            let before = ratio(&rounds(&a), &rounds(&b), Better::Higher).unwrap();
            let after = ratio(&scaled(&a), &scaled(&b), Better::Higher).unwrap();
            prop_assert!(close(before.median, after.median));
            prop_assert!(close(before.interval[0], after.interval[0]));
            prop_assert!(close(before.interval[1], after.interval[1]));
        }

        #[test]
        fn a_cell_against_itself_is_exactly_one(a in positive()) {
            let a = rounds(&a);
            let same = ratio(&a, &a, Better::Lower).unwrap();
            prop_assert_eq!((same.median, same.interval), (1.0, [1.0, 1.0]));
            prop_assert_eq!(verdict(&same, 0.0), Verdict::NoDifferenceFound);
        }

        #[test]
        fn the_interval_contains_the_median_and_is_within_the_range(a in positive()) {
            let e = Estimate::of(a.iter().copied(), Scale::Linear).unwrap();
            let min = a.iter().copied().fold(f64::MAX, f64::min);
            let max = a.iter().copied().fold(0.0, f64::max);
            prop_assert!(min <= e.interval[0] && e.interval[0] <= e.median);
            prop_assert!(e.median <= e.interval[1] && e.interval[1] <= max);
        }
    }
}
