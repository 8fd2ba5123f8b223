//! A comparison of builds goes on until every pair is decided, or its budget is used.

use crate::comparison::{FIRST_LOOK, JudgedPair, Judgement, Prospect, judge};
use crate::measurement::{ComparisonKind, Duet, Run, Trial};
use crate::plan::Step;
use crate::stats::sequential::is_look;
use linerate_contract::Nanos;
use std::collections::BTreeSet;

/// The part of the budget that the second series of suspects may take beyond it.
const FOR_CONFIRMATION: f64 = 0.5;

/// What further rounds are for.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    round: u32,
    is_announced: bool,
    /// What the budget can find, until it is taken.
    pub(super) prospect: Option<Prospect>,
    pairs: usize,
    /// Ids of the pairs that are done; their units are left out.
    decided: BTreeSet<String>,
    /// Those that wait for their second series.
    suspects: BTreeSet<String>,
    /// The budget is used, and only suspects go on.
    is_late: bool,
    is_over: bool,
}

impl Sequence {
    /// True if the first of the steps left is not worth its time any more. A round that has begun is
    /// finished.
    pub(super) fn skips(&mut self, run: &Run, trials: &[Trial], duets: &[Duet], left: &[Step]) -> bool {
        let step = &left[0];
        if step.warmup {
            return false;
        }
        if step.round > self.round && !self.is_over {
            self.begin(step.round, run, trials, duets);
            self.is_announced &= step.round != FIRST_LOOK + 1;
        }
        // Before the first unit that counts, when a solo trial of each cell was made; and once more by the
        // spread of the first units.
        if !self.is_announced && step.against.is_some() {
            self.is_announced = true;
            self.announce(run, trials, duets, left);
        }
        let is_pair = step.against.is_some_and(|other| other != step.cell);
        let is_done = is_pair && self.decided.contains(&step.id);
        self.is_over || is_done || self.is_late && !self.suspects.contains(&step.id)
    }

    fn begin(&mut self, round: u32, run: &Run, trials: &[Trial], duets: &[Duet]) {
        self.round = round;
        let budget = run.budget.map_or(0.0, |budget| budget.as_secs_f64());
        if is_look(round - 1)
            && let Some(judgement) = judge(run, trials, duets)
        {
            self.decided = ids(&judgement, JudgedPair::is_decided);
            self.suspects = ids(&judgement, JudgedPair::is_suspect);
            self.pairs = judgement.pairs.len();
            self.is_over = self.decided.len() == self.pairs;
        }
        let open = self.pairs.saturating_sub(self.decided.len());
        let next = used(trials, duets) + mean(duets.iter().map(Duet::time)) * open as f64;
        if round > 1 && next > budget {
            let is_gate = run.comparison.as_ref().is_some_and(|plan| plan.kind == ComparisonKind::Gate);
            let has_time = is_gate && next <= budget * (1.0 + FOR_CONFIRMATION);
            self.is_late = true;
            self.is_over |= self.suspects.is_empty() || !has_time;
        }
    }

    /// What can be found in the time of the budget.
    fn announce(&mut self, run: &Run, trials: &[Trial], duets: &[Duet], left: &[Step]) {
        let Some(judgement) = judge(run, trials, duets).filter(|_| !duets.is_empty()) else { return };
        self.pairs = judgement.pairs.len();
        let budget = run.budget.map_or(0.0, |budget| budget.as_secs_f64());
        let solos = left.iter().filter(|step| step.against.is_none()).count() as f64;
        let solos = solos * mean(trials.iter().map(Trial::time));
        let time = (budget - used(trials, duets) - solos).max(0.0);
        let unit = mean(duets.iter().map(Duet::time));
        // Controls included.
        let rounds = left.last().map_or(0, |last| last.round) - self.round + 1;
        let in_round = left.iter().filter(|step| step.against.is_some()).count() as f64 / f64::from(rounds);
        let units = f64::from(self.round - 1) + time / (unit * in_round);
        let spread = judgement.spread.filter(|_| self.round > 1);
        self.prospect = Some(Prospect { units, pairs: self.pairs, budget, unit, spread });
    }
}

fn ids(judgement: &Judgement, is_chosen: fn(&JudgedPair) -> bool) -> BTreeSet<String> {
    judgement.pairs.iter().filter(|pair| is_chosen(pair)).map(|pair| pair.id()).collect()
}

fn mean(times: impl ExactSizeIterator<Item = Nanos>) -> f64 {
    let n = times.len().max(1) as f64;
    times.map(Nanos::as_secs_f64).sum::<f64>() / n
}

fn used(trials: &[Trial], duets: &[Duet]) -> f64 {
    let of_trials = trials.iter().map(Trial::time);
    of_trials.chain(duets.iter().map(Duet::time)).map(|time| time.as_secs_f64()).sum()
}
