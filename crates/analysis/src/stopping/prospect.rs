//! What the budget of a comparison can find.

use super::{CONTROL_ROUNDS, Made, mean};
use crate::comparison::judge;
use crate::measurement::{Duet, Trial};

/// What is known about a comparison before its units are made.
#[derive(Debug)]
pub struct Prospect {
    /// Units of each cell in the budget.
    pub units: f64,
    pub pairs: usize,
    /// Readings of the family.
    pub tests: usize,
    /// Seconds, also of one unit.
    pub budget: f64,
    pub unit: f64,
    /// `None`: not known yet.
    pub spread: Option<f64>,
}

impl Made<'_> {
    /// What the time of the budget finds, less that of the `solos` still to be made. `None` without a
    /// comparison, and before the first unit of the warm-up.
    #[must_use]
    pub fn prospect(self, suite: usize, solos: usize) -> Option<Prospect> {
        let judged = judge(self.run, self.trials, self.duets).filter(|_| !self.duets.is_empty())?;
        let made = self.units(&self.run.suites[suite]).map(|duet| duet.unit).max().unwrap_or(0);
        let pairs = judged.pairs.len();
        let unit = mean(self.duets.iter().map(Duet::time));
        let solos = solos as f64 * mean(self.trials.iter().map(Trial::time));
        let time = (self.seconds_left(suite) - solos).max(0.0);
        let in_round = pairs as f64 + 1.0 / f64::from(CONTROL_ROUNDS);
        Some(Prospect {
            units: f64::from(made) + time / (unit * in_round),
            pairs,
            tests: judged.tests,
            budget: self.run.budget.map_or(0.0, |budget| budget.as_secs_f64()),
            unit,
            spread: judged.spread,
        })
    }
}
