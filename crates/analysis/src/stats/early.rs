//! A large difference needs few units: looks at a comparison before signed ranks can find anything.
//!
//! Of n units no order has a p value below 2 / 2^n, so that ranks find nothing before the seventh to twelfth
//! unit, be the difference 3 % or a factor of 200. A launch that is measured in several windows shows more
//! than one number: the spread of its windows. An early look pools the variance of the units with that of
//! their windows, and takes Student's t (docs/decisions/stopping.md). Two things keep it honest where
//! launches differ more than their windows do: a window's variance is not divided by the number of windows,
//! and a difference has to be certain to be above 5 %, not above 0.

use super::ratio::center;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The units after which there is an early look. From the last one on, ranks find what there is.
const FIRST: u32 = 3;
const LAST: u32 = 11;
/// The log ratio that a difference has to exceed for certain.
const LEAST: f64 = 0.05;
/// The error probability of a look at one of two readings, both directions together. Of equal pairs in the
/// worst of 35 simulated worlds, 0.02 % were called different at all early looks together.
const ALPHA: f64 = 0.002;
const READINGS: f64 = 2.0;
/// Degrees of freedom of the windows' variance, whatever their number: windows of a launch have its layout,
/// its hash seeds and its compiled code in common.
const OF_WINDOWS: f64 = 4.0;
/// The least standard deviation of a window's log ratio, for the same reason.
const FLOOR: f64 = 0.01;

/// The windows that can show a factor of two.
const FEWEST_WINDOWS: usize = 3;
/// The launches that these windows are of.
pub const FEWEST_LAUNCHES: u32 = 2;

/// The fewest units that can show a smaller difference.
pub const FEWEST_UNITS: u32 = FIRST;

/// The numbers of units, up to `last`, after which there is an early look.
pub fn looks(last: u32) -> RangeInclusive<u32> {
    FIRST..=last.min(LAST)
}

/// The error probability of an early look at one reading of a family of `tests`.
pub fn alpha(tests: usize) -> f64 {
    ALPHA * (READINGS / tests.max(1) as f64).min(1.0)
}

/// The interval of the ratio that misses it with probability `alpha`. `within` has the variance of the
/// windows' log ratios of each unit; `None` where a unit has none, or for too few units.
pub fn interval(logs: &[f64], within: &[f64], alpha: f64) -> Option<[f64; 2]> {
    if logs.len() < FIRST as usize || within.len() != logs.len() {
        return None;
    }
    let n = logs.len() as f64;
    let ratio = center(logs)?;
    let mean = logs.iter().sum::<f64>() / n;
    let of_units = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
    let of_windows = (within.iter().sum::<f64>() / n).max(FLOOR * FLOOR);
    let freedom = OF_WINDOWS + n - 1.0;
    let variance = (OF_WINDOWS * of_windows + of_units) / freedom;
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(1.0 - alpha / 2.0);
    let half = t * (variance / n).sqrt();
    Some([(ratio - half).exp(), (ratio + half).exp()])
}

/// The variance of the log ratios of a unit's windows; `None` for fewer than two of them.
pub fn within(windows: &[f64]) -> Option<f64> {
    let n = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / n;
    let squares = windows.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
    (windows.len() > 1 && squares.is_finite()).then(|| squares / (n - 1.0))
}

/// Whether a ratio's whole interval is farther from 1 than an early look has to show.
pub fn is_large([low, high]: [f64; 2]) -> bool {
    low.ln() > LEAST || high.ln() < -LEAST
}

/// Whether the log ratios of all windows, each with the number of its unit, are beyond a factor of two on the
/// same side. That needs no interval: of equal pairs whose windows have a standard deviation of 25 %, the
/// noisiest that was seen, a window is so far off on one side in one of 360, and three of them are in one of
/// twenty million. One launch may be slow for its life, two are not by chance.
pub fn is_factor(windows: &[(u32, f64)]) -> bool {
    let launches: BTreeSet<u32> = windows.iter().map(|(unit, _)| *unit).collect();
    let all = |is_beyond: fn(f64) -> bool| windows.iter().all(|(_, log)| is_beyond(*log));
    windows.len() >= FEWEST_WINDOWS
        && launches.len() >= FEWEST_LAUNCHES as usize
        && (all(|log| log > std::f64::consts::LN_2) || all(|log| log < -std::f64::consts::LN_2))
}

