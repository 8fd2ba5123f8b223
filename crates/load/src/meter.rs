//! The counters of one thread while its window is open. Nothing is shared; they are merged after the window.

mod details;
mod paced;
mod result;
mod statuses;
#[cfg(test)]
mod tests;
mod turns;

use crate::cause;
use crate::layer::Layer;
use crate::refusal::Refusal;
use details::{EventCounters, Row, Split};
use linerate_contract::{Alternation, Done, ErrorKind, Errors, Nanos, Recorder, Spec, TcpInfo, Workload};
use paced::PacedCounters;
use statuses::Statuses;

/// The loop looks at least so often whether operations have ended: the resolution of the longest stall, and a
/// tenth of the shortest window. Half as much would only wake an idle loop more often.
pub const LOOK: Nanos = Nanos(50_000_000);

/// The longest `options.patience_ms`: a minute.
const MAX_PATIENCE_MS: u64 = 60_000;

/// The counters of one thread.
#[derive(Debug, Default)]
pub struct Meter {
    /// Operations that may still begin.
    budget: u64,
    /// Operations begun and not ended.
    open: u64,
    /// Length of the window, and where it ends once it began.
    duration: Nanos,
    window_end: Nanos,
    /// Operations of a closed loop begin until this time: the end of the window, or of a turn.
    begins_until: Nanos,
    /// In a closed loop that works in turns.
    alternation: Option<Alternation>,
    next_turn: Nanos,
    /// Transfers of a `stream` in flight at the window's end are finished (sdk/CONTRACT.md).
    finishes: bool,
    /// Operations that end at this time or later do not count: the window's end, or no time where all that
    /// has begun is finished.
    counts_until: Nanos,
    /// Operations that ended after the window, and those that ended within it and do not count.
    in_flight: u64,
    uncounted: u64,
    /// Connections that the peer closed while nothing was under way on them.
    closed_idle: u64,
    /// Connections whose first operation is under way at the end of the window.
    unserved: u64,
    /// Operations at the last look, when that was, and the longest time between two looks with progress. In a
    /// stream, bytes that move are progress.
    seen: u64,
    has_moved: bool,
    seen_at: Nanos,
    stall: Nanos,
    timeout: Nanos,
    /// How long connections are awaited before the window, and operations after it.
    patience: Nanos,
    /// An operation that took longer has failed.
    longest: Nanos,
    start: Nanos,
    end: Nanos,
    operations: u64,
    bytes: u64,
    verified: u64,
    errors: Errors,
    latency: Recorder,
    connect: Recorder,
    /// Times of responses that did not arrive at once.
    split: Option<Box<Split>>,
    /// Where events are timed.
    events: Option<Box<EventCounters>>,
    /// Operations by request, of several.
    rows: Box<[Row]>,
    /// The layer's part of the result, with the causes of failures.
    of_layer: Done,
    /// Times of responses of HTTP by status.
    by_status: Statuses,
    /// The kernel's statistics of all connections.
    tcp: Option<TcpInfo>,
    /// Only in an open loop: its histograms have a quarter of a megabyte each.
    paced: Option<Box<PacedCounters>>,
}

impl Meter {
    /// Counters of a thread with `budget` operations (`None`: as many as the time allows).
    ///
    /// # Errors
    /// `options.patience_ms` is no number.
    pub fn new(spec: &Spec, budget: Option<u64>) -> Result<Self, Refusal> {
        let finishes = spec.workload == Workload::Stream;
        let patience = spec.number("patience_ms", 1..=MAX_PATIENCE_MS)?;
        Ok(Self {
            budget: budget.unwrap_or(u64::MAX),
            duration: spec.duration_ns.unwrap_or(Nanos(u64::MAX)),
            window_end: Nanos(u64::MAX),
            begins_until: Nanos(u64::MAX),
            alternation: spec.alternation,
            next_turn: Nanos(u64::MAX),
            finishes,
            counts_until: Nanos(u64::MAX),
            timeout: spec.timeout_ns,
            patience: patience.map_or(Nanos(u64::MAX), |ms| Nanos(ms * 1_000_000)),
            longest: if finishes { Nanos(u64::MAX) } else { spec.timeout_ns },
            paced: spec.rate.map(|_| Box::default()),
            events: spec.option("events").map(|_| Box::default()),
            rows: details::rows(spec),
            ..Self::default()
        })
    }

