//! Counts beside the response time: the first byte, events within a response, and each of several requests by
//! itself.

use super::Meter;
use linerate_contract::{Counts, ErrorKind, Errors, EventCounts, Nanos, Recorder, RequestCounts, Spec};

/// More requests than this have no rows: nobody reads them, and a histogram has a quarter of a megabyte.
const MOST_ROWS: usize = 1_000;

/// Responses whose first byte and end were not in the same read.
#[derive(Debug, Default)]
pub(super) struct Split {
    first: Recorder,
    whole: Recorder,
}

/// Events within responses.
#[derive(Debug, Default)]
pub(super) struct EventCounters {
    count: u64,
    first: Recorder,
    gap: Recorder,
}

/// The operations of one request.
#[derive(Debug, Default)]
pub(super) struct Row {
    errors: Errors,
    latency: Recorder,
}

/// A row for each request of `spec`, if it has several.
pub(super) fn rows(spec: &Spec) -> Box<[Row]> {
    let count = if spec.requests.len() > MOST_ROWS { 0 } else { spec.requests.len() };
    (0..count).map(|_| Row::default()).collect()
}

impl Meter {
    /// Whether operations are counted by request.
    #[inline]
    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Whether events within responses are timed.
    #[inline]
    pub fn times_events(&self) -> bool {
        self.events.is_some()
    }

    /// Counts what an operation has beside its response time, if it `counts`: which request it was, and when
    /// its `first` byte arrived, or zero if its response arrived at once.
    pub fn details(&mut self, counts: bool, request: u32, began: Nanos, first: Nanos, now: Nanos) {
        if !counts {
            return;
        }
        let took = now.since(began).0;
        if first != Nanos::ZERO {
            let split = self.split.get_or_insert_default();
            split.first.record(first.since(began).0);
            split.whole.record(took);
        }
        if let Some(row) = self.rows.get_mut(request as usize) {
            row.latency.record(took);
        }
    }

    /// As [`Meter::fail`], of this one of several requests; `None`: none was chosen yet.
    #[cold]
    pub fn fail_of(&mut self, request: Option<u32>, kind: ErrorKind, began: Nanos, now: Nanos) {
        let before = self.errors.total();
        let kind = self.fail(kind, began, now);
        let row = request.and_then(|request| self.rows.get_mut(request as usize));
        if let Some(row) = row.filter(|_| self.errors.total() > before) {
            row.errors.add(kind, 1);
        }
    }

    /// So many events arrived at `now`, and those before them at `last`; zero: they are the first of an
    /// operation that began at `began`.
    pub fn events(&mut self, count: u32, began: Nanos, last: Nanos, now: Nanos) {
        let Some(events) = self.events.as_mut().filter(|_| now < self.window_end) else { return };
        events.count += u64::from(count);
        match last {
            Nanos::ZERO => events.first.record(now.since(began).0),
            _ => events.gap.record(now.since(last).0),
        }
        (1..count).for_each(|_| events.gap.record(0));
    }

    pub(super) fn merge_details(&mut self, other: &Self) {
        if let Some(other) = &other.split {
            let split = self.split.get_or_insert_default();
            split.first.merge(&other.first);
            split.whole.merge(&other.whole);
        }
        if let (Some(events), Some(other)) = (&mut self.events, &other.events) {
            events.count += other.count;
            events.first.merge(&other.first);
            events.gap.merge(&other.gap);
        }
        for (row, other) in self.rows.iter_mut().zip(&other.rows) {
            row.errors.merge(&other.errors);
            row.latency.merge(&other.latency);
        }
    }

    /// The time to the first byte of every operation, unless all responses arrived at once.
    pub(super) fn first_byte(&self) -> Option<Counts> {
        self.split.as_ref().map(|split| {
            let mut all = self.latency.clone();
            all.subtract(&split.whole);
            all.merge(&split.first);
            all.counts()
        })
    }

    pub(super) fn event_counts(&self) -> Option<EventCounts> {
        let of = |events: &EventCounters| EventCounts {
            count: events.count,
            first: events.first.counts(),
            gap: events.gap.counts(),
        };
        self.events.as_deref().map(of)
    }

    pub(super) fn request_counts(&self) -> Vec<RequestCounts> {
        let of = |row: &Row| {
            let latency = row.latency.counts();
            RequestCounts { operations: latency.total(), errors: row.errors.clone(), latency }
        };
        self.rows.iter().map(of).collect()
    }
}
