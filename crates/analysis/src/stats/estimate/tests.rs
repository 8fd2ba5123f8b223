//! Against cases by hand, against resampling, and against known truth: the coverage of the interval.

use super::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

#[test]
fn medians_by_hand() {
    assert_eq!(median([]), None);
    assert_eq!(median([3.0]), Some(3.0));
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median([f64::MAX, f64::MAX]), Some(f64::MAX));
}

#[test]
fn the_interval_of_few_values_is_their_range() {
    let five = Estimate::from_values([5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
    assert_eq!((five.median, five.interval, five.is_sure()), (3.0, [1.0, 5.0], false));
    assert_eq!(Estimate::from_values([]), None);
    assert_eq!(Estimate::from_values([f64::NAN, f64::INFINITY]), None);
}

/// Student's quantiles, from tables: t(0.975) is 2.5706 for 5 and 2.2622 for 9 degrees of freedom.
#[test]
fn the_tails_are_expanded_as_hesterberg_specifies() {
    let by_hand = |n: f64, t: f64| Normal::standard().cdf(-(n / (n - 1.0)).sqrt() * t);
    assert!((expanded_tail(6) - by_hand(6.0, 2.570_582)).abs() < 1e-7);
    assert!((expanded_tail(10) - by_hand(10.0, 2.262_157)).abs() < 1e-7);
    assert!((expanded_tail(100_000) - 0.025).abs() < 1e-5);
}

/// The smallest of six values is the median of a resample in 0.9 % of all, more than the 0.24 % left outside:
/// the interval is the range, which order statistics say covers 96.9 %.
#[test]
fn six_values_give_their_range() {
    let six = Estimate::from_values([1.0, 2.0, 3.0, 4.0, 5.0, 60.0]).unwrap();
    assert!(six.is_sure());
    assert_eq!(six.median, 3.5);
    assert!(six.interval[0] <= 1.5 && six.interval[1] >= 32.5, "{six:?}");
}

#[test]
fn equal_values_have_an_interval_of_width_zero() {
    let same = Estimate::from_values([2.5; 9]).unwrap();
    assert_eq!((same.median, same.interval), (2.5, [2.5, 2.5]));
}

#[test]
fn resampling_converges_to_the_closed_form() {
    let mut rng = Pcg64::seed_from_u64(1);
    for n in [6_usize, 7, 10, 15] {
        let values: Vec<f64> = (0..n).map(|i| (i * i) as f64).collect();
        let exact = bootstrap_medians(&values);
        let draws = 40_000;
        let mut resampled: Vec<f64> = (0..draws)
            .map(|_| median((0..n).map(|_| values[rng.random_range(0..n)])).expect("n is not 0"))
            .collect();
        resampled.sort_by(f64::total_cmp);
        for at in [0.01, 0.1, 0.3, 0.5, 0.8, 0.99] {
            let value = resampled[(at * f64::from(draws)) as usize];
            let below: f64 = exact.iter().filter(|m| m.0 < value).map(|m| m.1).sum();
            let up_to: f64 = exact.iter().filter(|m| m.0 <= value).map(|m| m.1).sum();
            // Four standard errors of 40,000 draws are 0.01.
            assert!(below - 0.01 <= at && at <= up_to + 0.01, "n = {n}, at {at}: {below} to {up_to}");
        }
    }
}

#[test]
fn hundreds_of_values_neither_underflow_nor_take_long() {
    for n in [200_u32, 1_001, 3_000] {
        let estimate = Estimate::from_values((0..n).map(f64::from)).unwrap();
        let half_width = (estimate.interval[1] - estimate.interval[0]) / 2.0;
        // The median of uniform values has a standard error of range / (2 sqrt(n)).
        let expected = 1.96 * f64::from(n).sqrt() / 2.0;
        assert!((half_width / expected - 1.0).abs() < 0.1, "n = {n}: {half_width}, not {expected}");
    }
}

/// The interval must contain the true median in at least 95 % of cases; 93 % leaves room for the error of the
/// simulation (four standard errors of 2,000 samples are 1.9 %).
#[test]
fn the_interval_covers_the_true_median_in_95_percent_of_samples() {
    let mut rng = Pcg64::seed_from_u64(2);
    type Draw = fn(&mut Pcg64) -> f64;
    let shapes: [(&str, Draw, f64); 3] = [
        ("normal", |r| 10.0 + normal(r), 10.0),
        ("lognormal", |r| normal(r).exp(), 1.0),
        // One trial in ten is disturbed and takes far longer; the true median moves to Phi^-1(0.5 / 0.9).
        ("contaminated", |r| if r.random_bool(0.1) { 30.0 + normal(r) } else { 10.0 + normal(r) }, 10.139_71),
    ];
    for (shape, draw, truth) in shapes {
        for n in [6, 7, 10, 30] {
            let samples = 2_000;
            let covered = (0..samples)
                .filter(|_| !Estimate::from_values((0..n).map(|_| draw(&mut rng))).unwrap().excludes(truth))
                .count();
            let coverage = covered as f64 / f64::from(samples);
            assert!(coverage >= 0.93, "{shape}, n = {n}: {coverage}");
            assert!(coverage <= 0.995, "{shape}, n = {n}: {coverage}: the interval is too wide");
        }
    }
}

/// Box and Muller's method.
fn normal(rng: &mut impl Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