    /// Opens the window.
    pub fn start(&mut self, now: Nanos) {
        self.start = now;
        self.end = now;
        self.window_end = now + self.duration;
        self.begins_until = self.window_end;
        self.seen_at = now;
        // An open loop awaits every response: to leave out the last ones would leave out the slowest.
        if !self.finishes && self.paced.is_none() {
            self.counts_until = self.window_end;
            self.take_turn(now);
        }
    }

    /// Closes the window at `now`: where its time is over, it ends with its time and not with the last
    /// operation.
    pub fn close(&mut self, now: Nanos) {
        // A stream that has failed and an open loop that has sent all end before the time is over.
        let ends_early = self.finishes && self.errors.total() > 0 || self.paced.is_some() && self.budget > 0;
        if now >= self.window_end || ends_early && self.window_end != Nanos(u64::MAX) {
            self.end = self.end.max(self.window_end);
        }
        self.look(now);
        self.stall = self.stall.max(self.waited(self.end.min(self.window_end)));
    }

    /// Notes at `now` whether operations have ended since the last look, by one interval of looks ago. A
    /// stall is never reported as longer than it was.
    pub fn look(&mut self, now: Nanos) {
        if std::mem::take(&mut self.has_moved) || self.operations != self.seen {
            self.stall = self.stall.max(self.waited(now.min(self.window_end)).since(LOOK));
            (self.seen, self.seen_at) = (self.operations, now);
        }
    }

    /// The time from the last look with progress to `now`; without the turns of another client.
    fn waited(&self, now: Nanos) -> Nanos {
        self.alternation.map_or(now.since(self.seen_at), |turns| turns.counted(self.seen_at, now))
    }

    /// So many connections wait for the end of their first operation.
    pub fn leave_unserved(&mut self, connections: usize) {
        self.unserved = connections as u64;
    }

    /// Bytes of a stream have moved.
    #[inline]
    pub fn moved(&mut self) {
        self.has_moved = true;
    }

    /// Adds the statistics of a connection.
    pub fn add_tcp(&mut self, info: Option<TcpInfo>) {
        self.tcp = self.tcp.into_iter().chain(info).reduce(TcpInfo::with);
    }

    /// The client was stopped at `now`, before its time: operations in flight have no result.
    pub fn stop(&mut self, now: Nanos) {
        let most = if self.alternation.is_some() { self.window_end } else { self.counts_until };
        self.end = now.min(most).max(self.end);
        self.in_flight += self.open;
    }

    /// Takes one operation out of the budget; false if none is left.
    #[inline]
    pub fn begin(&mut self) -> bool {
        self.begin_several(1) == 1
    }

    /// As [`Self::begin`] at `now`: false if the window is over, except for a connection's `first` transfer.
    #[inline]
    pub fn begin_at(&mut self, now: Nanos, first: bool) -> bool {
        (now < self.begins_until || (first && self.finishes)) && self.begin()
    }

    /// Takes up to `max` operations out of the budget; returns their number.
    #[inline]
    pub fn begin_several(&mut self, max: u32) -> u32 {
        let count = self.budget.min(max.into());
        self.budget -= count;
        self.open += count;
        count as u32
    }

    /// The connection of an operation was established after `took`.
    #[inline]
    pub fn connected(&mut self, took: Nanos) {
        self.connect.record(took.0);
    }