/// The smallest relative difference that `units` with this spread show to an early look in 9 of 10 runs;
/// `None` for too few units.
pub fn detectable(spread: f64, units: f64, tests: usize) -> Option<f64> {
    let units = units.min(f64::from(LAST));
    if units < f64::from(FIRST) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, OF_WINDOWS + units - 1.0).ok()?;
    let quantiles = t.inverse_cdf(1.0 - alpha(tests) / 2.0) + t.inverse_cdf(0.9);
    Some((LEAST + quantiles * spread.max(FLOOR) / units.sqrt()).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    const WINDOWS: usize = 3;

    #[test]
    fn a_factor_of_two_is_in_every_window() {
        let of = |windows: u32, ratios: &[f64]| {
            let unit = |(index, ratio): (u32, &f64)| (index / windows, ratio.ln());
            is_factor(&(0..).zip(ratios).map(unit).collect::<Vec<_>>())
        };
        assert!(of(1, &[2.1, 2.2, 3.0]) && of(2, &[0.4, 0.49, 0.01]) && of(3, &[200.0; 9]));
        assert!(!of(1, &[2.1, 1.9, 3.0]) && !of(1, &[2.1, 0.4, 3.0]) && !of(1, &[5.0, 5.0]) && !of(1, &[]));
        assert!(!of(3, &[5.0; 3]), "one launch");
    }

    #[test]
    fn no_equal_pair_of_any_simulated_world_has_a_factor_of_two() {
        let mut rng = Pcg64::seed_from_u64(7);
        for (_, shape) in SHAPES {
            for [window, launch] in WORLDS {
                let is_found = |_| {
                    let mut windows = Vec::new();
                    for unit in 0..FEWEST_LAUNCHES {
                        let common = launch * shape(&mut rng);
                        windows.extend((0..WINDOWS).map(|_| (unit, common + window * normal(&mut rng))));
                    }
                    is_factor(&windows)
                };
                assert_eq!((0..20_000).map(is_found).filter(|found| *found).count(), 0);
            }
        }
    }

    fn normal(rng: &mut impl Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Student's t with three degrees of freedom, of variance 1.
    fn heavy(rng: &mut Pcg64) -> f64 {
        let chi = (0..3).map(|_| normal(rng).powi(2)).sum::<f64>();
        normal(rng) / (chi / 3.0).sqrt() / 3.0_f64.sqrt()
    }

    fn dirty(rng: &mut Pcg64) -> f64 {
        let wide = if rng.random::<f64>() < 0.1 { 5.0 } else { 1.0 };
        wide * normal(rng) / 3.4_f64.sqrt()
    }

    fn skewed(rng: &mut Pcg64) -> f64 {
        -(1.0 - rng.random::<f64>()).ln() - 1.0
    }

    /// A process that is fast or slow for its life.
    fn two_states(rng: &mut Pcg64) -> f64 {
        (if rng.random() { 1.0 } else { -1.0 }) + 0.05 * normal(rng)
    }

    type Shape = fn(&mut Pcg64) -> f64;
    const SHAPES: [(&str, Shape); 5] =
        [("normal", normal), ("t", heavy), ("dirty", dirty), ("skewed", skewed), ("two states", two_states)];
    /// Standard deviations of a window of half a second and between launches: net/http, Node.js, nginx with
    /// two workers, uvicorn, net/http without pins, and launches that differ by 2 and 4 %.
    const WORLDS: [[f64; 2]; 7] = [
        [0.017, 0.0],
        [0.029, 0.0065],
        [0.061, 0.013],
        [0.0054, 0.0092],
        [0.25, 0.022],
        [0.005, 0.02],
        [0.005, 0.04],
    ];

    /// Whether one of `last` units with this true log ratio shows a difference, and after which.
    fn found(rng: &mut Pcg64, truth: f64, [window, launch]: [f64; 2], shape: Shape) -> Option<u32> {
        let (mut logs, mut spreads) = (Vec::new(), Vec::new());
        for _ in 0..LAST {
            let windows: Vec<f64> = (0..WINDOWS).map(|_| window * normal(rng)).collect();
            logs.push(truth + launch * shape(rng) + windows.iter().sum::<f64>() / WINDOWS as f64);
            spreads.push(within(&windows).unwrap());
        }
        let shows = |n: u32| interval(&logs[..n as usize], &spreads[..n as usize], alpha(2));
        looks(LAST).find(|n| shows(*n).is_some_and(is_large))
    }

    /// 0.02 % by 20,000 runs of each world; here half a per cent is within four standard errors of it.
    #[test]
    fn equal_pairs_are_not_called_different_in_any_simulated_world() {
        let (mut rng, runs) = (Pcg64::seed_from_u64(31), 1_500);
        for (name, shape) in SHAPES {
            for world in WORLDS {
                // A launch has an error of some size, else its shape says nothing.
                let launch = if name == "normal" { world[1] } else { world[1].max(world[0] / 2.0) };
                let wrong = (0..runs).filter(|_| found(&mut rng, 0.0, [world[0], launch], shape).is_some());
                let share = wrong.count() as f64 / f64::from(runs);
                assert!(share <= 0.005, "{name}, {world:?}: {share}");
            }
        }
    }

    #[test]
    fn a_fifth_is_found_in_three_to_five_units_and_a_factor_of_two_in_three() {
        let mut rng = Pcg64::seed_from_u64(32);
        for (truth, most) in [(0.2, 5), (-0.2, 5), (0.7, 3), (-4.6, 3)] {
            for world in WORLDS.into_iter().filter(|[window, _]| *window < 0.03) {
                let runs = 300;
                let is_early = |unit: Option<u32>| unit.is_some_and(|unit| unit <= most);
                let early = (0..runs).filter(|_| is_early(found(&mut rng, truth, world, normal))).count();
                assert!(early * 10 >= runs * 8, "{truth}, {world:?}: {early} of {runs}");
            }
        }
    }

    #[test]
    fn units_without_windows_and_too_few_of_them_have_no_early_look() {
        assert_eq!(interval(&[0.5; 2], &[0.0; 2], 0.002), None);
        assert_eq!(interval(&[0.5; 3], &[0.0; 2], 0.002), None);
        assert!(interval(&[0.5; 3], &[0.0; 3], 0.002).is_some_and(is_large));
        assert_eq!((within(&[0.1]), within(&[])), (None, None));
        assert_eq!((looks(2).count(), looks(5).count(), looks(50).count()), (0, 3, 9));
    }

    #[test]
    fn a_family_of_more_readings_needs_more_certainty() {
        assert!(alpha(4) < alpha(2) && alpha(1) == alpha(2));
        let [narrow, wide] = [2, 8].map(|tests| interval(&[0.5; 3], &[0.0; 3], alpha(tests)).unwrap());
        assert!(wide[0] < narrow[0] && wide[1] > narrow[1]);
        assert!(detectable(0.02, 3.0, 2).unwrap() > detectable(0.02, 5.0, 2).unwrap());
        assert_eq!(detectable(0.02, 2.0, 2), None);
    }
}
