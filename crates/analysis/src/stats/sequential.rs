//! Looking at a comparison again and again without more false findings: group-sequential tests.
//!
//! Each look may spend a part of the error probability alpha (Lan and DeMets 1983). The part follows calendar
//! time: the share of the budget that is used, which does not depend on what was found. The nominal p value
//! of a look comes from the joint distribution of all looks so far (Armitage, McPherson and Rowe 1969), as
//! sums of independent units have it. A repeated interval (Jennison and Turnbull 1989) has that nominal
//! level, and contains the truth at all looks together with probability 1 - alpha.
//!
//! The p values that are compared are those of signed ranks, which are exact: of n units none is below
//! 2 / 2^n. A look whose part is smaller can find nothing, so it leaves its part to the next one.

use super::early;
use super::estimate::FEWEST_ROUNDS;
use super::ratio;
use statrs::distribution::{ContinuousCDF, Normal};

/// The spent part is alpha * t^2 (Kim and DeMets 1987). With O'Brien and Fleming's rule, large differences
/// would wait for tiny nominal p values; with a power of 1, too little would be left for the last looks.
const POWER: i32 = 2;
/// Nodes of the integration, odd for Simpson's rule, and the largest |z| that they reach.
const NODES: usize = 121;
const WIDEST: f64 = 6.5;
/// A nominal p value below this one is 0.
const LEAST: f64 = 1e-14;

/// The units after which the ranks of `last` units are looked at: each at first, then about every tenth. The
/// last one is among them.
pub fn looks(last: u32) -> Vec<u32> {
    (FEWEST_ROUNDS..=last).filter(|n| *n == last || is_look(*n)).collect()
}

/// The last look at one of the first units, an early one or one at ranks; `None` before the first one.
pub fn last_look(unit: u32) -> Option<u32> {
    (early::FEWEST_UNITS..=unit).rev().find(|unit| is_look(*unit))
}

/// The next look after this unit.
pub fn next_look(unit: u32) -> u32 {
    (unit.max(early::FEWEST_UNITS - 1) + 1..).find(|unit| is_look(*unit)).unwrap_or(u32::MAX)
}

fn is_look(unit: u32) -> bool {
    unit.is_multiple_of((unit / 20).max(1))
}

/// The nominal two-sided p values at each look, for an error probability of `alpha` at all looks together.
/// A look is a number of units and the share of the budget that was used by then.
pub fn nominal(alpha: f64, looks: &[(u32, f64)]) -> Vec<f64> {
    let mut state = State { spent: 0.0, last: None };
    looks.iter().map(|(units, share)| state.look(alpha, f64::from(*units), *share)).collect()
}

/// Z values that have crossed no boundary yet.
struct State {
    spent: f64,
    last: Option<Density>,
}

/// The density of the z value after some units: nodes with density times weight.
struct Density {
    units: f64,
    nodes: Vec<(f64, f64)>,
}

impl State {
    fn look(&mut self, alpha: f64, units: f64, share: f64) -> f64 {
        let spent = alpha * share.clamp(0.0, 1.0).powi(POWER);
        let step = (spent - self.spent).max(0.0);
        let critical = self.critical(units, step);
        let nominal = 2.0 * upper(critical);
        // No order of so few units has a p value this small: the look can find nothing, so it spends nothing.
        let is_in_reach = units >= f64::from(fewest(nominal));
        if is_in_reach {
            self.spent = self.spent.max(spent);
        }
        self.last = Some(self.density(units, if is_in_reach { critical.min(WIDEST) } else { WIDEST }));
        nominal
    }

    /// The z value beyond which lies the probability `step`, of the values that have crossed no boundary.
    ///
    /// By Newton's method on the logarithm, which is concave: it comes down to the root from the right, where
    /// no value had crossed a boundary before.
    fn critical(&self, units: f64, step: f64) -> f64 {
        if step < LEAST {
            return f64::INFINITY;
        }
        let mut z = Normal::standard().inverse_cdf(1.0 - step / 2.0);
        for _ in 0..50 {
            let (beyond, slope) = self.beyond(units, z);
            if beyond < f64::MIN_POSITIVE {
                z *= 0.9;
                continue;
            }
            let next = (z - (step / beyond).ln() * beyond / slope).max(0.0);
            if (next - z).abs() < 1e-10 {
                break;
            }
            z = next;
        }
        z
    }

