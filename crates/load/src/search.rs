//! The highest rate that a path carries: RFC 2544's throughput, found by trials that are repeated until a statistic decides.
//!
//! One trial proves little: a passing disturbance loses datagrams at any rate, and luck loses none at a rate that is too high. So
//! each rate is put to a sequential test (Wald 1945): trials are added until their outcomes say that it holds nearly always, or
//! that it holds no more often than a coin does. Rates are doubled until one does not hold, and then the step between the
//! best that does and the worst that does not is halved until it is small.
//!
//! Trials that follow one another are not independent: a host that is busy for a second fails all of that second. So the lowest
//! rate that failed is put to the test once more at the end, at another time, and the search goes on if it holds now.
//!
//! Nothing here knows of datagrams: who runs the trials asks for the next rate and tells how it went.

/// A rate that holds does so in this share of trials, and one that does not in at most that.
const HOLDS: f64 = 0.95;
const FAILS: f64 = 0.5;
/// Share of wrong decisions, either way. Half of it costs two more trials a rate.
const WRONG: f64 = 0.05;
/// The search ends when the two rates are this close: trials of the same rate differ by as much.
const CLOSE: f64 = 1.02;
/// A rate whose trials do not decide is taken as one that does not hold.
const MOST_TRIALS: u32 = 30;
/// How often a search is taken up again above a rate that failed at first.
const MOST_RESUMED: u32 = 3;

/// The evidence about one rate: the logarithm of the likelihood ratio.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    ratio: f64,
    trials: u32,
}

impl Evidence {
    /// Adds a trial; `Some` when it decides.
    fn add(&mut self, passed: bool) -> Option<bool> {
        let (likely, unlikely) = if passed { (HOLDS, FAILS) } else { (1.0 - HOLDS, 1.0 - FAILS) };
        self.ratio += f64::ln(likely / unlikely);
        self.trials += 1;
        let bound = f64::ln((1.0 - WRONG) / WRONG);
        if self.ratio >= bound {
            Some(true)
        } else if self.ratio <= -bound || self.trials >= MOST_TRIALS {
            Some(false)
        } else {
            None
        }
    }
}

/// A search on its way.
#[derive(Debug, Clone)]
pub struct Search {
    rate: f64,
    lowest: f64,
    highest: f64,
    holds: Option<f64>,
    fails: Option<f64>,
    evidence: Evidence,
    /// The rate is one that failed before.
    again: bool,
    resumed: u32,
}

impl Search {
    /// Begins at `first`; never asks for a rate outside of `lowest` to `highest`.
    #[must_use]
    pub fn new(first: f64, lowest: f64, highest: f64) -> Self {
        let rate = first.clamp(lowest, highest);
        Self {
            rate,
            lowest,
            highest,
            holds: None,
            fails: None,
            evidence: Evidence::default(),
            again: false,
            resumed: 0,
        }
    }

    /// The rate of the next trial.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How that trial went. `Some` when the search is over: the highest rate that holds, if any does.
    pub fn tell(&mut self, passed: bool) -> Option<Option<f64>> {
        let holds = self.evidence.add(passed)?;
        self.evidence = Evidence::default();
        let again = std::mem::take(&mut self.again);
        if holds {
            self.holds = Some(self.rate);
            self.resumed += u32::from(again);
            self.fails = self.fails.filter(|_| !again);
        } else {
            self.fails = Some(self.rate);
        }
        self.rate = match (self.holds, self.fails) {
            (Some(holds), Some(fails)) if fails / holds <= CLOSE => {
                if again || self.resumed == MOST_RESUMED {
                    return Some(Some(holds));
                }
                self.again = true;
                fails
            }
            (Some(holds), Some(fails)) => (holds * fails).sqrt(),
            (Some(holds), None) if holds >= self.highest => return Some(Some(holds)),
            (Some(holds), None) => (holds * 2.0).min(self.highest),
            (None, Some(fails)) if fails <= self.lowest => return Some(None),
            (None, Some(fails)) => (fails / 2.0).max(self.lowest),
            (None, None) => unreachable!("one of them was set above"),
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a path that loses nothing with this probability, by rate; the answer, and how many trials it took.
    fn search(mut holds: impl FnMut(f64) -> f64) -> (Option<f64>, u32) {
        let mut search = Search::new(50_000.0, 1_000.0, 10_000_000.0);
        let mut random = 7_u64;
        for trials in 1.. {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
            if let Some(found) = search.tell(uniform < holds(search.rate())) {
                return (found, trials);
            }
            assert!(trials < 1_000);
        }
        unreachable!()
    }

    #[test]
    fn a_sharp_limit_is_found_to_two_percent() {
        for limit in [1_500.0, 49_000.0, 1_234_567.0] {
            let (found, trials) = search(|rate| if rate <= limit { 1.0 } else { 0.0 });
            let found = found.unwrap();
            assert!(found <= limit && found >= limit / CLOSE, "{found} of {limit}");
            assert!(trials < 80, "{trials} trials");
        }
    }

    #[test]
    fn disturbances_at_any_rate_do_not_end_the_search_early() {
        let (found, _) = search(|rate| if rate <= 800_000.0 { 0.98 } else { 0.02 });
        assert!((700_000.0..=800_000.0).contains(&found.unwrap()), "{found:?}");
    }

    /// A host that is busy from the tenth trial to the twentieth fails every rate in that time.
    #[test]
    fn a_busy_spell_does_not_decide_the_search() {
        let mut trial = 0;
        let (found, _) = search(|rate| {
            trial += 1;
            if rate <= 800_000.0 && !(10..20).contains(&trial) { 1.0 } else { 0.0 }
        });
        assert!((700_000.0..=800_000.0).contains(&found.unwrap()), "{found:?}");
    }

    #[test]
    fn a_rate_that_holds_by_luck_is_not_the_answer() {
        let (found, _) = search(|rate| match rate {
            r if r <= 300_000.0 => 1.0,
            r if r <= 600_000.0 => 0.4,
            _ => 0.0,
        });
        assert!(found.unwrap() <= 320_000.0, "{found:?}");
    }

    #[test]
    fn a_path_that_always_or_never_holds_ends_it() {
        assert_eq!(search(|_| 1.0).0, Some(10_000_000.0));
        assert_eq!(search(|_| 0.0).0, None);
        let mut undecided = true;
        let (found, trials) = search(|_| {
            undecided = !undecided;
            f64::from(u8::from(undecided))
        });
        assert!(trials < 1_000 && found.is_none());
    }
}
