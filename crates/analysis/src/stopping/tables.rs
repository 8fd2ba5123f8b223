//! Further units of tables: for ratios whose interval is wider than the precision.

use super::{Made, Need};
use crate::judge::{self, Entry, SortedJournal, undisturbed};
use crate::stats::duet::{is_busy_loop, is_of_windows, log_ratio, log_ratio_of_loops};
use crate::stats::estimate::FEWEST_ROUNDS;
use crate::stats::ratio::RatioEstimate;
use crate::stats::verdict::MARGIN;
use linerate_model::{Sides, Unit};

/// The half-width of a budget without a precision of its own: a ratio of 1 is then within the margin.
const HALF_WIDTH: f64 = MARGIN / 3.0;
/// A wide pair has at least this part of the units that the wide pairs of its suite have on average: else
/// those that lack the fewest would get all, and the widest none.
const LEAST_SHARE: f64 = 0.5;
/// The controls of a suite get no further unit while they have this part of its units: they decide about no
/// row, and their interval is narrow early, since nothing but the noise is in it.
const CONTROL_SHARE: f64 = 0.2;

impl<'a> Made<'a> {
    /// The wide pairs that are behind their share, and then, up to a half of all, those that lack the fewest
    /// units, so that more become narrow within the time.
    pub(super) fn of_tables(self, index: usize) -> Vec<Need> {
        let suite = &self.run.suites[index];
        let precision = suite.precision.map(|precision| precision.half_width);
        let goal = precision.or(self.run.budget.map(|_| HALF_WIDTH));
        let (Some(goal), left) = (goal, self.seconds_left(index)) else { return Vec::new() };
        let mut wide: Vec<Wide> = self.wide_pairs(index, goal);
        if self.run.budget.is_some() {
            wide.extend(self.wide_solos(index, goal));
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
                seconds += times.get(&need.sides).copied().unwrap_or(0.0);
                needs.push(need);
            }
        }
        needs
    }

    fn wide_pairs(self, index: usize, goal: f64) -> Vec<Wide> {
        let suite = &self.run.suites[index];
        let of_pair = |pair: [usize; 2]| {
            let sides = Sides::Two(pair);
            let units: Vec<&Unit> = self.pair_units(index).filter(|unit| unit.sides == sides).collect();
            let mut tables = suite.tables.iter().filter(|table| is_of_windows(table.metric));
            let metric = tables
                .find(|table| pair.iter().all(|cell| table.cells.contains(&suite.cells[*cell].id)))?
                .metric;
            let (counted, too_busy) = undisturbed(units.iter().copied());
            let log = if self.are_busy_loops(index, pair) { log_ratio_of_loops } else { log_ratio };
            let estimate = RatioEstimate::from_logs(counted.iter().filter_map(|unit| log(unit, metric)))?;
            let lacks = match too_busy {
                Some(busy) => f64::from(busy.lacks),
                None => lacking(estimate.half_width()?, goal, estimate.n)?,
            };
            // Half of the units failed: more time buys little.
            let is_worth_it = estimate.n * 2 >= counted.len() as u32;
            let number = units.iter().map(|unit| unit.number).max().unwrap_or(0) + 1;
            let made = Some(units.len() as u32);
            is_worth_it.then(|| Wide { lacks, units: made, needs: vec![Need { sides, number }] })
        };
        let of_controls = self.pair_units(index).filter(|unit| unit.sides.is_control()).count() as f64;
        let has_control_enough = of_controls >= CONTROL_SHARE * self.pair_units(index).count() as f64;
        let is_served = |[cell, other]: &[usize; 2]| !(has_control_enough && cell == other);
        self.pairs(index).filter(is_served).filter_map(of_pair).collect()
    }

    fn are_busy_loops(self, index: usize, pair: [usize; 2]) -> bool {
        pair.into_iter().all(|cell| {
            let alone = self.alone_of(index, cell);
            is_busy_loop(&self.run.suites[index].cells[cell], alone.filter_map(Unit::measurement))
        })
    }

    /// The measured units of a cell alone.
    fn alone_of(self, suite: usize, cell: usize) -> impl Iterator<Item = &'a Unit> {
        self.alone().filter(move |unit| (unit.suite, unit.sides.cell(), unit.warmup) == (suite, cell, false))
    }

    /// Ratios and errors by the first metric of each table that duets do not have.
    fn wide_solos(self, index: usize, goal: f64) -> Vec<Wide> {
        let suite = &self.run.suites[index];
        let need = |cell: usize| {
            let last = self.alone_of(index, cell).map(|unit| unit.number).max().unwrap_or(0);
            Need { sides: Sides::One(cell), number: last + 1 }
        };
        let wide = |cells: &[usize], ratio: f64, [low, high]: [f64; 2], n: u32| {
            let lacks = lacking((high - low) / 2.0 / ratio, goal, n)?;
            Some(Wide { lacks, units: None, needs: cells.iter().copied().map(need).collect() })
        };
        let of_entry = |entry: &Entry| {
            let compared = entry.vs_baseline.as_ref().filter(|compared| compared.duet.is_none());
            let cells = |with: &str| Some([entry.place, suite.place(with)?]);
            let ratio = compared.and_then(|c| wide(&cells(&c.with)?, c.ratio, c.ci95, c.n));
            let error = entry.vs_truth.as_ref();
            [ratio, error.and_then(|found| wide(&[entry.place], found.ratio, found.ci95, found.n))]
        };
        let journal = SortedJournal::sort(self.run, self.units);
        let tables = judge::suite(self.run, index, &journal, None).tables;
        let entries = tables
            .iter()
            .flat_map(|table| table.entries.iter().filter(|entry| entry.metric == table.planned.metric));
        entries.flat_map(of_entry).flatten().collect()
    }
}

/// A ratio whose interval is too wide.
struct Wide {
    lacks: f64,
    /// Units of a pair that are made; `None` of a ratio from solo trials.
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
