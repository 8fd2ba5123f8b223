//! When a server is warm: the rates and the CPU times of its first windows.

use crate::stats::estimate::median;
use linerate_contract::{Done, Nanos};

/// A rate of at least this share of that of the last windows is that of a warm server.
const WARM: f64 = 0.8;
/// A compiler or a collector at work costs CPU time: a warm server needs at most this multiple of the CPU
/// time per operation of the last windows.
const SETTLED: f64 = 1.15;
/// Windows in which the rate of a warm server rises no further.
const STEADY_WINDOWS: usize = 3;
/// Fewer windows show no trend.
const FEWEST_WINDOWS: usize = 6;
/// A compiler at run time begins after thousands of requests, and until then the rate does not rise: 100 ms
/// windows of Node.js have 200 requests each at first, and 4,000 in the end. A server that is too slow for
/// that is warm by then, or has no compiler.
const COMPILED: u64 = 10_000;
const COMPILED_AFTER: f64 = 1.5;

/// The window of a warm-up's rate, a hundredth of a budget within these.
const SHORTEST_WINDOW: Nanos = Nanos(100_000_000);
const WINDOW: Nanos = Nanos(200_000_000);
const WINDOWS_OF_BUDGET: u64 = 100;
/// The longest warm-up: five seconds, or this part of a budget.
const LONGEST: Nanos = Nanos(5_000_000_000);
const OF_BUDGET: u64 = 5;

/// The length of a window and of the longest warm-up: parts of a budget, which is kept however slow a server
/// is.
pub(super) fn warming(budget: Option<Nanos>) -> [Nanos; 2] {
    let longest = budget.map_or(LONGEST, |budget| LONGEST.min(Nanos(budget.0 / OF_BUDGET)));
    let window = budget.map_or(WINDOW, |budget| Nanos(budget.0 / WINDOWS_OF_BUDGET));
    [window.clamp(SHORTEST_WINDOW, WINDOW), longest]
}

/// The windows of a server, one after the other.
#[derive(Debug, Default)]
pub(super) struct Windows {
    all: Vec<Window>,
    /// In the last one, most responses waited for a delayed acknowledgement.
    pub(super) waits: bool,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    operations: u64,
    /// Connections without a response.
    unserved: u64,
    seconds: f64,
    /// CPU time of the server, where it is known.
    cpu: Option<Nanos>,
}

impl Window {
    fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds
    }

    /// Nanoseconds of CPU time per operation.
    fn cost(&self) -> Option<f64> {
        Some(self.cpu?.0 as f64 / self.operations as f64)
    }
}

impl Windows {
    pub(super) fn push(&mut self, done: &Done, seconds: f64, cpu: Option<Nanos>) {
        let Done { operations, unserved, .. } = *done;
        self.all.push(Window { operations, unserved, seconds, cpu });
    }

