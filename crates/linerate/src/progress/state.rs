//! The state of a run, in words and as a share of its time: a function of an instant.

use super::Left;
use crate::measurement::{PlannedSuite, Sides};
use crate::plan::Step;
use crate::report::numbers::whole_seconds;
use std::time::{Duration, Instant};

/// The least time between two lines where stderr is no terminal.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);
/// The bar is full at the end only.
const ALMOST_ALL: f64 = 0.99;

#[derive(Debug)]
pub(super) struct State {
    begun: Instant,
    is_comparison: bool,
    /// Trials and units, and how many of them are made.
    planned: u64,
    done: u64,
    /// The share that an earlier process has made.
    before: f64,
    doing: Option<Doing>,
    pairs: Pairs,
    interval: Duration,
    printed: Option<Instant>,
    /// The share that the bar has shown.
    shown: f64,
}

/// A trial, a unit or a stage before them.
#[derive(Debug)]
struct Doing {
    words: String,
    /// The cells.
    id: Option<String>,
    left: Left,
    since: Instant,
}

/// The units of a comparison's pairs, which come one after the other.
#[derive(Debug)]
struct Pairs {
    /// The number of the first unit in this process, and its start.
    first: Option<(u32, Instant)>,
    words: String,
}

impl State {
    /// With `done` of the planned trials and units made already.
    pub(super) fn new(is_comparison: bool, planned: u64, done: u64, interval: Duration) -> Self {
        let before = if done == 0 { 0.0 } else { done as f64 / planned.max(done) as f64 };
        Self {
            begun: Instant::now(),
            is_comparison,
            planned,
            done,
            before,
            doing: None,
            pairs: Pairs { first: None, words: "control".into() },
            interval,
            // A log needs no line about what takes a moment.
            printed: is_comparison.then(Instant::now),
            shown: 0.0,
        }
    }

    /// More trials and units than planned.
    pub(super) fn add(&mut self, steps: u64) {
        self.planned += steps;
    }

    pub(super) fn done(&mut self) {
        self.done += 1;
    }

    /// Begins a stage before the trials of a suite.
    pub(super) fn stage(&mut self, suite: &PlannedSuite, words: &str, now: Instant) {
        let words = self.with_name(suite, words.to_owned());
        self.doing = Some(Doing { words, id: None, left: Left::default(), since: now });
    }

    /// The next trial or unit.
    pub(super) fn next(&mut self, step: &Step, suite: &PlannedSuite, left: Left, now: Instant) {
        let words = match step.sides {
            _ if step.warmup => "warming up".to_owned(),
            Sides::One(_) if self.is_comparison && self.pairs.first.is_none() => "each alone".to_owned(),
            // A control has numbers of its own, and what is measured alone between the pairs has none.
            Sides::One(_) if self.is_comparison => self.pairs.words.clone(),
            sides if self.is_comparison && sides.is_control() => self.pairs.words.clone(),
            _ if self.is_comparison => {
                self.pairs.next(step.number, pairs_of(suite), left, now);
                self.pairs.words.clone()
            }
            _ if step.round > suite.rounds => "more pairs of what is undecided".to_owned(),
            _ => format!("round {} of {}", step.round, suite.rounds),
        };
        let words = self.with_name(suite, words);
        self.doing = Some(Doing { words, id: Some(step.sides.id(suite)), left, since: now });
    }

    fn with_name(&self, suite: &PlannedSuite, words: String) -> String {
        if self.is_comparison { words } else { format!("{}: {words}", suite.name) }
    }

    /// `proxy: round 3 of 9, 2m left`, or `proxy: preparing, 40s so far`.
    pub(super) fn line(&self, now: Instant) -> Option<String> {
        let doing = self.doing.as_ref()?;
        let time = now - doing.since;
        let so_far = match (&doing.id, time.as_secs()) {
            (None, seconds @ 1..) => format!(", {} so far", whole_seconds(seconds as f64)),
            _ => String::new(),
        };
        Some(format!("{}{so_far}{}", doing.words, doing.left.after(time)))
    }

