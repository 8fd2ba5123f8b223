//! `--budget`: after the first rounds, rounds are spent where a verdict is open, until the time is used.

use crate::measurement::{Duet, Run, Trial, pair_id};
use crate::plan::{Step, UNITS_PER_ROUND};
use crate::stats::accuracy::Accuracy;
use crate::stats::estimate::FEWEST_ROUNDS;
use crate::stats::verdict::Verdict;
use crate::summary::{self, Comparison, SortedJournal, TableSummary};
use std::collections::{BTreeMap, BTreeSet};

/// The most rounds that a budget can buy; an interval shrinks with the root of their number, so more would
/// buy little.
pub const MOST_ROUNDS: u32 = 1_000;

/// A difference is certain enough to stop for up to this p value. Verdicts are looked at after each round,
/// and a stop at the first p <= 0.05 would find differences between equal cells (docs/method.md).
const SURE: f64 = 0.002;

/// What the rounds of a suite are spent on.
#[derive(Debug, Default)]
pub struct Budget {
    round: u32,
    /// Ids of the steps of this round that are worth their time; `None`: all.
    wanted: Option<BTreeSet<String>>,
    /// No further round has time or purpose.
    is_over: bool,
}

impl Budget {
    /// True if the suite has no time for this step, or no need of it.
    ///
    /// Every suite of the run gets an equal share of the budget, and what the ones before it left. A round
    /// that has begun is finished.
    pub fn skips(&mut self, run: &Run, trials: &[Trial], duets: &[Duet], step: &Step) -> bool {
        if run.budget.is_none() || step.warmup {
            return false;
        }
        if step.round > self.round && !self.is_over {
            self.round = step.round;
            self.wanted = (step.round > FEWEST_ROUNDS).then(|| open(run, trials, duets, step.suite));
            let suite = &run.suites[step.suite].name;
            let has_begun = trials.iter().any(|t| t.suite == *suite && t.round == step.round && !t.warmup);
            let is_free = has_begun || step.round == 1;
            self.is_over = self.wanted.as_ref().is_some_and(BTreeSet::is_empty)
                || !is_free && !self.has_time(run, trials, duets, step.suite);
        }
        self.is_over || self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&step.id))
    }

    /// Whether the suite's share has room for the wanted steps, by their mean times so far.
    fn has_time(&self, run: &Run, trials: &[Trial], duets: &[Duet], suite: usize) -> bool {
        let budget = run.budget.map_or(0.0, |budget| budget.as_secs_f64());
        let share = budget * (suite + 1) as f64 / run.suites.len() as f64;
        let name = &run.suites[suite].name;
        // The share of a round that an entry makes.
        let unit = 1.0 / f64::from(UNITS_PER_ROUND);
        let of_trials = trials.iter().map(|t| (&t.suite, t.cell.clone(), t.warmup, t.time(), 1.0));
        let of_duets = duets.iter().map(|d| (&d.suite, d.id(), d.warmup, d.time(), unit));
        let (mut used, mut by_step) = (0.0, BTreeMap::<String, (f64, f64)>::new());
        for (of, id, is_warmup, time, part) in of_trials.chain(of_duets) {
            used += time.as_secs_f64();
            let is_wanted = self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&id));
            if of == name && !is_warmup && is_wanted {
                let (sum, count) = by_step.entry(id).or_default();
                (*sum, *count) = (*sum + time.as_secs_f64(), *count + part);
            }
        }
        used + by_step.values().map(|(sum, count)| sum / count).sum::<f64>() <= share
    }
}

/// Steps that an open verdict needs, each once, in how many tables it may be: duets where the ratio is that
/// of duets, else the solo trials of both cells. By the first metric of each table.
fn open(run: &Run, trials: &[Trial], duets: &[Duet], suite: usize) -> BTreeSet<String> {
    let summary = summary::suite(&run.suites[suite], &SortedJournal::of(run, trials, duets));
    summary.tables.iter().flat_map(open_in).collect()
}

fn open_in(table: &TableSummary<'_>) -> Vec<String> {
    // More units do not make a control pass.
    let is_void = table.aa.as_ref().is_some_and(Comparison::fails_as_control);
    let mut wanted = Vec::new();
    for cell in table.entries.iter().filter(|entry| entry.metric == table.planned.metric) {
        let is_worth_it = |compared: &&Comparison| is_open(compared.verdict, compared.p);
        if let Some(compared) = cell.vs_baseline.as_ref().filter(is_worth_it) {
            match compared.duet.as_ref().is_some_and(|duet| duet.has_rate) {
                true if is_void => {}
                true => wanted.push(pair_id([&cell.id, &compared.with])),
                false => wanted.extend([cell.id.clone(), compared.with.clone()]),
            }
        }
        if cell.vs_truth.as_ref().is_some_and(|found| found.accuracy == Accuracy::CannotTell) {
            wanted.push(cell.id.clone());
        }
    }
    let control = table.aa.as_ref().filter(|aa| !is_void && aa.verdict == Verdict::CannotTell);
    wanted.extend(control.map(|aa| pair_id([&aa.with, &aa.with])));
    wanted
}

fn is_open(verdict: Verdict, p: f64) -> bool {
    match verdict {
        Verdict::CannotTell => true,
        Verdict::WithinMargin | Verdict::NotSlower | Verdict::Failed | Verdict::Missing => false,
        Verdict::Faster | Verdict::Slower => p > SURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ratio::RatioEstimate;
    use crate::stats::verdict::{MARGIN, verdict};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// The share of runs in which equal cells get a difference, if rounds end at `is_open`.
    fn false_findings(is_open: impl Fn(Verdict, f64) -> bool) -> f64 {
        let (runs, most) = (200, 30);
        let mut rng = Pcg64::seed_from_u64(11);
        let found = (0..runs).filter(|_| {
            let noise = |rng: &mut Pcg64| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            let logs: Vec<f64> = (0..most).map(|_| 0.1 * noise(&mut rng)).collect();
            let look = |n: usize| {
                let estimate = RatioEstimate::of(logs[..n].iter().copied()).expect("there are units");
                (verdict(&estimate, MARGIN), estimate.p)
            };
            let mut looks = (FEWEST_ROUNDS as usize..=most).map(look);
            let end = looks.find(|(verdict, p)| !is_open(*verdict, *p)).unwrap_or_else(|| look(most));
            matches!(end.0, Verdict::Faster | Verdict::Slower)
        });
        found.count() as f64 / f64::from(runs)
    }

    #[test]
    fn equal_cells_rarely_get_a_difference_although_verdicts_are_looked_at_after_each_round() {
        let ours = false_findings(is_open);
        let naive = false_findings(|verdict, _| verdict == Verdict::CannotTell);
        assert!(ours <= 0.085 && naive > 0.12, "{ours} and {naive}");
    }
}