    /// The probability beyond a critical value, and its density there.
    fn beyond(&self, units: f64, critical: f64) -> (f64, f64) {
        let Some(last) = &self.last else { return (2.0 * upper(critical), 2.0 * normal(critical)) };
        let (r, s) = last.step_to(units);
        last.nodes.iter().fold((0.0, 0.0), |(beyond, slope), (z, weight)| {
            let ends = [(critical - r * z) / s, (critical + r * z) / s];
            let density = normal(ends[0]) + normal(ends[1]);
            (beyond + weight * (upper(ends[0]) + upper(ends[1])), slope + weight * density / s)
        })
    }

    fn density(&self, units: f64, widest: f64) -> Density {
        let width = 2.0 * widest / (NODES - 1) as f64;
        let at = |z: f64| match &self.last {
            None => normal(z),
            Some(last) => {
                let (r, s) = last.step_to(units);
                last.nodes.iter().map(|(from, weight)| weight * normal((z - r * from) / s) / s).sum()
            }
        };
        let node = |i: usize| {
            let z = width * i as f64 - widest;
            let simpson = if i == 0 || i == NODES - 1 { 1.0 } else { (2 + 2 * (i % 2)) as f64 };
            (z, at(z) * simpson * width / 3.0)
        };
        // The boundaries are those of both directions, so the density is symmetric.
        let half: Vec<(f64, f64)> = (0..=NODES / 2).map(node).collect();
        let other = half.iter().rev().skip(1).map(|(z, weight)| (-z, *weight));
        Density { units, nodes: half.iter().copied().chain(other).collect() }
    }
}

impl Density {
    /// The z value after `units` is `r` times the present one and an independent part with deviation `s`.
    fn step_to(&self, units: f64) -> (f64, f64) {
        let share = (self.units / units).min(1.0 - f64::EPSILON);
        (share.sqrt(), (1.0 - share).sqrt())
    }
}

