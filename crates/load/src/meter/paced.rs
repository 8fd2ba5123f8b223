//! The counts of an open loop beside those of a closed one.

use super::Meter;
use linerate_contract::{Adherence, Nanos, Recorder};

/// An operation that is sent this much after its due time counts as late: twenty times the deviation on a
/// quiet machine, so that it shows a lack of connections or of CPU and not a wake-up. Twice as much would
/// hide a lack of CPU.
const LATE: Nanos = Nanos(1_000_000);

/// Additional counters of an open loop.
#[derive(Debug, Default)]
pub(super) struct PacedCounters {
    pub(super) service: Recorder,
    delay: Recorder,
    late: u64,
    unsent: u64,
    /// Time of the window in which the thread polled in place of a sleep.
    pub(super) polling: Nanos,
}

impl PacedCounters {
    pub(super) fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        self.delay.merge(&other.delay);
        self.late += other.late;
        self.unsent += other.unsent;
        self.polling += other.polling;
    }

    pub(super) fn adherence(&self) -> Adherence {
        Adherence { late: self.late, unsent: self.unsent, delay: self.delay.counts() }
    }
}

impl Meter {
    /// Takes one operation out of the budget that was `due` and begins at `now`.
    #[inline]
    pub fn begin_paced(&mut self, due: Nanos, now: Nanos) {
        self.budget -= 1;
        self.open += 1;
        let delay = now.since(due);
        let paced = self.paced.as_mut().expect(RATE);
        paced.delay.record(delay.0);
        paced.late += u64::from(delay > LATE);
    }

    /// As [`Self::succeed`], for an operation with a due time.
    #[inline]
    pub fn succeed_paced(
        &mut self,
        due: Nanos,
        began: Nanos,
        now: Nanos,
        bytes: u64,
        verified: bool,
    ) -> bool {
        let took = now.since(began);
        let counts = self.is_in_time(took, now, bytes, verified);
        if counts {
            self.latency.record(now.since(due).0);
            self.paced.as_mut().expect(RATE).service.record(took.0);
        }
        counts
    }

    /// An operation was due and is not sent: the time is over.
    pub fn give_up(&mut self) {
        self.budget -= 1;
        self.paced.as_mut().expect(RATE).unsent += 1;
    }

    /// The thread polled for `time` of the window.
    pub fn polled(&mut self, time: Nanos) {
        self.paced.as_mut().expect(RATE).polling = time;
    }
}

/// The engine paces only where the spec has a rate.
const RATE: &str = "an open loop has a rate";
