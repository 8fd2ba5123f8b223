//! Further units of tables: for ratios whose interval is wider than the precision.

use super::{Made, Need};
use crate::judge::{self, Entry, SortedJournal, undisturbed};
use crate::stats::duet::{is_busy_loop, is_of_windows, log_ratio, log_ratio_of_loops};
use crate::stats::estimate::FEWEST_ROUNDS;
use crate::stats::ratio::RatioEstimate;
use crate::stats::verdict::MARGIN;
use linerate_model::{Duet, PlannedCell, PlannedPair, PlannedSuite, Trial};

/// The half-width of a budget without a precision of its own: a ratio of 1 is then within the margin.
const HALF_WIDTH: f64 = MARGIN / 3.0;
/// A wide pair has at least this part of the units that the wide pairs of its suite have on average: else
/// those that lack the fewest would get all, and the widest none.
const LEAST_SHARE: f64 = 0.5;
/// The controls of a suite get no further unit while they have this part of its units: they decide about no
/// row, and their interval is narrow early, since nothing but the noise is in it.
const CONTROL_SHARE: f64 = 0.2;

impl Made<'_> {
    /// The wide pairs that are behind their share, and then, up to a half of all, those that lack the fewest
    /// units, so that more become narrow within the time.
    pub(super) fn of_tables(self, index: usize) -> Vec<Need> {
        let suite = &self.run.suites[index];
        let precision = suite.precision.map(|precision| precision.half_width);
        let goal = precision.or(self.run.budget.map(|_| HALF_WIDTH));
        let (Some(goal), left) = (goal, self.seconds_left(index)) else { return Vec::new() };
        let mut wide: Vec<Wide> = self.wide_pairs(index, goal);
        if self.run.budget.is_some() {
            wide.extend(self.wide_solos(suite, goal));
        }
        wide.sort_by(|a, b| a.lacks.total_cmp(&b.lacks));
        let most = wide.len().div_ceil(2);
        let made: Vec<f64> = wide.iter().filter_map(|wide| wide.units).map(f64::from).collect();
        let least = LEAST_SHARE * made.iter().sum::<f64>() / made.len() as f64;
        let is_behind = |wide: &Wide| wide.units.is_some_and(|units| f64::from(units) < least);
        let (behind, others): (Vec<Wide>, Vec<Wide>) = wide.into_iter().partition(is_behind);
        let left_to_others = most.saturating_sub(behind.len());
        let chosen = behind.into_iter().chain(others.into_iter().take(left_to_others));
        let (mut needs, mut seconds, times) = (Vec::new(), 0.0, self.mean_times(index));
        for need in chosen.flat_map(|wide| wide.needs) {
            if seconds < left && !needs.contains(&need) {
                seconds += times.get(&need.id()).copied().unwrap_or(0.0);
                needs.push(need);
            }
        }
        needs
    }

    fn wide_pairs(self, index: usize, goal: f64) -> Vec<Wide> {
        let suite = &self.run.suites[index];
        let of_pair = |pair: &PlannedPair| {
            let units: Vec<&Duet> = self.units(suite).filter(|duet| duet.cells == pair.cells).collect();
            let mut tables = suite.tables.iter().filter(|table| is_of_windows(table.metric));
            let metric =
                tables.find(|table| pair.cells.iter().all(|cell| table.cells.contains(cell)))?.metric;
            let (counted, too_busy) = undisturbed(units.iter().copied());
            let log = if self.are_busy_loops(suite, pair) { log_ratio_of_loops } else { log_ratio };
            let estimate = RatioEstimate::from_logs(counted.iter().filter_map(|duet| log(duet, metric)))?;
            let lacks = match too_busy {
                Some(busy) => f64::from(busy.lacks),
                None => lacking(estimate.half_width()?, goal, estimate.n)?,
            };
            // Half of the units failed: more time buys little.
            let is_worth_it = estimate.n * 2 >= counted.len() as u32;
            let unit = units.iter().map(|duet| duet.unit).max().unwrap_or(0) + 1;
            let made = Some(units.len() as u32);
            is_worth_it.then(|| Wide { lacks, units: made, needs: vec![Need::for_unit(pair, unit)] })
        };
        let is_control = |pair: &&PlannedPair| pair.cells[0] == pair.cells[1];
        let of_controls = self.units(suite).filter(|duet| duet.cells[0] == duet.cells[1]).count() as f64;
        let has_control_enough = of_controls >= CONTROL_SHARE * self.units(suite).count() as f64;
        let is_served = |pair: &&PlannedPair| !(has_control_enough && is_control(pair));
        self.pairs(index).filter(is_served).filter_map(of_pair).collect()
    }

    fn are_busy_loops(self, suite: &PlannedSuite, pair: &PlannedPair) -> bool {
        let is_busy = |cell: &PlannedCell| {
            let of_cell =
                |trial: &&Trial| trial.suite == suite.name && trial.cell == cell.id && !trial.warmup;
            let alone = self.trials.iter().filter(of_cell);
            is_busy_loop(cell, alone.filter_map(|trial| trial.measurement.as_ref()))
        };
        suite.cells.iter().filter(|cell| pair.cells.contains(&cell.id)).all(is_busy)
    }

    /// Ratios and errors by the first metric of each table that duets do not have.
    fn wide_solos(self, suite: &PlannedSuite, goal: f64) -> Vec<Wide> {
        let rounds = |cell: &str| {
            let of_cell = |trial: &&Trial| trial.suite == suite.name && trial.cell == cell && !trial.warmup;
            self.trials.iter().filter(of_cell).map(|trial| trial.round).max().unwrap_or(0)
        };
        let wide = |cells: Vec<&String>, ratio: f64, [low, high]: [f64; 2], n: u32| {
            let lacks = lacking((high - low) / 2.0 / ratio, goal, n)?;
            let need = |cell: &String| Need { unit: rounds(cell) + 1, cell: cell.clone(), against: None };
            Some(Wide { lacks, units: None, needs: cells.into_iter().map(need).collect() })
        };
        let of_entry = |entry: &Entry| {
            let compared = entry.vs_baseline.as_ref().filter(|compared| compared.duet.is_none());
            let ratio = compared.and_then(|c| wide(vec![&entry.id, &c.with], c.ratio, c.ci95, c.n));
            let error = entry.vs_truth.as_ref();
            [ratio, error.and_then(|found| wide(vec![&entry.id], found.ratio, found.ci95, found.n))]
        };
        let journal = SortedJournal::sort(self.run, self.trials, self.duets);
        let tables = judge::suite(suite, &journal, None).tables;
        let entries = tables
            .iter()
            .flat_map(|table| table.entries.iter().filter(|entry| entry.metric == table.planned.metric));
        entries.flat_map(of_entry).flatten().collect()
    }
}

