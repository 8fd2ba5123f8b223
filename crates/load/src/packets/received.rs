//! Lines that a server of datagrams prints while a client sends: samples of what has arrived.

use crate::process::emit;
use linerate_contract::{Bytes, Event, Nanos, Sample, Spec};

/// Sums over all flows. Only datagrams have numbers, by which some are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) missing: Option<i64>,
}

/// Prints what has arrived since the sample before, at the interval of the spec.
#[derive(Debug)]
pub(crate) struct ReceiverSampler {
    every: Nanos,
    /// When the first data after the last beginning arrived.
    start: Option<Nanos>,
    next: Nanos,
    reported: Received,
}

impl ReceiverSampler {
    /// `None` if the spec requests no samples.
    pub(crate) fn from_spec(spec: &Spec) -> Option<Self> {
        let every = spec.sample_ns.filter(|every| *every > Nanos::ZERO)?;
        Some(Self { every, start: None, next: Nanos::ZERO, reported: Received::default() })
    }

    /// A client begins to send.
    pub(crate) fn begin(&mut self, received: Received) {
        (self.start, self.next, self.reported) = (None, Nanos::ZERO, received);
    }

    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    #[cold]
    pub(crate) fn take(&mut self, now: Nanos, received: Received) {
        if received.bytes == self.reported.bytes {
            return;
        }
        let start = *self.start.get_or_insert(now);
        if now > start {
            let lost = received.missing.map(|missing| missing - self.reported.missing.unwrap_or(0));
            emit(&Event::Sample(Sample {
                at_ns: now.since(start),
                operations: received.operations - self.reported.operations,
                bytes: Bytes(received.bytes - self.reported.bytes),
                failed: 0,
                latency: None,
                lost,
                rtt_us: None,
            }));
            self.reported = received;
        }
        self.next = start + Nanos((now.since(start).0 / self.every.0 + 1) * self.every.0);
    }
}
