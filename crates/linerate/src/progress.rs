//! Progress of a run on stderr: a bar with the time left on a terminal, a line every ten seconds elsewhere.

mod state;

use crate::measurement::{PlannedSuite, Run};
use crate::output;
use crate::plan::{self, Step};
use crate::report::numbers::whole_seconds;
use state::{INTERVAL, State};
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the time left is shown again within a step, and how often a line may be due.
const TICK: Duration = Duration::from_secs(1);
/// The length of the bar: a share in thousandths.
const WHOLE: f64 = 1_000.0;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time that is left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    /// The seconds that the rest of the suite takes if that is known, or the most that it may take.
    pub suite: Option<f64>,
    /// How many suites follow, and the most seconds that they take.
    pub later: (usize, f64),
}

impl Left {
    /// The rest after this time.
    fn after(self, time: Duration) -> Self {
        Self { suite: self.suite.map(|seconds| (seconds - time.as_secs_f64()).max(0.0)), ..self }
    }

    /// The seconds of this suite and those after it.
    fn seconds(self) -> Option<f64> {
        self.suite.map(|seconds| seconds + self.later.1)
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seconds) = self.suite.filter(|seconds| *seconds > 0.0) {
            write!(f, ", {} left", whole_seconds(seconds))?;
        }
        match self.later {
            (0, _) => Ok(()),
            (1, seconds) => write!(f, "; 1 suite after it, at most {}", whole_seconds(seconds)),
            (suites, seconds) => write!(f, "; {suites} suites after it, at most {}", whole_seconds(seconds)),
        }
    }
}

/// Shows what a run does, also while one step takes long.
#[derive(Debug)]
pub struct Progress {
    is_comparison: bool,
    /// `None`: nothing is shown.
    shown: Option<Shown>,
}

impl Progress {
    /// The progress of a run with `done` trials and units made already.
    pub fn new(run: &Run, done: u64, quiet: bool) -> Self {
        let is_comparison = run.policy().is_sequential();
        if quiet {
            return Self { is_comparison, shown: None };
        }
        let is_terminal = output::stderr_is_terminal();
        if is_terminal {
            output::begin_bar(WHOLE as u64);
        }
        let planned = plan::order(run).len() as u64;
        let state = State::new(is_comparison, planned, done, INTERVAL);
        Self {
            is_comparison,
            shown: Some(Shown::new(state, if is_terminal { draw } else { print_if_due }, TICK)),
        }
    }

    /// More trials than planned.
    pub fn add(&self, trials: u64) {
        self.change(|state, _| state.add(trials));
    }

    /// Shows a stage before the trials of a suite.
    pub fn stage(&self, suite: &PlannedSuite, words: &str) {
        self.change(|state, now| state.stage(suite, words, now));
    }

    /// The next trial.
    pub fn next(&mut self, step: &Step, suite: &PlannedSuite, left: Left) {
        self.change(|state, now| state.next(step, suite, left, now));
    }

    pub fn done(&self) {
        self.change(|state, _| state.done());
    }

    /// A trial or unit that failed. On a terminal the answer of a comparison is alone, and says it.
    pub fn failed(&self, line: &str) {
        let is_answered = self.is_comparison && self.shown.is_some() && output::stderr_is_terminal();
        if !is_answered {
            output::note(line);
        }
    }

    /// Prints without the bar.
    pub fn without_bar<T, F: FnMut(T)>(&self, mut print: F) -> impl FnMut(T) + use<T, F> {
        move |value| output::without_bar(|| print(value))
    }

    pub fn finish(&mut self) {
        if self.shown.take().is_some() {
            output::end_bar();
        }
    }

    fn change(&self, change: impl FnOnce(&mut State, Instant)) {
        if let Some(shown) = &self.shown {
            let (mut state, now) = (lock(&shown.state), Instant::now());
            change(&mut state, now);
            (shown.show)(&mut state, now);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn draw(state: &mut State, now: Instant) {
    if let Some(message) = state.message(now) {
        output::draw_bar((state.share(now) * WHOLE) as u64, &message);
    }
}

fn print_if_due(state: &mut State, now: Instant) {
    if let Some(line) = state.due(now) {
        output::note(&line);
    }
}

type Show = fn(&mut State, Instant);

/// A state that is shown when it changes, and again by a thread, since a step may be long.
#[derive(Debug)]
struct Shown {
    state: Arc<Mutex<State>>,
    show: Show,
    /// The thread ends when this is dropped.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    fn new(state: State, show: Show, tick: Duration) -> Self {
        let state = Arc::new(Mutex::new(state));
        let (end, ended) = channel();
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            while ended.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                show(&mut lock(&shared), Instant::now());
            }
        });
        Self { state, show, end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
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

    static LINES: Mutex<Vec<(Instant, String)>> = Mutex::new(Vec::new());

    fn keep_if_due(state: &mut State, now: Instant) {
        lock(&LINES).extend(state.due(now).map(|line| (now, line)));
    }

    #[test]
    fn a_stage_without_any_step_is_shown_again_at_each_interval() {
        let interval = Duration::from_millis(40);
        let state = State::new(false, 0, 0, interval);
        let progress = Progress {
            is_comparison: false,
            shown: Some(Shown::new(state, keep_if_due, Duration::from_millis(2))),
        };
        progress.stage(&PlannedSuite { name: "proxy".into(), ..PlannedSuite::default() }, "preparing");
        let until = Instant::now() + Duration::from_secs(20);
        while lock(&LINES).len() < 4 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        drop(progress);
        let lines = lock(&LINES).clone();
        assert!(
            lines.len() >= 4 && lines.iter().all(|(_, line)| line.starts_with("proxy: preparing")),
            "{lines:?}"
        );
        assert!(lines.windows(2).all(|two| two[1].0 - two[0].0 >= interval), "{lines:?}");
        // The thread has ended.
        thread::sleep(2 * interval);
        assert_eq!(lock(&LINES).len(), lines.len());
    }
}