    /// How many of the connections were served, where the others were kept waiting in each of the last
    /// windows.
    pub(super) fn served(&self, connections: u32) -> Option<u32> {
        let unserved = self.last().iter().map(|window| window.unserved).min()?;
        let operations = self.last().iter().map(|window| window.operations).sum();
        Done { operations, unserved, ..Done::default() }.served_of(connections)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The last windows: on a busy machine a single one is slower at times, so that their median counts.
    fn last(&self) -> &[Window] {
        &self.all[self.all.len().saturating_sub(STEADY_WINDOWS)..]
    }

    /// The first window of a warm server, by the windows so far.
    fn first_warm(&self) -> usize {
        let rate = median(self.last().iter().map(Window::rate)).unwrap_or(0.0);
        let cost = median(self.last().iter().filter_map(Window::cost)).unwrap_or(f64::INFINITY);
        let is_warm = |window: &Window| {
            let is_settled = window.cost().is_none_or(|of_window| of_window <= SETTLED * cost);
            is_settled && window.rate() >= WARM * rate
        };
        self.all.iter().position(is_warm).unwrap_or(0)
    }

    /// True if a compiler at run time has begun by now, if the server has one.
    pub(super) fn are_enough(&self) -> bool {
        let operations: u64 = self.all.iter().map(|window| window.operations).sum();
        let seconds: f64 = self.all.iter().map(|window| window.seconds).sum();
        operations >= COMPILED || seconds >= COMPILED_AFTER
    }

    pub(super) fn are_steady(&self) -> bool {
        self.all.len() >= FEWEST_WINDOWS && self.all.len() - self.first_warm() >= STEADY_WINDOWS
    }

    /// How long a fresh server is loaded before a unit. At least one window: pools and caches are filled by
    /// then. What is not steady has the length of the last windows alone: no time makes it so, and units need
    /// some.
    pub(super) fn time_to_warm(&self) -> Nanos {
        let before = if self.are_steady() { &self.all[..self.first_warm().max(1)] } else { self.last() };
        Nanos((before.iter().map(|window| window.seconds).sum::<f64>() * 1e9) as u64)
    }

    /// The mean time of a response at the end, with this number of requests under way.
    pub(super) fn response(&self, under_way: u32) -> Nanos {
        let (operations, seconds) =
            self.last().iter().fold((0, 0.0), |(n, time), one| (n + one.operations, time + one.seconds));
        Nanos((seconds * 1e9 * f64::from(under_way) / operations.max(1) as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(operations: u64, unserved: u64) -> Done {
        Done { operations, unserved, ..Done::default() }
    }

    /// Windows of a fifth of a second, until they are steady or used up: how many, and the tenths of a second
    /// of the warm-up.
    fn measured(operations: &[u64], cpu: impl Fn(usize) -> Option<u64>) -> (usize, u64, bool) {
        let mut windows = Windows::default();
        for (index, number) in operations.iter().enumerate() {
            windows.push(&done(*number, 0), 0.2, cpu(index).map(Nanos));
            if windows.are_enough() && windows.are_steady() {
                break;
            }
        }
        let tenths = (windows.time_to_warm().as_secs_f64() * 10.0).round() as u64;
        (windows.len(), tenths, windows.are_steady())
    }

    #[test]
    fn a_server_that_needs_no_warm_up_has_one_window_of_it_also_where_a_later_one_is_disturbed() {
        for noise in [[1010, 990, 1000], [400, 1050, 1100], [1000, 1000, 10]] {
            let rates = [&[1000; 3], &noise[..]].concat();
            assert_eq!(measured(&rates, |_| None), (6, 2, true), "{rates:?}");
        }
    }

    #[test]
    fn a_server_that_becomes_faster_is_warm_when_it_does_not_any_more() {
        let rising = [100, 110, 105, 400, 800, 1000, 1050, 1020, 1000];
        assert_eq!(measured(&rising, |_| None), (8, 10, true));
        let late = [100, 110, 105, 100, 110, 105, 400, 1000, 1050, 1020, 1000];
        assert_eq!(measured(&late, |_| None), (10, 14, true), "its compiler begins after six windows");
    }

    #[test]
    fn a_server_whose_rate_is_steady_is_not_warm_while_its_cpu_time_falls() {
        let cost = |index: usize| Some(1000 * [40, 36, 30, 24, 22, 20, 20, 20, 20][index]);
        assert_eq!(measured(&[1000; 9], cost), (8, 8, true));
    }

    #[test]
    fn a_server_that_becomes_faster_to_the_end_is_not_steady_and_has_the_length_of_its_last_windows() {
        let rising: Vec<u64> = (0..20).map(|window| 100 << window).collect();
        assert_eq!(measured(&rising, |_| None), (20, 6, false));
    }

    #[test]
    fn the_time_of_a_response_is_that_of_the_last_windows() {
        let mut windows = Windows::default();
        [10, 400, 400, 400].into_iter().for_each(|number| windows.push(&done(number, 0), 0.2, None));
        assert_eq!(windows.response(16), Nanos(8_000_000));
    }

    #[test]
    fn connections_are_kept_waiting_that_wait_in_each_of_the_last_windows_also_where_one_of_them_is_slow() {
        let served = |all: [(u64, u64); 4]| {
            let mut windows = Windows::default();
            let each = all.into_iter().map(|(operations, unserved)| done(operations, unserved));
            each.for_each(|done| windows.push(&done, 0.1, None));
            windows.served(16)
        };
        assert_eq!(served([(900, 15), (900, 15), (900, 15), (60, 15)]), Some(1));
        assert_eq!(served([(900, 15), (900, 12), (90, 14), (900, 12)]), Some(4));
        assert_eq!(served([(20, 12), (900, 0), (900, 3), (900, 0)]), None, "only while it started");
        assert_eq!(served([(20, 12), (30, 12), (40, 12), (50, 12)]), None, "too few to tell");
    }

    #[test]
    fn a_warm_up_is_a_part_of_the_budget() {
        let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
        for budget in [1, 5, 10, 300].map(seconds) {
            let [window, longest] = warming(Some(budget));
            assert!(longest <= Nanos(budget.0 / 5) && longest <= LONGEST, "{budget:?}");
            assert!((SHORTEST_WINDOW..=WINDOW).contains(&window), "{budget:?}");
        }
        assert_eq!(warming(None), [WINDOW, LONGEST]);
    }
}