/// A ratio whose interval is too wide.
struct Wide {
    lacks: f64,
    /// Those of a pair that are made; `None` of a ratio from solo trials.
    units: Option<u32>,
    needs: Vec<Need>,
}

/// The number of units that a ratio lacks: a half-width is inverse to the root of their number. `None` if it
/// is narrow, or has no interval.
fn lacking(half_width: f64, goal: f64, n: u32) -> Option<f64> {
    let excess = half_width / goal;
    (n >= FEWEST_ROUNDS && excess > 1.0).then(|| f64::from(n) * (excess * excess - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt, SeedableRng};
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
            let mut looks =
                (first..=most).map(|n| RatioEstimate::from_logs(logs[..n].iter().copied()).unwrap());
            let is_end = |look: &RatioEstimate| {
                look.n == most as u32
                    || look.half_width().is_some_and(|half| lacking(half, 0.02, look.n).is_none())
            };
            let end = looks.find(is_end).unwrap();
            end.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
        });
        let rate = wrong.count() as f64 / f64::from(runs);
        assert!(rate <= 0.078, "{rate}");
    }

    #[test]
    fn a_ratio_lacks_units_by_the_square_of_its_width_and_nothing_once_it_is_narrow() {
        assert_eq!(lacking(0.04, 0.02, 10), Some(30.0));
        assert_eq!((lacking(0.02, 0.02, 10), lacking(0.04, 0.02, 5)), (None, None));
    }
}