    /// An operation ended at `now` with a good response. If it took longer than the deadline it counts as a
    /// timeout, even if no sweep was in between. Returns whether it counts.
    #[inline]
    pub fn succeed(&mut self, began: Nanos, now: Nanos, bytes: u64, verified: bool) -> bool {
        let took = now.since(began);
        let counts = self.is_in_time(took, now, bytes, verified);
        if counts {
            self.latency.record(took.0);
        }
        counts
    }

    /// Counts a response after `took`; false if that is a timeout, which has no latency.
    #[inline]
    fn is_in_time(&mut self, took: Nanos, now: Nanos, bytes: u64, verified: bool) -> bool {
        if took > self.longest {
            self.failed(ErrorKind::Timeout, now);
            return false;
        }
        self.open -= 1;
        if now >= self.counts_until && !self.counts_again(now) {
            self.leave_out(now);
            return false;
        }
        self.end = now;
        self.operations += 1;
        self.bytes += bytes;
        self.verified += u64::from(verified);
        true
    }

    /// The peer has closed a connection that owed nothing.
    pub fn closed_idle(&mut self) {
        self.closed_idle += 1;
    }

    /// Operations that may still begin.
    #[inline]
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Operations in flight.
    #[inline]
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Operations, bytes and failures so far.
    pub fn totals(&self) -> (u64, u64, u64) {
        (self.operations, self.bytes, self.errors.total())
    }

    /// Response times so far, without those that samples have taken.
    #[cfg(test)]
    pub(crate) fn latency(&self) -> &Recorder {
        &self.latency
    }

    /// Returns the response times so far, and continues with `empty`.
    pub(crate) fn swap_latency(&mut self, empty: Recorder) -> Recorder {
        std::mem::replace(&mut self.latency, empty)
    }

    /// Adds response times that a sample had taken.
    pub(crate) fn add_latency(&mut self, latency: &Recorder) {
        self.latency.merge(latency);
    }

    /// Takes what the layer has found out and counted.
    pub fn answered_by(&mut self, layer: &impl Layer) {
        self.of_layer = Done { causes: cause::take(), ..layer.counts() };
    }

    /// When the window opened.
    pub fn started(&self) -> Nanos {
        self.start
    }

    /// An operation failed at `now`. If it took longer than the deadline it is a timeout, whatever the peer
    /// said then. Returns its kind.
    #[cold]
    pub fn fail(&mut self, kind: ErrorKind, began: Nanos, now: Nanos) -> ErrorKind {
        let is_late = now.since(began) > self.longest && kind != ErrorKind::ConnectTimeout;
        let kind = if is_late { ErrorKind::Timeout } else { kind };
        self.failed(kind, now);
        kind
    }

    /// An operation failed at `now`. After the window only one that has not ended in time has failed: a peer
    /// may close connections once the work is over.
    #[cold]
    fn failed(&mut self, kind: ErrorKind, now: Nanos) {
        self.open -= 1;
        if now >= self.counts_until && now >= self.window_end {
            self.in_flight += 1;
            if matches!(kind, ErrorKind::Timeout | ErrorKind::ConnectTimeout) {
                self.errors.add(kind, 1);
            }
            return;
        }
        self.end = now;
        self.errors.add(kind, 1);
    }

    /// Whether the window is open at `now` and operations are left or in flight.
    #[inline]
    pub fn running(&self, now: Nanos) -> bool {
        now < self.window_end && (self.budget > 0 || self.open > 0)
    }

    /// How long one operation may take.
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// How long connections are awaited before the window.
    pub fn connects_within(&self) -> Nanos {
        self.timeout.min(self.patience)
    }

    /// Until when operations in flight are awaited once the window is over; the maximum: until they have
    /// ended.
    pub fn awaits_until(&self) -> Nanos {
        Nanos(self.window_end.0.saturating_add(self.patience.0))
    }

    /// The window's end; the maximum where the spec has no duration.
    pub fn window_end(&self) -> Nanos {
        self.window_end
    }
}
