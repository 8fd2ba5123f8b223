//! When a server is warm: the rates of its first windows.

use crate::measurement::Warmup;
use crate::stats::estimate::median;

/// A rate of at least this share of that of the last windows is that of a warm server.
const WARM: f64 = 0.8;
/// Windows in which the rate of a warm server rises no further.
const STEADY_WINDOWS: usize = 3;
/// No server is warm before these: a just-in-time compiler begins after thousands of requests, and until then
/// the rate does not rise.
const FEWEST_WINDOWS: usize = 8;

/// The operations of each window, and its seconds.
#[derive(Debug, Default)]
pub(super) struct Windows(Vec<(u64, f64)>);

impl Windows {
    pub(super) fn push(&mut self, operations: u64, seconds: f64) {
        self.0.push((operations, seconds));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first window of a warm server, by the windows so far. The rate is the median of the last ones: on
    /// a busy machine a single one is lower at times, and the best of many is above all that follow.
    fn first_warm(&self) -> usize {
        let rates: Vec<f64> =
            self.0.iter().map(|(operations, seconds)| *operations as f64 / seconds).collect();
        let last = median(rates.iter().copied().skip(rates.len().saturating_sub(STEADY_WINDOWS)));
        rates.iter().position(|rate| last.is_some_and(|last| *rate >= WARM * last)).unwrap_or(0)
    }

    pub(super) fn are_steady(&self) -> bool {
        self.0.len() >= FEWEST_WINDOWS && self.0.len() - self.first_warm() >= STEADY_WINDOWS
    }

    /// Operations per second of a warm server.
    pub(super) fn rate(&self) -> f64 {
        let warm = &self.0[self.first_warm()..];
        let all = warm.iter().fold((0.0, 0.0), |(sum, time), (n, seconds)| (sum + *n as f64, time + seconds));
        all.0 / all.1
    }

    /// What a fresh server needs before a unit. At least one window: pools and caches are filled by then.
    /// What is not steady has the last windows alone: no time makes it so, and units need some.
    pub(super) fn warm_up(&self) -> Warmup {
        let is_steady = self.are_steady();
        let windows = if is_steady {
            &self.0[..self.first_warm().max(1)]
        } else {
            &self.0[self.0.len().saturating_sub(STEADY_WINDOWS)..]
        };
        Warmup { operations: windows.iter().map(|(operations, _)| operations).sum(), is_steady }
    }
}

/// Seconds that a warm-up of a server may take for the sake of another one's.
const LONGEST_FOR_OTHERS: f64 = 1.0;

/// The warm-ups of several servers, with their rates: each has as many operations as the one with the most,
/// so that equal servers are in the same state, but not if that takes longer than a second.
pub(super) fn alike(servers: &[(Warmup, f64)]) -> impl Iterator<Item = Warmup> {
    let most = servers.iter().map(|(warmup, _)| warmup.operations).max().unwrap_or(0);
    servers.iter().map(move |(warmup, rate)| Warmup {
        operations: most.min((rate * LONGEST_FOR_OTHERS) as u64).max(warmup.operations),
        ..*warmup
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a quarter of a second, until they are steady or used up: how many, and the warm-up.
    fn measured(operations: &[u64]) -> (usize, Warmup) {
        let mut windows = Windows::default();
        for number in operations {
            windows.push(*number, 0.25);
            if windows.are_steady() {
                break;
            }
        }
        (windows.len(), windows.warm_up())
    }

    #[test]
    fn a_server_that_needs_no_warm_up_has_one_window_of_it_also_where_a_later_one_is_disturbed() {
        for noise in [[1010, 990, 1000], [400, 1050, 1100], [1000, 1000, 10]] {
            let rates = [&[1000; 5], &noise[..]].concat();
            assert_eq!(measured(&rates), (8, Warmup { operations: 1000, is_steady: true }), "{rates:?}");
        }
    }

    #[test]
    fn a_server_that_becomes_faster_is_warm_when_it_does_not_any_more() {
        let rising = [100, 110, 105, 400, 800, 1000, 1050, 1020, 1000];
        assert_eq!(measured(&rising), (8, Warmup { operations: 1515, is_steady: true }));
        let late = [100, 110, 105, 100, 110, 100, 400, 1000, 1050, 1020, 1000];
        assert_eq!(measured(&late), (10, Warmup { operations: 1025, is_steady: true }));
    }

    #[test]
    fn a_server_that_becomes_faster_to_the_end_is_not_steady_and_has_its_last_windows() {
        let rising: Vec<u64> = (0..20).map(|window| 100 << window).collect();
        let last = rising[17..].iter().sum();
        assert_eq!(measured(&rising), (20, Warmup { operations: last, is_steady: false }));
    }

    #[test]
    fn equal_servers_have_the_longest_warm_up_and_a_slow_one_a_second_of_it() {
        let server = |operations, rate| (Warmup { operations, is_steady: true }, rate);
        let servers = [server(2_500, 10_000.0), server(9_000, 9_900.0), server(300, 1_200.0)];
        let operations = alike(&servers).map(|warmup| warmup.operations);
        assert_eq!(operations.collect::<Vec<_>>(), [9_000, 9_000, 1_200]);
    }

    #[test]
    fn the_rate_is_that_of_the_warm_windows() {
        let windows = Windows(vec![(100, 0.25), (1000, 0.25), (500, 0.25), (900, 0.25)]);
        assert!((windows.rate() - 3200.0).abs() < 1e-9);
    }
}