fn normal(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

fn upper(z: f64) -> f64 {
    Normal::standard().sf(z)
}

/// The fewest units whose signed ranks can have a p value of `alpha` or less: 2 / 2^n.
pub fn fewest(alpha: f64) -> u32 {
    ((2.0 / alpha).log2().ceil() as u32).max(FEWEST_ROUNDS)
}

/// The relative difference that a comparison of `units` finds with this power, where one unit has the
/// standard deviation `spread`, and looks cost a tenth of the units.
pub fn detectable(spread: f64, units: f64, alpha: f64, power: f64) -> f64 {
    let normal = Normal::standard();
    let quantiles = normal.inverse_cdf(1.0 - alpha / 2.0) + normal.inverse_cdf(power);
    (quantiles * spread / (0.9 * ratio::EFFICIENCY * units).sqrt()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ratio::{interval, p_value};
    use rand::{Rng, RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    fn normal(rng: &mut impl Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn plan(most: u32) -> Vec<(u32, f64)> {
        looks(most).into_iter().map(|n| (n, f64::from(n) / f64::from(most))).collect()
    }

    /// The share of series in which a look finds a difference; log ratios have this mean and spread.
    fn share_found(alpha: f64, most: u32, runs: u32, seed: u64, [mean, spread]: [f64; 2]) -> f64 {
        let plan = plan(most);
        let bounds = nominal(alpha, &plan);
        let mut rng = Pcg64::seed_from_u64(seed);
        let found = (0..runs).filter(|_| {
            let logs: Vec<f64> = (0..most).map(|_| mean + spread * normal(&mut rng)).collect();
            plan.iter().zip(&bounds).any(|((n, _), p)| p_value(&logs[..*n as usize]) <= *p)
        });
        found.count() as f64 / f64::from(runs)
    }

    #[test]
    fn one_look_at_the_end_is_the_usual_test() {
        let p = nominal(0.05, &[(30, 1.0)]);
        assert!((p[0] - 0.05).abs() < 1e-9, "{p:?}");
    }

    /// The first look spends 0.05 / 25; later ones are checked by 200,000 drawn sums of normal values.
    #[test]
    fn each_look_spends_its_part_of_the_error_probability() {
        let five: Vec<(u32, f64)> = (1..=5).map(|k| (10 * k, f64::from(k) / 5.0)).collect();
        let p = nominal(0.05, &five);
        let z: Vec<f64> = p.iter().map(|p| -Normal::standard().inverse_cdf(p / 2.0)).collect();
        assert!((z[0] - 3.090).abs() < 0.001, "{z:?}");
        let mut rng = Pcg64::seed_from_u64(20);
        let (draws, mut crossed) = (200_000, [0; 5]);
        for _ in 0..draws {
            let mut sum = 0.0;
            let look = (0..5).find(|k| {
                sum += normal(&mut rng);
                f64::abs(sum) / ((k + 1) as f64).sqrt() > z[*k]
            });
            look.into_iter().for_each(|k| crossed[k] += 1);
        }
        for (k, count) in crossed.into_iter().enumerate() {
            let spent = 0.05 * (2 * k + 1) as f64 / 25.0;
            let found = f64::from(count) / f64::from(draws);
            assert!((found - spent).abs() < 4.0 * (spent / f64::from(draws)).sqrt(), "look {k}: {found}");
        }
    }

    #[test]
    fn equal_arms_are_called_different_as_often_as_alpha_at_all_looks_together() {
        for (alpha, most, runs) in [(0.05, 50, 500), (0.01, 30, 500)] {
            let share = share_found(alpha, most, runs, 21, [0.0, 0.01]);
            let error = 3.5 * (alpha * (1.0 - alpha) / f64::from(runs)).sqrt();
            assert!(share <= alpha + error, "{alpha}: {share}");
        }
    }

    /// 30 seconds of slow servers: the look at six units cannot find anything, the one at seven can.
    #[test]
    fn a_look_that_can_find_nothing_leaves_its_part_to_the_next() {
        let few = [(6, 0.85), (7, 1.0)];
        let p = nominal(0.025, &few);
        assert!(fewest(p[0]) > 6 && (0.0249..0.0251).contains(&p[1]), "{p:?}");
        for (alpha, most, runs) in [(0.05, 7, 4_000), (0.025, 7, 4_000), (0.05, 10, 2_000)] {
            let share = share_found(alpha, most, runs, 24, [0.0, 1.0]);
            assert!(share <= alpha + 3.5 * (alpha / f64::from(runs)).sqrt(), "{alpha}, {most}: {share}");
            assert!(share > alpha / 4.0, "{alpha}, {most}: {share}");
        }
    }

    #[test]
    fn repeated_intervals_contain_the_truth_at_all_looks_together() {
        let plan = plan(40);
        let bounds = nominal(0.05, &plan);
        let mut rng = Pcg64::seed_from_u64(22);
        let runs = 300;
        let missed = (0..runs).filter(|_| {
            let logs: Vec<f64> = (0..40).map(|_| 0.02 + 0.01 * normal(&mut rng)).collect();
            let misses = |[low, high]: [f64; 2]| low > 0.02_f64.exp() || high < 0.02_f64.exp();
            let looks = plan.iter().zip(&bounds);
            looks.into_iter().filter_map(|((n, _), p)| interval(&logs[..*n as usize], *p)).any(misses)
        });
        let share = missed.count() as f64 / f64::from(runs);
        assert!(share <= 0.05 + 0.044, "{share}");
    }

    #[test]
    fn a_difference_of_the_detectable_size_is_found_with_its_power() {
        let (most, spread, runs) = (40, 0.01, 300);
        let truth = detectable(spread, f64::from(most), 0.05, 0.9).ln_1p();
        let power = share_found(0.05, most, runs, 23, [truth, spread]);
        assert!((0.83..=0.97).contains(&power), "{power}");
    }

    #[test]
    fn looks_thin_out_and_end_with_the_last_unit() {
        let looks = looks(333);
        assert_eq!((looks[0], looks[14], *looks.last().unwrap()), (6, 20, 333));
        assert!(looks.len() < 90, "{}", looks.len());
        assert!(looks.windows(2).all(|two| next_look(two[0]) == two[1] || two[1] == 333));
        assert_eq!((last_look(2), last_look(3), last_look(41), next_look(41)), (None, Some(3), Some(40), 42));
    }

    #[test]
    fn the_fewest_units_follow_from_the_exact_distribution() {
        assert_eq!((fewest(0.05), fewest(0.01), fewest(0.001)), (6, 8, 11));
    }
}
