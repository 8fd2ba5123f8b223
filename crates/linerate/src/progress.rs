//! Progress of a run on stderr: a bar with the time left on a terminal, a line for each round elsewhere.

use crate::measurement::PlannedSuite;
use crate::plan::Step;
use crate::printable::printable;
use crate::timings::whole_seconds;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt;
use std::io::IsTerminal;

/// A line to the user on stderr.
#[allow(clippy::print_stderr, reason = "notes go to stderr, and this is the place for them")]
pub fn note(line: &str) {
    eprintln!("{}", printable(line));
}

/// The time that is left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    /// The seconds that the rest of the suite takes if that is known, or the most that it may take.
    pub suite: Option<f64>,
    /// How many suites follow, and the most seconds that they take.
    pub later: (usize, f64),
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seconds) = self.suite {
            write!(f, ", {} left", whole_seconds(seconds))?;
        }
        match self.later {
            (0, _) => Ok(()),
            (1, seconds) => write!(f, "; 1 suite after it, at most {}", whole_seconds(seconds)),
            (suites, seconds) => write!(f, "; {suites} suites after it, at most {}", whole_seconds(seconds)),
        }
    }
}

/// Shows each trial before it starts.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    terminal: bool,
    last_round: Option<(usize, u32, bool)>,
}

impl Progress {
    /// A bar of `trials`, with `done` of them made already.
    pub fn new(trials: u64, done: u64, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal && !quiet { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(trials), target).with_position(done);
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}")
            .expect("the template is constant");
        bar.set_style(style);
        Self { bar, terminal: terminal || quiet, last_round: None }
    }

    /// More trials than planned.
    pub fn add(&self, trials: u64) {
        self.bar.inc_length(trials);
    }

    /// The next trial.
    pub fn next(&mut self, step: &Step, suite: &PlannedSuite, left: Left) {
        let part = match (step.warmup, suite.rounds) {
            (true, _) => format!("warm-up round {}", step.round),
            (false, rounds) if step.round > rounds => "more units of what is open".to_owned(),
            (false, rounds) => format!("round {} of {rounds}", step.round),
        };
        let message = format!("{}: {part}{left}: {}", suite.name, step.id);
        self.bar.set_message(printable(&message).into_owned());
        let round = Some((step.suite, step.round, step.warmup));
        if !self.terminal && self.last_round != round {
            self.print(&format!("{}: {part}{left}", suite.name));
        }
        self.last_round = round;
    }

    pub fn done(&self) {
        self.bar.inc(1);
    }

    /// A line of its own above the bar.
    pub fn print(&self, line: &str) {
        self.bar.suspend(|| note(line));
    }

    /// The same without the bar, which would be drawn over what it prints.
    pub fn without_bar<T, F: FnMut(T)>(&self, mut print: F) -> impl FnMut(T) + use<T, F> {
        let bar = self.bar.clone();
        move |value| bar.suspend(|| print(value))
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_suite_and_of_those_after_it() {
        let left = |suite, later| Left { suite, later }.to_string();
        assert_eq!(left(None, (0, 0.0)), "");
        assert_eq!(left(Some(61.2), (0, 0.0)), ", 1m 2s left");
        assert_eq!(left(Some(61.2), (1, 240.0)), ", 1m 2s left; 1 suite after it, at most 4m");
        assert_eq!(left(None, (7, 1680.0)), "; 7 suites after it, at most 28m");
    }
}
