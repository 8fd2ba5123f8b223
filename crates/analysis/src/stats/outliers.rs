//! Outlying trials, CPU steal and drift: flagged, never dropped. The median and its interval are robust
//! against them.

use super::ByRound;
use super::estimate::{FEWEST_ROUNDS, median};
use linerate_model::{CpuWindow, Measurement};

/// A modified z-score above this is an outlier (Iglewicz and Hoaglin 1993, "How to Detect and Handle
/// Outliers").
const MODIFIED_Z: f64 = 3.5;
/// Makes the median absolute deviation of normal values their standard deviation: 1 / Phi^-1(3/4).
const SIGMA_PER_MAD: f64 = 1.4826;
/// Sigma by the mean absolute deviation, sqrt(pi / 2): used where more than half of the values are equal.
const SIGMA_PER_MEAN_DEVIATION: f64 = 1.2533;
/// A trial that lost more than this share of its CPUs' time to the hypervisor's other guests is flagged. Half
/// of it is common on shared hosts; twice as much exceeds most differences of interest.
pub(crate) const STEAL: f64 = 0.05;
/// Two-sided 1 % of the normal distribution: with dozens of cells in a run, 5 % would raise a false flag in
/// each run.
const DRIFT_Z: f64 = 2.576;
/// Fewer rounds than this, and even a strictly rising series stays below [`DRIFT_Z`] or its distribution is
/// not yet normal.
const DRIFT_ROUNDS: usize = 8;

/// The rounds with outlying values.
pub fn outliers(values: &ByRound) -> Vec<u32> {
    if values.len() < FEWEST_ROUNDS as usize {
        return Vec::new();
    }
    let Some(middle) = median(values.values().copied()) else { return Vec::new() };
    let deviations: Vec<f64> = values.values().map(|v| (v - middle).abs()).collect();
    let sigma = match median(deviations.iter().copied()) {
        Some(mad) if mad > 0.0 => SIGMA_PER_MAD * mad,
        _ => SIGMA_PER_MEAN_DEVIATION * deviations.iter().sum::<f64>() / deviations.len() as f64,
    };
    let is_outlier = |(_, value): &(&u32, &f64)| (*value - middle).abs() > MODIFIED_Z * sigma;
    values.iter().filter(is_outlier).map(|(round, _)| *round).collect()
}

/// The share of the lab's CPU time that the hypervisor gave to others; `None` without times of CPUs.
pub fn stolen<'m>(measurements: impl IntoIterator<Item = &'m Measurement>) -> Option<f64> {
    let cpus: Vec<&CpuWindow> = measurements.into_iter().flat_map(|measurement| &measurement.cpus).collect();
    let sum = |part: fn(&CpuWindow) -> u64| cpus.iter().map(|cpu| part(cpu) as f64).sum::<f64>();
    let share = sum(|cpu| cpu.steal.0) / sum(|cpu| cpu.total.0);
    share.is_finite().then_some(share)
}

/// The stolen share of one trial, if it is more than 5 %.
pub fn much_stolen(measurement: &Measurement) -> Option<f64> {
    stolen([measurement]).filter(|share| *share > STEAL)
}

/// Whether the values rise or fall with the rounds more steadily than chance does, and if so by which share
/// of the median from the first round to the last (test by Mann and Kendall, slope by Theil and Sen).
///
/// Drift changes the medians in the table; paired ratios are not affected.
pub fn drift(values: &ByRound) -> Option<f64> {
    let (rounds, values): (Vec<u32>, Vec<f64>) = values.iter().map(|(r, v)| (*r, *v)).unzip();
    let n = values.len();
    let middle = median(values.iter().copied())?;
    if n < DRIFT_ROUNDS || middle == 0.0 {
        return None;
    }
    let pairs = || (0..n).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let sign = |(a, b): (usize, usize)| values[b].partial_cmp(&values[a]).map_or(0, |order| order as i32);
    let rises: i32 = pairs().map(sign).sum();
    let count = n as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    // One less, because the score moves in steps of two (continuity).
    let z = (f64::from(rises.abs()) - 1.0) / deviation;
    if z <= DRIFT_Z {
        return None;
    }
    let slope = median(pairs().map(|(a, b)| (values[b] - values[a]) / f64::from(rounds[b] - rounds[a])))?;
    Some(slope * f64::from(rounds[n - 1] - rounds[0]) / middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;

    const NONE: [u32; 0] = [];

    fn rounds(values: &[f64]) -> ByRound {
        (1..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn a_disturbed_trial_is_found_by_its_round() {
        assert_eq!(outliers(&rounds(&[1.0, 1.02, 0.98, 1.01, 3.0, 0.99, 1.03])), [5]);
        assert_eq!(outliers(&rounds(&[1.0, 1.02, 0.98, 1.01, 1.04, 0.99])), NONE);
    }

    #[test]
    fn values_other_than_the_common_one_are_not_all_outliers() {
        assert_eq!(outliers(&rounds(&[1.0; 8])), NONE);
        assert_eq!(outliers(&rounds(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0])), [8]);
        assert_eq!(outliers(&rounds(&[1.0, 1.0, 1.0, 1.0, 1.1, 0.9, 1.1])), NONE);
    }

    #[test]
    fn few_values_have_no_outliers() {
        assert_eq!(outliers(&rounds(&[1.0, 1.0, 1.0, 1.0, 100.0])), NONE);
        assert_eq!(outliers(&ByRound::new()), NONE);
    }

    #[test]
    fn steal_above_five_percent_is_returned() {
        let with = |steal| Measurement {
            cpus: vec![CpuWindow { total: Nanos(1_000), steal: Nanos(steal), ..CpuWindow::default() }; 2],
            ..Measurement::default()
        };
        assert_eq!(much_stolen(&with(50)), None);
        assert_eq!(much_stolen(&with(60)), Some(0.06));
        assert_eq!(much_stolen(&Measurement::default()), None);
        assert_eq!(stolen([&with(20), &with(60)]), Some(0.04));
    }

    #[test]
    fn steady_rise_is_drift_and_noise_is_not() {
        let rising = drift(&rounds(&[1.0, 1.01, 1.02, 1.04, 1.03, 1.05, 1.06, 1.07, 1.08])).unwrap();
        assert!((rising - 0.08).abs() < 0.01, "{rising}");
        assert_eq!(drift(&rounds(&[1.0, 1.05, 0.99, 1.04, 1.01, 1.03, 0.98, 1.02, 1.0])), None);
        assert_eq!(drift(&rounds(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])), None);
    }
}
