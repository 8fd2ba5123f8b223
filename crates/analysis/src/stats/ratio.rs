//! The ratio of two cells from the log ratios of independent units.
//!
//! The estimate is Hodges and Lehmann's (1963): the median of the Walsh averages, the means of all pairs of
//! log ratios. The interval and the p value invert Wilcoxon's signed-rank test (1945). Its distribution is
//! exact where the order within a unit is random, whatever the shape of the noise. All three agree: p <=
//! 0.05 exactly where the 95 % interval excludes 1.

use super::estimate::standard_deviation;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Up to this number of units the distribution of the rank sum is computed exactly; above, the normal
/// approximation with continuity correction differs by at most 0.0014.
const MOST_EXACT: usize = 60;
/// Power of [`detectable`].
const POWER: f64 = 0.8;
/// Efficiency of the signed-rank test for normal noise, relative to the t test: 3 / pi.
pub(super) const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// A ratio with its intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioEstimate {
    pub ratio: f64,
    /// The smallest and the largest ratio of a unit.
    pub range: [f64; 2],
    /// `None` with fewer than 6 units.
    pub ci95: Option<[f64; 2]>,
    /// `None` with fewer than 5 units.
    pub ci90: Option<[f64; 2]>,
    /// Two-sided, of the hypothesis that the ratio is 1.
    pub p: f64,
    pub n: u32,
    /// |ratio - 1| that this number of units with this spread finds with a power of 80 % at the 5 % level;
    /// `None` with fewer than 6 units.
    pub detectable: Option<f64>,
}

impl RatioEstimate {
    /// From the log ratio of each unit; `None` without a finite one.
    pub fn from_logs(logs: impl IntoIterator<Item = f64>) -> Option<Self> {
        let logs: Vec<f64> = logs.into_iter().filter(|log| log.is_finite()).collect();
        let averages = WalshAverages::from_values(logs.clone());
        let last = averages.len().checked_sub(1)?;
        let ranks = SignedRanks::with_size(logs.len());
        let interval = |level: f64| averages.interval(&ranks, 1.0 - level);
        Some(Self {
            ratio: averages.median()?.exp(),
            range: [averages.at(0).exp(), averages.at(last).exp()],
            ci95: interval(0.95),
            ci90: interval(0.9),
            p: averages.p_value(&ranks),
            n: u32::try_from(logs.len()).unwrap_or(u32::MAX),
            detectable: interval(0.95).and_then(|_| detectable(&logs)),
        })
    }
}

impl RatioEstimate {
    /// Half the width of the 95 % interval, as a share of the ratio; `None` with fewer than 6 units.
    pub fn half_width(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| (high - low) / 2.0 / self.ratio)
    }
}

/// Hodges and Lehmann's estimate of the log ratio; `None` without any.
pub fn center(logs: &[f64]) -> Option<f64> {
    WalshAverages::from_values(logs.to_vec()).median()
}

/// The two-sided p value of log ratios with a median of 0; 1 without any.
pub fn p_value(logs: &[f64]) -> f64 {
    WalshAverages::from_values(logs.to_vec()).p_value(&SignedRanks::with_size(logs.len()))
}

/// The interval of the ratio that excludes 1 exactly where the p value is at most `alpha`; `None` for fewer
/// units than that needs.
pub fn interval(logs: &[f64], alpha: f64) -> Option<[f64; 2]> {
    WalshAverages::from_values(logs.to_vec()).interval(&SignedRanks::with_size(logs.len()), alpha)
}

/// The shift of differences, which are no logarithms: the estimate, and the interval that excludes 0 exactly
/// where the p value is at most `alpha`. `None` for fewer units than that needs.
pub fn shift(differences: &[f64], alpha: f64) -> Option<(f64, [f64; 2])> {
    let averages = WalshAverages::from_values(differences.to_vec());
    Some((averages.median()?, averages.bounds(&SignedRanks::with_size(differences.len()), alpha)?))
}

/// The mean of each pair of values, each value with itself included. There are n (n + 1) / 2 of them, so they
/// are counted and never listed: a run of a thousand rounds would have half a million for each ratio.
struct WalshAverages {
    sorted: Vec<f64>,
}