    /// The message with the cells.
    pub(super) fn message(&self, now: Instant) -> Option<String> {
        let line = self.line(now)?;
        let id = self.doing.as_ref().and_then(|doing| doing.id.as_ref());
        Some(id.map_or(line.clone(), |id| format!("{line}: {id}")))
    }

    /// The line, if it is time for one.
    pub(super) fn due(&mut self, now: Instant) -> Option<String> {
        let is_due = self.printed.is_none_or(|printed| now - printed >= self.interval);
        let line = self.line(now).filter(|_| is_due)?;
        self.printed = Some(now);
        Some(line)
    }

    /// How much of the run is behind: by the time that is left, or by the number of trials where it is not
    /// known. What was shown once is not taken back when more units are needed.
    pub(super) fn share(&mut self, now: Instant) -> f64 {
        let left = self.doing.as_ref().and_then(|doing| doing.left.after(now - doing.since).seconds());
        let share = match left {
            Some(left) => {
                let behind = (now - self.begun).as_secs_f64();
                self.before + (1.0 - self.before) * behind / (behind + left).max(f64::EPSILON)
            }
            None => self.done as f64 / self.planned.max(1) as f64,
        };
        self.shown = self.shown.max(share.min(ALMOST_ALL));
        self.shown
    }
}

impl Pairs {
    /// `pair 5 of about 9`, by the mean time of those before; with several pairs their rounds are counted.
    fn next(&mut self, number: u32, pairs: usize, left: Left, now: Instant) {
        let (first, start) = *self.first.get_or_insert((number, now));
        let noun = if pairs == 1 { "pair" } else { "round" };
        let each = (now - start).as_secs_f64() / f64::from(number.saturating_sub(first));
        self.words = match left.suite {
            Some(left) if each.is_finite() && each > 0.0 => {
                let about = number.saturating_add((left / each).round() as u32).saturating_sub(1).max(number);
                format!("{noun} {number} of about {about}")
            }
            _ => format!("{noun} {number}"),
        };
    }
}

