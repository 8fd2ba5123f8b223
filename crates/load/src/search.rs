//! The highest sustainable rate of a path: the throughput of RFC 2544, found by trials under a sequential
//! test.
//!
//! One trial proves little: a short disturbance loses datagrams at any rate, and by luck none are lost at a
//! rate that is too high. Each rate therefore gets a sequential test (Wald 1945): trials are added until
//! their outcomes show that it passes nearly always, or no more often than a coin. Rates are doubled until
//! one fails; then the step between the highest that passed and the lowest that failed is halved until it is
//! small.
//!
//! Consecutive trials are not independent: a host that is busy for a second fails all trials of that second.
//! The lowest failed rate is therefore tested once more at the end, and the search continues if it passes
//! then.
//!
//! The search is independent of datagrams: its caller asks for the next rate, runs a trial, and records the
//! outcome.

/// A sustainable rate passes in this share of trials, an unsustainable one in at most the second.
const SUSTAINED: f64 = 0.95;
const UNSUSTAINED: f64 = 0.5;
/// Share of wrong decisions of either kind. Half as many cost two more trials per rate.
const WRONG: f64 = 0.05;
/// The search ends at this ratio of the two rates: trials of the same rate differ by as much.
const CLOSE: f64 = 1.02;
/// After this many trials without a decision a rate counts as failed.
const MAX_TRIALS: u32 = 30;
/// How often a search resumes above a rate that failed at first.
const MAX_RESUMED: u32 = 3;

/// The evidence about one rate: the logarithm of the likelihood ratio.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    ratio: f64,
    trials: u32,
}

impl Evidence {
    /// Adds a trial; `Some` with the decision.
    fn add(&mut self, passed: bool) -> Option<bool> {
        let (likely, unlikely) =
            if passed { (SUSTAINED, UNSUSTAINED) } else { (1.0 - SUSTAINED, 1.0 - UNSUSTAINED) };
        self.ratio += f64::ln(likely / unlikely);
        self.trials += 1;
        let bound = f64::ln((1.0 - WRONG) / WRONG);
        if self.ratio >= bound {
            Some(true)
        } else if self.ratio <= -bound || self.trials >= MAX_TRIALS {
            Some(false)
        } else {
            None
        }
    }
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    rate: f64,
    lowest: f64,
    highest: f64,
    /// The highest rate that passed, and the lowest that failed.
    passed: Option<f64>,
    failed: Option<f64>,
    evidence: Evidence,
    /// The present rate failed before.
    again: bool,
    resumed: u32,
}

impl Search {
    /// Begins at `first`; all rates are within `lowest` to `highest`.
    pub fn new(first: f64, lowest: f64, highest: f64) -> Self {
        let rate = first.clamp(lowest, highest);
        Self {
            rate,
            lowest,
            highest,
            passed: None,
            failed: None,
            evidence: Evidence::default(),
            again: false,
            resumed: 0,
        }
    }

    /// The rate of the next trial.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Records the outcome of that trial. `Some` when the search is over: the highest sustainable rate, if
    /// any.
    pub fn record(&mut self, passed: bool) -> Option<Option<f64>> {
        let sustained = self.evidence.add(passed)?;
        self.evidence = Evidence::default();
        let again = std::mem::take(&mut self.again);
        if sustained {
            self.passed = Some(self.rate);
            self.resumed += u32::from(again);
            self.failed = self.failed.filter(|_| !again);
        } else {
            self.failed = Some(self.rate);
        }
        self.rate = match (self.passed, self.failed) {
            (Some(passed), Some(failed)) if failed / passed <= CLOSE => {
                if again || self.resumed == MAX_RESUMED {
                    return Some(Some(passed));
                }
                self.again = true;
                failed
            }
            (Some(passed), Some(failed)) => (passed * failed).sqrt(),
            (Some(passed), None) if passed >= self.highest => return Some(Some(passed)),
            (Some(passed), None) => (passed * 2.0).min(self.highest),
            (None, Some(failed)) if failed <= self.lowest => return Some(None),
            (None, Some(failed)) => (failed / 2.0).max(self.lowest),
            (None, None) => unreachable!("one of them was set above"),
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a path on which a trial passes with this probability, by rate; the result and the number of
    /// trials.
    fn search(mut probability: impl FnMut(f64) -> f64) -> (Option<f64>, u32) {
        let mut search = Search::new(50_000.0, 1_000.0, 10_000_000.0);
        let mut random = 7_u64;
        for trials in 1.. {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
            if let Some(found) = search.record(uniform < probability(search.rate())) {
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
    fn a_short_overload_does_not_decide_the_search() {
        let mut trial = 0;
        let (found, _) = search(|rate| {
            trial += 1;
            if rate <= 800_000.0 && !(10..20).contains(&trial) { 1.0 } else { 0.0 }
        });
        assert!((700_000.0..=800_000.0).contains(&found.unwrap()), "{found:?}");
    }

    #[test]
    fn a_rate_that_passes_by_luck_is_not_the_result() {
        let (found, _) = search(|rate| match rate {
            r if r <= 300_000.0 => 1.0,
            r if r <= 600_000.0 => 0.4,
            _ => 0.0,
        });
        assert!(found.unwrap() <= 320_000.0, "{found:?}");
    }

    #[test]
    fn a_path_that_always_or_never_passes_ends_the_search() {
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
