//! When datagrams are due in an open loop: computed from their number, so that rounding errors do not
//! accumulate.
//!
//! A burst contains the datagrams of one [`SPREAD`]: no wake-up is more exact than that, and at a million
//! datagrams a second one call each would measure the calls.

use crate::clock;
use crate::refusal::Refusal;
use linerate_contract::{Adherence, Nanos, Recorder, Spec};

/// The time that a burst covers at most: about a wake-up from an idle CPU (docs/method.md).
const SPREAD: Nanos = Nanos(50_000);
/// A thread sleeps no closer to the due time than this; then it polls the clock.
const WAKE_UP: Nanos = Nanos(50_000);
/// A later datagram is reported as late (sdk/CONTRACT.md).
const LATE: Nanos = Nanos(1_000_000);
/// One datagram per nanosecond: beyond any path.
const HIGHEST_RATE: f64 = 1e9;

/// The schedule of one thread's datagrams.
#[derive(Debug)]
pub(super) struct Pace {
    gap: f64,
    burst: usize,
    late: u64,
    delay: Recorder,
}

impl Pace {
    /// The part of one of `threads`; `None` without a rate: as fast as possible.
    pub(super) fn from_spec(spec: &Spec, threads: usize, max: usize) -> Result<Option<Self>, Refusal> {
        let Some(rate) = spec.rate else { return Ok(None) };
        if !(rate > 0.0 && rate <= HIGHEST_RATE) {
            return Err(Refusal::BadSpec(format!(
                "\"rate\" must be above 0 and at most {HIGHEST_RATE}: {rate}"
            )));
        }
        let gap = 1e9 / (rate / threads as f64);
        let burst = ((SPREAD.0 as f64 / gap) as usize).clamp(1, max);
        Ok(Some(Self { gap, burst, late: 0, delay: Recorder::default() }))
    }

    /// Waits until the next burst is due; returns its number of datagrams and the time, or `None` if none is
    /// due before `end`.
    pub(super) fn next(&mut self, start: Nanos, sent: u64, end: Nanos) -> Option<(usize, Nanos)> {
        let due = start + Nanos((sent as f64 * self.gap) as u64);
        if due >= end {
            return None;
        }
        let mut now = clock::now();
        if due.since(now) > WAKE_UP {
            std::thread::sleep((due.since(now) - WAKE_UP).into());
            now = clock::now();
        }
        while now < due {
            std::hint::spin_loop();
            now = clock::now();
        }
        // The sender is too slow for its rate: the rest stays unsent, and the trial does not become longer.
        if now >= end {
            return None;
        }
        let delay = now.since(due);
        self.delay.record(delay.0);
        if delay > LATE {
            self.late += self.burst as u64;
        }
        let left = (end.since(due).0 as f64 / self.gap).ceil().max(1.0) as usize;
        Some((self.burst.min(left), now))
    }

    /// Late and unsent datagrams, and the delays, after `sent` datagrams until `end`.
    pub(super) fn adherence(&self, start: Nanos, end: Nanos, sent: u64) -> (u64, u64, &Recorder) {
        let due = (end.since(start).0 as f64 / self.gap).ceil() as u64;
        (self.late, due.saturating_sub(sent), &self.delay)
    }
}

/// The sum over all threads.
pub(super) fn sum(parts: &[(u64, u64, &Recorder)]) -> Adherence {
    let mut delay = Recorder::default();
    let (mut late, mut unsent) = (0, 0);
    for (is_late, is_unsent, recorder) in parts {
        late += is_late;
        unsent += is_unsent;
        delay.merge(recorder);
    }
    Adherence { late, unsent, delay: delay.counts() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    fn spec(rate: f64) -> Spec {
        let mut spec = Spec::new(Role::Client, Layer::Udp, Workload::Stream);
        spec.rate = Some(rate);
        spec
    }

    #[test]
    fn datagrams_are_due_at_the_rate_and_none_is_early() {
        for (rate, most) in [(20_000.0, 1), (100_000.0, 64), (3_000_000.0, 64)] {
            let mut pace = Pace::from_spec(&spec(rate), 1, most).unwrap().unwrap();
            let start = clock::now();
            let end = start + Nanos(20_000_000);
            let mut sent = 0;
            while let Some((burst, now)) = pace.next(start, sent, end) {
                assert!(now.since(start).0 as f64 >= sent as f64 * 1e9 / rate - 1.0 && burst <= most);
                sent += burst as u64;
            }
            // A machine that is busy past the end leaves some unsent; all are counted, and none twice.
            let due = (rate * 0.02).ceil() as u64;
            assert!(sent > 0 && sent <= due + 1, "{sent} of {due}");
            assert_eq!(pace.adherence(start, end, sent).1, due.saturating_sub(sent));
        }
    }

    #[test]
    fn a_sender_that_is_too_slow_stops_at_the_end_and_the_rest_is_unsent() {
        let mut pace = Pace::from_spec(&spec(1e9), 1, 1).unwrap().unwrap();
        let start = clock::now();
        let end = start + Nanos(2_000_000);
        let mut sent = 0;
        while let Some((burst, _)) = pace.next(start, sent, end) {
            sent += burst as u64;
            std::thread::sleep(std::time::Duration::from_micros(500));
        }
        assert!(clock::now() < end + Nanos(1_000_000_000));
        assert_eq!(pace.adherence(start, end, sent).1, 2_000_000 - sent);
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, 1e10] {
            assert!(Pace::from_spec(&spec(rate), 1, 1).is_err(), "{rate}");
        }
    }
}