/// The pairs that are measured in a round of a comparison, without the control.
fn pairs_of(suite: &PlannedSuite) -> usize {
    suite.pairs.iter().filter(|pair| pair.no_duet.is_none() && pair.cells[0] != pair.cells[1]).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{PlannedCell, PlannedPair};

    const WARM: &str = "warming up";

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn pair(cells: [&str; 2]) -> PlannedPair {
        PlannedPair { cells: cells.map(str::to_owned), no_duet: None }
    }

    fn suite(pairs: &[[&str; 2]]) -> PlannedSuite {
        let pairs = pairs.iter().map(|cells| pair(*cells)).collect();
        let cell = |id: &str| PlannedCell { id: id.into(), ..PlannedCell::default() };
        let cells = ["a", "b"].map(cell).into();
        PlannedSuite { name: "proxy".into(), rounds: 9, pairs, cells, ..PlannedSuite::default() }
    }

    fn step(against: Option<usize>, number: u32, warmup: bool) -> Step {
        let sides = against.map_or(Sides::One(0), |other| Sides::Two([0, other]));
        Step { round: number, number, warmup, ..Step::new(0, sides) }
    }

    fn left(suite: f64) -> Left {
        Left { suite: Some(suite), later: (0, 0.0) }
    }

    fn state(is_comparison: bool) -> (State, Instant) {
        let state = State::new(is_comparison, 0, 0, INTERVAL);
        let start = state.begun;
        (state, start)
    }

    #[test]
    fn a_comparison_is_shown_by_its_pairs_and_about_how_many_there_will_be() {
        let ((mut state, start), suite) = (state(true), suite(&[["b", "a"], ["a", "a"]]));
        let mut shown = |step: &Step, at: f64, time: f64| {
            state.next(step, &suite, left(time), start + seconds(at));
            state.line(start + seconds(at)).unwrap()
        };
        assert_eq!(shown(&step(Some(1), 1, true), 0.0, 30.0), "warming up, 30s left");
        assert_eq!(shown(&step(None, 1, false), 2.0, 28.0), "each alone, 28s left");
        assert_eq!(shown(&step(Some(1), 1, false), 3.0, 27.0), "pair 1, 27s left");
        assert_eq!(shown(&step(Some(1), 5, false), 15.0, 15.0), "pair 5 of about 9, 15s left");
        // The control has numbers of its own.
        assert_eq!(shown(&step(Some(0), 1, false), 18.0, 12.0), "pair 5 of about 9, 12s left");
        // Its suspects are confirmed beyond the time.
        assert_eq!(shown(&step(Some(1), 10, false), 30.0, 0.0), "pair 10 of about 10");
    }

    #[test]
    fn several_pairs_and_suites_are_shown_by_their_rounds() {
        let ((mut comparison, start), all) = (state(true), suite(&[["b", "a"], ["c", "a"]]));
        comparison.next(&step(Some(1), 1, false), &all, left(20.0), start);
        comparison.next(&step(Some(1), 2, false), &all, left(18.0), start + seconds(2.0));
        assert_eq!(comparison.line(start + seconds(2.0)).unwrap(), "round 2 of about 10, 18s left");
        let ((mut run, start), later) = (state(false), Left { suite: Some(61.2), later: (1, 240.0) });
        run.stage(&all, "preparing", start);
        assert_eq!(run.line(start).unwrap(), "proxy: preparing");
        assert_eq!(run.line(start + seconds(80.4)).unwrap(), "proxy: preparing, 1m 20s so far");
        run.next(&step(Some(1), 3, false), &all, later, start);
        assert_eq!(run.line(start).unwrap(), "proxy: round 3 of 9, 1m 2s left; 1 suite after it, at most 4m");
        run.next(&step(Some(1), 10, false), &all, left(5.0), start);
        assert_eq!(run.message(start).unwrap(), "proxy: more pairs of what is undecided, 5s left: a | b");
    }

    #[test]
    fn there_is_a_line_at_the_start_and_one_in_ten_seconds_however_many_steps_or_few() {
        let ((mut state, start), suite) = (state(false), suite(&[]));
        let mut times = Vec::new();
        for tenth in 0..1_000 {
            let now = start + seconds(f64::from(tenth) / 10.0);
            // A long stage, and then a step in each tenth of a second.
            match tenth {
                0 => state.stage(&suite, WARM, now),
                500.. => state.next(&step(None, tenth, false), &suite, left(60.0), now),
                _ => {}
            }
            times.extend(state.due(now).map(|_| tenth));
        }
        assert_eq!(times, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    }

    #[test]
    fn the_time_left_becomes_less_within_a_step() {
        let ((mut state, start), suite) = (state(true), suite(&[["b", "a"]]));
        state.next(&step(Some(1), 1, true), &suite, left(30.0), start);
        assert_eq!(state.line(start + seconds(12.0)).unwrap(), "warming up, 18s left");
        assert_eq!(state.line(start + seconds(40.0)).unwrap(), "warming up");
    }

    #[test]
    fn the_bar_never_goes_back_and_is_full_at_the_end_only() {
        let ((mut state, start), suite) = (state(true), suite(&[["b", "a"]]));
        let mut shares = vec![state.share(start)];
        // After 10 s more time is needed than was thought; the last unit takes longer than the time.
        for second in 0..40_u32 {
            let now = start + seconds(f64::from(second));
            let rest = if second < 10 { 12.0 } else { 30.0 } - f64::from(second);
            state.next(&step(Some(1), second + 1, false), &suite, left(rest.max(0.0)), now);
            shares.extend([state.share(now), state.share(now + seconds(0.5))]);
            state.add(3);
        }
        assert!(shares.is_sorted(), "{shares:?}");
        assert!(shares[0] == 0.0 && shares[20] > 0.7 && *shares.last().unwrap() == ALMOST_ALL, "{shares:?}");
    }

    #[test]
    fn where_the_time_is_not_known_trials_are_counted() {
        let ((mut state, start), suite) = (state(false), suite(&[]));
        state.add(8);
        state.done();
        state.done();
        state.next(&step(None, 1, false), &suite, Left::default(), start);
        assert_eq!(state.share(start + seconds(100.0)), 0.25);
        state.add(8);
        assert_eq!(state.share(start + seconds(100.0)), 0.25);
    }
}
