//! The highest rate at which a latency is at most a bound: by trials of one rate after the other, each
//! decided by the interval of its trials' median.

use linerate_contract::{Done, Nanos};

/// The search ends at this ratio of the lowest rate that fails and the highest one that passes: medians of
/// six trials decide no smaller difference on a busy machine.
const CLOSE: f64 = 1.05;
/// Between the guess and rates beyond it, until both ends are known.
const STEP: f64 = 1.25;
/// Rates that are tried at most: a search from one end of 10 to 120 % to the other needs as many.
const MOST: u32 = 15;

/// A percentile, and how long it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyBound {
    pub percent: f64,
    pub most: Nanos,
}

impl LatencyBound {
    /// The percentile of a client's result.
    pub fn found_in(&self, done: &Done) -> Option<Nanos> {
        done.latency.as_ref()?.percentile(self.percent).map(Nanos)
    }
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HighestRate {
    /// The highest rate that passes, and the lowest one that fails: the answer is between them.
    pub passes: Option<f64>,
    pub fails: Option<f64>,
    /// The rate whose trials are on both sides of the bound, and their median's interval.
    pub undecided: Option<(f64, [f64; 2])>,
}

impl HighestRate {
    /// Whether both ends are known and close.
    pub fn is_decided(&self) -> bool {
        self.passes.zip(self.fails).is_some_and(|(passes, fails)| fails / passes <= CLOSE)
    }
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct RateSearch {
    /// The next rate; `None`: it is over.
    rate: Option<f64>,
    range: [f64; 2],
    found: HighestRate,
    tried: u32,
}

impl RateSearch {
    /// Begins at `guess`; all rates are in `range`.
    pub fn new(guess: f64, range: [f64; 2]) -> Self {
        let found = HighestRate { passes: None, fails: None, undecided: None };
        Self { rate: Some(guess.clamp(range[0], range[1])), range, found, tried: 0 }
    }

    /// The rate of the next trials; `None` when the search is over.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Records the interval of the latency at that rate.
    pub fn record(&mut self, interval: [f64; 2], bound: f64) {
        let Some(rate) = self.rate else { return };
        self.tried += 1;
        let found = &mut self.found;
        match interval {
            [_, high] if high <= bound => found.passes = Some(rate),
            [low, _] if low > bound => found.fails = Some(rate),
            _ => found.undecided = Some((rate, interval)),
        }
        let [lowest, highest] = self.range;
        self.rate = match (found.passes, found.fails) {
            _ if found.undecided.is_some() || self.tried == MOST || found.is_decided() => None,
            (Some(passes), Some(fails)) => Some((passes * fails).sqrt()),
            (Some(passes), None) => (passes < highest).then(|| (passes * STEP).min(highest)),
            (None, Some(fails)) => (fails > lowest).then(|| (fails / STEP).max(lowest)),
            (None, None) => None,
        };
    }

    pub fn found(&self) -> HighestRate {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose latency is 1 / (1 - load): at 0.8 it is 5.
    fn search(guess: f64, spread: f64) -> HighestRate {
        let mut search = RateSearch::new(guess, [0.1, 1.2]);
        while let Some(rate) = search.rate() {
            let latency = if rate < 1.0 { 1.0 / (1.0 - rate) } else { f64::INFINITY };
            search.record([latency * (1.0 - spread), latency * (1.0 + spread)], 5.0);
        }
        search.found()
    }

    #[test]
    fn the_answer_is_between_two_close_rates_from_any_guess() {
        for guess in [0.0, 0.1, 0.5, 0.79, 1.01, 5.0] {
            let found = search(guess, 0.001);
            let (passes, fails) = (found.passes.unwrap(), found.fails.unwrap());
            assert!(passes <= 0.8 && 0.8 <= fails && found.is_decided(), "{guess} {found:?}");
        }
    }

    #[test]
    fn trials_on_both_sides_of_the_bound_end_the_search_without_a_decision() {
        let found = search(0.5, 0.5);
        let (rate, [low, high]) = found.undecided.unwrap();
        assert!(
            !found.is_decided() && low < 5.0 && 5.0 < high && rate > found.passes.unwrap_or(0.0),
            "{found:?}"
        );
    }

    #[test]
    fn a_bound_that_no_rate_or_every_rate_meets_ends_the_search() {
        let all = |latency: f64| {
            let mut search = RateSearch::new(0.5, [0.1, 1.2]);
            while search.rate().is_some() {
                search.record([latency; 2], 5.0);
            }
            search.found()
        };
        assert_eq!((all(1.0).passes, all(1.0).fails), (Some(1.2), None));
        assert_eq!((all(9.0).passes, all(9.0).fails), (None, Some(0.1)));
    }
}
