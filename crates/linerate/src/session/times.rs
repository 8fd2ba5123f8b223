//! How long the steps of a run take.

use super::Session;
use crate::measurement::{PlannedSuite, Run, Sides};
use crate::plan::{self, Step};
use crate::timings::{Timings, guess};

impl Session {
    /// How many suites follow this one, and the most seconds that they take, without their builds.
    pub(super) fn later(&self, suite: usize) -> (usize, f64) {
        let last = self.run.suites.len() - 1;
        let seconds = match self.run.budget {
            Some(_) => self.questions().seconds_left(last) - self.questions().seconds_left(suite),
            None => {
                let after = suite + 1..=last;
                let steps: Vec<Step> = after.flat_map(|index| plan::order_of(&self.run, index)).collect();
                seconds_in_all(&self.run, &self.timings, &steps)[1]
            }
        };
        (last - suite, seconds)
    }
}

/// Seconds that the steps take, if earlier trials of every cell are known.
pub(super) fn seconds(run: &Run, timings: &Timings, steps: &[Step]) -> Option<f64> {
    let time = |step: &Step| {
        let suite = &run.suites[step.suite];
        match step.sides {
            Sides::One(cell) => timings.seconds(suite, cell),
            _ => Some(timings.seconds_of_pair(suite, step.sides)),
        }
    };
    steps.iter().map(time).sum()
}

/// Seconds of a step; `Err` is a guess: there is no earlier trial of the cell.
pub fn seconds_or_guess(run: &Run, timings: &Timings, step: &Step) -> Result<f64, f64> {
    let known = seconds(run, timings, std::slice::from_ref(step));
    known.ok_or_else(|| guess(&run.suites[step.suite], step.sides.cell()))
}

/// Seconds of these steps of a run: the rounds, and at most, with the units that may follow in their suites.
pub fn seconds_in_all(run: &Run, timings: &Timings, steps: &[Step]) -> [f64; 2] {
    let of_suite = |(index, suite): (usize, &PlannedSuite)| {
        let mut of_suite = steps.iter().filter(|step| step.suite == index).peekable();
        if of_suite.peek().is_none() {
            return [0.0; 2];
        }
        let time = |step: &Step| seconds_or_guess(run, timings, step).unwrap_or_else(|guess| guess);
        let rounds: f64 = of_suite.map(time).sum();
        [rounds, suite.precision.map_or(rounds, |precision| rounds.max(precision.time.as_secs_f64()))]
    };
    let sum = |[low, high]: [f64; 2], [rounds, most]: [f64; 2]| [low + rounds, high + most];
    run.suites.iter().enumerate().map(of_suite).fold([0.0; 2], sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Sharing;
    use crate::plan::Choice;
    use crate::suite;
    use crate::system::Registry;
    use std::path::Path;

    /// Seconds of a unit whose load alternates, with the start of its systems, on two CPUs.
    const ALTERNATING: f64 = 2.4;
    const QUARTER_OF_AN_HOUR: f64 = 900.0;

    #[test]
    fn a_run_in_full_fits_into_a_quarter_of_an_hour_and_has_a_competitor_in_each_table() {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let timings = Timings::default();
        for suite in suite::load_all(&home).unwrap().iter().filter(|suite| !suite.file.apart) {
            let suites = plan::suites(std::slice::from_ref(suite), &registry, &Choice::default()).unwrap();
            let run = Run { suites, ..Run::default() };
            let time = |step: &Step| {
                let alternates = run.suites[0].cells[step.sides.cell()].pairs == Some(Sharing::Alternating);
                match step.sides.beside() {
                    Some(_) if alternates => ALTERNATING,
                    _ => seconds_or_guess(&run, &timings, step).unwrap_or_else(|guess| guess),
                }
            };
            let steps = plan::order(&run);
            let seconds: f64 = steps.iter().map(time).sum();
            assert!(seconds < QUARTER_OF_AN_HOUR, "{}: {seconds} s", suite.name);
            let most = run.suites[0].precision.unwrap().time.as_secs_f64();
            assert!(most < QUARTER_OF_AN_HOUR, "{}: {most} s", suite.name);
            assert!(run.suites[0].tables.iter().all(|table| table.cells.len() > 1), "{}", suite.name);
        }
    }
}
