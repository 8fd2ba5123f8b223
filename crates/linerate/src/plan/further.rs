//! Units after the rounds of a suite: of pairs whose intervals are wider than the suite asks for.
//!
//! They are added by the width of an interval alone, never by where it lies, so that no verdict is favoured
//! (Chow and Robbins, "On the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals", 1965).

use super::{Slot, Step, index_of};
use crate::measurement::{Duet, PlannedPair, PlannedSuite, Precision, Run};
use crate::stats::duet::{is_of_windows, log_ratio};
use crate::stats::ratio::RatioEstimate;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// The next unit of those pairs that need the fewest, half of all such pairs, in random order: so more pairs
/// become narrow within the time. None once all are, or where the suite asks for no precision.
#[must_use]
pub fn further(run: &Run, index: usize, duets: &[Duet]) -> Vec<Step> {
    let suite = &run.suites[index];
    let Some(precision) = suite.precision else { return Vec::new() };
    let pairs = suite.pairs.iter().filter(|pair| pair.no_duet.is_none());
    let mut wide: Vec<(f64, Step)> =
        pairs.filter_map(|pair| next_unit(suite, index, pair, precision, duets)).collect();
    wide.sort_by(|a, b| a.0.total_cmp(&b.0));
    wide.truncate(wide.len().div_ceil(2));
    let mut steps: Vec<Step> = wide.into_iter().map(|(_, step)| step).collect();
    let made = duets.len() as u64;
    steps.shuffle(&mut Pcg64Mcg::seed_from_u64(run.seed.wrapping_add(index as u64) ^ made << 32));
    steps
}

/// The next unit of a pair, and the number of units that it lacks: a half-width is inverse to the root of
/// their number.
fn next_unit(
    suite: &PlannedSuite,
    index: usize,
    pair: &PlannedPair,
    precision: Precision,
    duets: &[Duet],
) -> Option<(f64, Step)> {
    let id = pair.id();
    let of_pair = |duet: &&Duet| duet.suite == suite.name && !duet.warmup && duet.id() == id;
    let units: Vec<&Duet> = duets.iter().filter(of_pair).collect();
    let mut tables = suite.tables.iter().filter(|table| is_of_windows(table.metric));
    let metric = tables.find(|table| pair.cells.iter().all(|cell| table.cells.contains(cell)))?.metric;
    let logs: Vec<f64> = units.iter().filter_map(|duet| log_ratio(duet, metric)).collect();
    let estimate = RatioEstimate::of(logs)?;
    let excess = estimate.half_width()? / precision.half_width;
    // Half of the units failed: more time buys little.
    if excess <= 1.0 || estimate.n * 2 < units.len() as u32 {
        return None;
    }
    let [cell, other] = [index_of(suite, &pair.cells[0])?, index_of(suite, &pair.cells[1])?];
    let slot = Slot { cell, against: Some(other), probe: None, id, repeat: 1 };
    let unit = units.iter().map(|duet| duet.unit).max().unwrap_or(0) + 1;
    Some((f64::from(estimate.n) * (excess * excess - 1.0), slot.step(index, suite.rounds + 1, unit, false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt};
    use rand_pcg::Pcg64;

    fn noise(random: &mut impl Rng) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    /// 5 %, and four standard errors of 1,000 runs on top.
    #[test]
    fn intervals_that_end_by_their_width_contain_the_truth_as_often_as_they_should() {
        let mut random = Pcg64::seed_from_u64(5);
        let (runs, first, most) = (1_000, 9, 60);
        let wrong = (0..runs).filter(|_| {
            let logs: Vec<f64> = (0..most).map(|_| 0.05 * noise(&mut random)).collect();
            let mut looks = (first..=most).map(|n| RatioEstimate::of(logs[..n].iter().copied()).unwrap());
            let is_end = |look: &RatioEstimate| {
                look.n == most as u32 || look.half_width().is_some_and(|half| half <= 0.02)
            };
            let end = looks.find(is_end).unwrap();
            end.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
        });
        let rate = wrong.count() as f64 / f64::from(runs);
        assert!(rate <= 0.078, "{rate}");
    }
}