impl WalshAverages {
    fn from_values(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { sorted: values }
    }

    fn len(&self) -> usize {
        self.sorted.len() * (self.sorted.len() + 1) / 2
    }

    /// Hodges and Lehmann's estimate.
    fn median(&self) -> Option<f64> {
        let last = self.len().checked_sub(1)?;
        Some(f64::midpoint(self.at(last / 2), self.at(self.len() / 2)))
    }

    fn interval(&self, ranks: &SignedRanks, alpha: f64) -> Option<[f64; 2]> {
        self.bounds(ranks, alpha).map(|ends| ends.map(f64::exp))
    }

    fn bounds(&self, ranks: &SignedRanks, alpha: f64) -> Option<[f64; 2]> {
        let last = self.len().checked_sub(1)?;
        let cut = ranks.critical(alpha / 2.0)?;
        Some([self.at(cut), self.at(last - cut)])
    }

    fn p_value(&self, ranks: &SignedRanks) -> f64 {
        let negative = self.at_most((-0.0_f64).next_down());
        let positive = self.len() - self.at_most(0.0);
        // The rank sum's distribution is symmetric: P(W >= positive) = P(W <= all - positive).
        (2.0 * ranks.at_most(self.len() - positive.max(negative))).min(1.0)
    }

    /// The number of averages up to this value: one walk, since the partners of a larger value are fewer.
    fn at_most(&self, value: f64) -> usize {
        let (mut count, mut partners) = (0, self.sorted.len());
        for (i, own) in self.sorted.iter().enumerate() {
            while partners > 0 && f64::midpoint(*own, self.sorted[partners - 1]) > value {
                partners -= 1;
            }
            // Each pair once: partners from the value itself on.
            if partners <= i {
                break;
            }
            count += partners - i;
        }
        count
    }

