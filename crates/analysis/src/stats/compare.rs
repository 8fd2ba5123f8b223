//! The ratio of two cells that are measured alone, one after the other.
//!
//! The ratio is taken within each round: slow drift of the machine cancels, faster noise does not. It is a
//! ratio of performance: above 1 is better, for seconds as for bytes per second.

use super::ByRound;
use linerate_model::Better;

/// The log ratio of performance of `ours` over `theirs` in each round that has both.
pub fn log_ratios(ours: &ByRound, theirs: &ByRound, better: Better) -> impl Iterator<Item = f64> {
    ours.iter().filter_map(move |(round, ours)| {
        let log = (ours / theirs.get(round)?).ln();
        Some(match better {
            Better::Higher => log,
            Better::Lower => -log,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ratio::RatioEstimate;
    use crate::stats::verdict::{Verdict, verdict};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    fn rounds(values: &[f64]) -> ByRound {
        (1..).zip(values.iter().copied()).collect()
    }

    fn ratio(ours: &ByRound, theirs: &ByRound, better: Better) -> RatioEstimate {
        RatioEstimate::from_logs(log_ratios(ours, theirs, better)).expect("there are rounds")
    }

    #[test]
    fn half_the_time_is_twice_the_performance() {
        let (ours, theirs) = (rounds(&[1.0; 6]), rounds(&[2.0; 6]));
        let lower = ratio(&ours, &theirs, Better::Lower);
        assert!((lower.ratio - 2.0).abs() < 1e-12 && lower.n == 6);
        assert!((ratio(&ours, &theirs, Better::Higher).ratio - 0.5).abs() < 1e-12);
    }

    #[test]
    fn rounds_without_both_values_are_ignored() {
        let ours = ByRound::from([(1, 1.0), (2, 4.0), (4, 9.0)]);
        let theirs = ByRound::from([(2, 2.0), (3, 1.0)]);
        let common: Vec<f64> = log_ratios(&ours, &theirs, Better::Higher).collect();
        assert_eq!(common, [2.0_f64.ln()]);
        assert_eq!(log_ratios(&ours, &ByRound::new(), Better::Higher).count(), 0);
    }

    #[test]
    fn drift_of_the_machine_cancels() {
        let theirs = rounds(&[1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.8]);
        let ours = theirs.iter().map(|(round, v)| (*round, v * 1.05)).collect();
        let slower = ratio(&ours, &theirs, Better::Lower);
        assert!((slower.ratio - 1.0 / 1.05).abs() < 1e-12);
        assert_eq!(verdict(&slower, 0.01), Verdict::Slower);
    }

    /// Seconds with 3 % noise, drift, and a disturbed trial in twenty, as in real runs.
    fn run(rng: &mut Pcg64, n: u32, seconds: f64) -> ByRound {
        let noise = |rng: &mut Pcg64| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        (1..=n)
            .map(|round| {
                let disturbed = if rng.random_bool(0.05) { 1.5 } else { 1.0 };
                (round, seconds * (1.0 + 0.03 * noise(rng) + 0.01 * f64::from(round)) * disturbed)
            })
            .collect()
    }

    /// 5 %, and four standard errors of 2,000 runs on top.
    #[test]
    fn equal_cells_are_called_different_in_at_most_five_percent_of_runs() {
        let mut rng = Pcg64::seed_from_u64(3);
        for n in [6, 7, 10, 30] {
            let runs = 2_000;
            let different = (0..runs).filter(|_| {
                let (a, b) = (run(&mut rng, n, 1.0), run(&mut rng, n, 1.0));
                let found = verdict(&ratio(&a, &b, Better::Lower), 0.03);
                matches!(found, Verdict::Faster | Verdict::Slower)
            });
            let rate = different.count() as f64 / f64::from(runs);
            assert!(rate <= 0.07, "n = {n}: {rate}");
        }
    }

    #[test]
    fn a_difference_of_ten_percent_is_found_with_the_right_sign() {
        let mut rng = Pcg64::seed_from_u64(4);
        for (n, power) in [(7, 0.5), (10, 0.55)] {
            let runs = 500;
            let found = (0..runs)
                .filter(|_| {
                    let (slow, fast) = (run(&mut rng, n, 1.1), run(&mut rng, n, 1.0));
                    let found = verdict(&ratio(&slow, &fast, Better::Lower), 0.03);
                    assert_ne!(found, Verdict::Faster);
                    found == Verdict::Slower
                })
                .count();
            assert!(found as f64 >= power * f64::from(runs), "n = {n}: {found} of {runs}");
        }
    }
}
