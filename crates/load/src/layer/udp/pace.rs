//! When how many datagrams are due, in an open loop: by their number, so that rounding does not add up.
//!
//! A burst is what is due within [`SPREAD`]: closer than that no wake-up is exact anyway, and at a million datagrams a second a
//! call for each would measure the calls.

use crate::clock;
use crate::refusal::Refusal;
use linerate_contract::{Adherence, Nanos, Recorder, Spec};

/// A burst holds no more than is due in this time: a wake-up from an idle CPU takes about as long (docs/method.md).
const SPREAD: Nanos = Nanos(50_000);
/// Slept no closer to the due time than this; the rest is spent looking at the clock.
const WAKE_UP: Nanos = Nanos(50_000);
/// Later than this is told as late (sdk/CONTRACT.md).
const LATE: Nanos = Nanos(1_000_000);
/// A datagram a nanosecond is no rate of this world.
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
    /// The part of one of `threads`; `None` for as fast as it goes.
    pub(super) fn of(spec: &Spec, threads: usize, most: usize) -> Result<Option<Self>, Refusal> {
        let Some(rate) = spec.rate else { return Ok(None) };
        if !(rate > 0.0 && rate <= HIGHEST_RATE) {
            return Err(Refusal::BadSpec(format!(
                "\"rate\" must be above 0 and at most {HIGHEST_RATE}: {rate}"
            )));
        }
        let gap = 1e9 / (rate / threads as f64);
        let burst = ((SPREAD.0 as f64 / gap) as usize).clamp(1, most);
        Ok(Some(Self { gap, burst, late: 0, delay: Recorder::default() }))
    }

    /// Waits until the next burst is due (`None`: not before `end`), and tells how many datagrams it has and when it is.
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
        // Too slow for its rate: what is left was never sent on time, and the trial does not grow by it.
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

    /// How it was kept; `sent` until `end`.
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
    use linerate_contract::Role;

    fn spec(rate: f64) -> Spec {
        let mut spec = Spec::new(Role::Client, "udp", "stream");
        spec.rate = Some(rate);
        spec
    }

    #[test]
    fn as_many_are_due_as_the_rate_says_and_none_before_its_time() {
        for (rate, most) in [(20_000.0, 1), (100_000.0, 64), (3_000_000.0, 64)] {
            let mut pace = Pace::of(&spec(rate), 1, most).unwrap().unwrap();
            let start = clock::now();
            let end = start + Nanos(20_000_000);
            let mut sent = 0;
            while let Some((burst, now)) = pace.next(start, sent, end) {
                assert!(now.since(start).0 as f64 >= sent as f64 * 1e9 / rate - 1.0 && burst <= most);
                sent += burst as u64;
            }
            // A machine that is busy past the end leaves some unsent; none is lost from the account, and none is too many.
            let due = (rate * 0.02).ceil() as u64;
            assert!(sent > 0 && sent <= due + 1, "{sent} of {due}");
            assert_eq!(pace.adherence(start, end, sent).1, due.saturating_sub(sent));
        }
    }

    #[test]
    fn a_sender_that_cannot_keep_up_stops_at_the_end_and_the_rest_is_unsent() {
        let mut pace = Pace::of(&spec(1e9), 1, 1).unwrap().unwrap();
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
    fn rates_that_are_none_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, 1e10] {
            assert!(Pace::of(&spec(rate), 1, 1).is_err(), "{rate}");
        }
    }
}