    /// The average with this place in their order: the smallest number with more averages up to it. Found by
    /// halving the numbers between the extremes, of which there are less than 2^64.
    fn at(&self, place: usize) -> f64 {
        let (mut low, mut high) = (rank(self.sorted[0]), rank(self.sorted[self.sorted.len() - 1]));
        while low < high {
            // Rounded down, for numbers below 0 too.
            let middle = (low & high) + ((low ^ high) >> 1);
            if self.at_most(of_rank(middle)) > place {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        of_rank(low)
    }
}

/// The place of a number among all numbers: integers in the order of `f64::total_cmp`.
fn rank(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

fn of_rank(rank: i64) -> f64 {
    f64::from_bits((rank ^ ((rank >> 63).cast_unsigned() >> 1).cast_signed()).cast_unsigned())
}

/// The distribution of the signed-rank sum of n values with a median of 0.
enum SignedRanks {
    /// P(W <= w) by w.
    Exact(Vec<f64>),
    Approximate {
        mean: f64,
        deviation: f64,
    },
}

impl SignedRanks {
    fn with_size(n: usize) -> Self {
        let count = n as f64;
        if n > MOST_EXACT {
            let deviation = (count * (count + 1.0) * (2.0 * count + 1.0) / 24.0).sqrt();
            return Self::Approximate { mean: count * (count + 1.0) / 4.0, deviation };
        }
        // Each rank is in the sum with a probability of 1/2.
        let mut probability = vec![0.0; n * (n + 1) / 2 + 1];
        probability[0] = 1.0;
        for rank in 1..=n {
            for sum in (0..probability.len()).rev() {
                let with = if sum >= rank { probability[sum - rank] } else { 0.0 };
                probability[sum] = f64::midpoint(probability[sum], with);
            }
        }
        let mut sum = 0.0;
        probability.iter_mut().for_each(|p| {
            sum += *p;
            *p = sum;
        });
        Self::Exact(probability)
    }

    /// P(W <= w).
    fn at_most(&self, w: usize) -> f64 {
        match self {
            Self::Exact(sums) => sums[w.min(sums.len() - 1)],
            Self::Approximate { mean, deviation } => {
                Normal::standard().cdf((w as f64 + 0.5 - mean) / deviation)
            }
        }
    }

    /// The largest w with P(W <= w) <= `tail`.
    fn critical(&self, tail: f64) -> Option<usize> {
        match self {
            Self::Exact(sums) => sums.iter().take_while(|sum| **sum <= tail).count().checked_sub(1),
            Self::Approximate { mean, deviation } => {
                let w = mean - 0.5 + deviation * Normal::standard().inverse_cdf(tail);
                (w >= 0.0).then_some(w as usize)
            }
        }
    }
}

fn detectable(logs: &[f64]) -> Option<f64> {
    let n = logs.len() as f64;
    let deviation = standard_deviation(logs)?;
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    let quantiles = student.inverse_cdf(0.975) + student.inverse_cdf(POWER);
    let difference = (quantiles * deviation / (n * EFFICIENCY).sqrt()).exp() - 1.0;
    difference.is_finite().then_some(difference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    fn normal(rng: &mut impl Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Quantiles of the signed-rank distribution from tables: P(W <= 8 | n = 10) = 0.0244, P(W <= 0 | n =
    /// 6) = 1/64.
    #[test]
    fn the_distribution_equals_published_tables() {
        assert_eq!(SignedRanks::with_size(6).critical(0.025), Some(0));
        assert_eq!(SignedRanks::with_size(5).critical(0.025), None);
        assert_eq!(SignedRanks::with_size(5).critical(0.05), Some(0));
        assert_eq!(SignedRanks::with_size(4).critical(0.05), None);
        assert_eq!(SignedRanks::with_size(10).critical(0.025), Some(8));
        assert_eq!(SignedRanks::with_size(20).critical(0.025), Some(52));
        assert!((SignedRanks::with_size(10).at_most(8) - 25.0 / 1024.0).abs() < 1e-12);
    }

    #[test]
    fn the_approximation_continues_the_exact_distribution() {
        let exact = SignedRanks::with_size(MOST_EXACT);
        let n = MOST_EXACT as f64;
        let approximate = SignedRanks::Approximate {
            mean: n * (n + 1.0) / 4.0,
            deviation: (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(),
        };
        for w in 0..=MOST_EXACT * (MOST_EXACT + 1) / 2 {
            assert!((exact.at_most(w) - approximate.at_most(w)).abs() < 0.0014, "{w}");
        }
    }

    #[test]
    fn the_estimate_is_the_median_of_the_walsh_averages() {
        // The ten averages are 0, 1, 2, 2, 3, 4, 5, 6, 7, 10.
        let e = RatioEstimate::from_logs([0.0, 2.0, 4.0, 10.0]).unwrap();
        assert!((e.ratio.ln() - 3.5).abs() < 1e-12);
        assert_eq!((e.ci95, e.ci90, e.detectable, e.n), (None, None, None, 4));
        assert_eq!(RatioEstimate::from_logs([]), None);
        assert_eq!(RatioEstimate::from_logs([f64::NAN, f64::INFINITY]), None);
    }

    #[test]
    fn counted_averages_are_those_of_a_sorted_list() {
        let mut rng = Pcg64::seed_from_u64(12);
        for n in [1, 2, 3, 7, 20] {
            for digits in [1.0, 1e9] {
                let values: Vec<f64> = (0..n).map(|_| (digits * normal(&mut rng)).round() / digits).collect();
                let pairs = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
                let mut listed: Vec<f64> = pairs.map(|(i, j)| f64::midpoint(values[i], values[j])).collect();
                listed.sort_by(f64::total_cmp);
                let counted = WalshAverages::from_values(values);
                let each = (0..counted.len()).map(|place| counted.at(place));
                assert!(each.eq(listed.iter().copied()), "{listed:?}");
            }
        }
    }

    /// A list of all pairs would take 40 GB.
    #[test]
    fn a_hundred_thousand_units_have_a_ratio() {
        let e = RatioEstimate::from_logs((0..100_000).map(|i| f64::from(i % 1_000) / 1_000.0)).unwrap();
        assert!((e.ratio.ln() - 0.4995).abs() < 1e-9 && e.n == 100_000, "{e:?}");
    }

    #[test]
    fn equal_cells_have_a_ratio_of_one_and_no_significance() {
        let e = RatioEstimate::from_logs([0.0; 8]).unwrap();
        assert_eq!((e.ratio, e.ci95, e.p), (1.0, Some([1.0, 1.0]), 1.0));
    }

    #[test]
    fn six_units_on_one_side_are_the_fewest_for_significance() {
        let six = RatioEstimate::from_logs([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).unwrap();
        assert_eq!(six.p, 2.0 / 64.0);
        assert!(six.ci95.unwrap()[0] > 1.0);
        assert_eq!(RatioEstimate::from_logs([0.1, 0.2, 0.3, 0.4, 0.5]).unwrap().p, 2.0 / 32.0);
    }

    #[test]
    fn the_p_value_and_the_interval_agree_and_swapping_inverts_the_ratio() {
        let mut rng = Pcg64::seed_from_u64(5);
        for n in [6, 9, 14, 60, 61, 90] {
            for _ in 0..40 {
                let logs: Vec<f64> =
                    (0..n).map(|_| 0.4 / f64::from(n).sqrt() + 0.2 * normal(&mut rng)).collect();
                let e = RatioEstimate::from_logs(logs.iter().copied()).unwrap();
                let [low, high] = e.ci95.unwrap();
                assert_eq!(e.p <= 0.05, low > 1.0 || high < 1.0, "{e:?}");
                assert!(low <= e.ratio && e.ratio <= high);
                let swapped = RatioEstimate::from_logs(logs.iter().map(|log| -log)).unwrap();
                assert!((swapped.ratio * e.ratio - 1.0).abs() < 1e-12 && swapped.p == e.p);
                assert!((swapped.ci95.unwrap()[0] * high - 1.0).abs() < 1e-12);
            }
        }
    }

    /// Four standard errors of 4,000 samples are 1.4 %.
    #[test]
    fn the_intervals_cover_the_true_ratio_as_often_as_their_level() {
        type Draw = fn(&mut Pcg64) -> f64;
        let shapes: [(&str, Draw); 3] = [
            ("normal", |r| normal(r)),
            ("contaminated", |r| normal(r) * if r.random_bool(0.1) { 10.0 } else { 1.0 }),
            ("bimodal", |r| normal(r) + if r.random_bool(0.5) { 3.0 } else { -3.0 }),
        ];
        let mut rng = Pcg64::seed_from_u64(6);
        let samples = 2_000;
        for (shape, draw) in shapes {
            for n in [6, 7, 10, 20] {
                let (mut of_95, mut of_90) = (0, 0);
                for _ in 0..samples {
                    let e = RatioEstimate::from_logs((0..n).map(|_| 0.05 * draw(&mut rng) + 0.1)).unwrap();
                    let covers = |[low, high]: [f64; 2]| low <= 0.1_f64.exp() && 0.1_f64.exp() <= high;
                    of_95 += u32::from(covers(e.ci95.unwrap()));
                    of_90 += u32::from(covers(e.ci90.unwrap()));
                }
                let share = |covered: u32| f64::from(covered) / f64::from(samples);
                assert!((0.936..=0.985).contains(&share(of_95)), "{shape}, n = {n}: {}", share(of_95));
                assert!((0.881..=0.96).contains(&share(of_90)), "{shape}, n = {n}: {}", share(of_90));
            }
        }
    }

    #[test]
    fn the_detectable_difference_is_found_with_a_power_of_80_percent() {
        let mut rng = Pcg64::seed_from_u64(7);
        for n in [10, 20, 40] {
            let spread = 0.02;
            let runs = 1_000;
            let (mut sum, mut found) = (0.0, 0);
            for _ in 0..runs {
                let e = RatioEstimate::from_logs((0..n).map(|_| spread * normal(&mut rng))).unwrap();
                sum += e.detectable.unwrap();
            }
            let truth = (1.0 + sum / f64::from(runs)).ln();
            for _ in 0..runs {
                let e = RatioEstimate::from_logs((0..n).map(|_| truth + spread * normal(&mut rng))).unwrap();
                found += u32::from(e.p <= 0.05 && e.ratio > 1.0);
            }
            let power = f64::from(found) / f64::from(runs);
            assert!((0.76..=0.86).contains(&power), "n = {n}: {power}");
        }
    }
}
