//! The time of a client's trial.

use crate::tally::Tally;
use crate::{Done, Layer, Nanos, Spec, Workload, clock};
use std::sync::OnceLock;

/// Ends at the end of the spec's duration, or with the last of its operations; streams end with their last
/// transfer if that is later.
#[derive(Debug)]
pub struct Window {
    start: Nanos,
    end: Option<Nanos>,
    cpu: Nanos,
    /// The CPU time at the end.
    used: OnceLock<Nanos>,
    operations: Option<u64>,
    /// Transfers in flight at the end are finished and count.
    is_stream: bool,
    /// Datagrams: the bytes once, and not until the time is over.
    sends_once: bool,
}

impl Window {
    /// Opens the window: all connections are established.
    #[must_use]
    pub fn open(spec: &Spec) -> Self {
        let (start, cpu) = (clock::now(), clock::process_cpu());
        Self {
            start,
            end: spec.duration_ns.map(|duration| Nanos(start.0.saturating_add(duration.0))),
            cpu,
            used: OnceLock::new(),
            operations: spec.operations,
            is_stream: spec.workload == Workload::Stream,
            sends_once: spec.bytes.is_some() && matches!(spec.layer, Layer::Udp | Layer::Kcp),
        }
    }

    #[must_use]
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// The counters of one task.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally::until(self.end.filter(|_| !self.is_stream))
    }

    /// Whether no operation may begin now. The first call after the end reads the CPU time: waiting for
    /// operations in flight takes none.
    pub fn is_over(&self, now: Nanos) -> bool {
        let is_over = self.end.is_some_and(|end| now >= end);
        if is_over {
            self.used();
        }
        is_over
    }

    fn used(&self) -> Nanos {
        *self.used.get_or_init(|| clock::process_cpu().since(self.cpu))
    }

    /// The result. `verified` gets operations and bytes, and returns operations (messages) or bytes
    /// (streams).
    #[must_use]
    pub fn done(&self, sum: &Tally, verified: impl Fn(u64, u64) -> u64) -> Done {
        let mut done = sum.done(self.start, self.used(), verified);
        let made = done.operations + done.errors.total();
        let is_used_up = match self.is_stream {
            true => self.sends_once,
            false => done.in_flight == 0 && self.operations.is_some_and(|all| made >= all),
        };
        done.end_ns = match self.end {
            Some(end) if !is_used_up && self.is_stream => done.end_ns.max(end),
            Some(end) if !is_used_up => end,
            _ => done.end_ns,
        };
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Role};

    const DURATION: Nanos = Nanos(1_000_000);

    fn open(workload: Workload, operations: Option<u64>) -> Window {
        let mut spec = Spec::new(Role::Client, Layer::Tcp, workload);
        (spec.duration_ns, spec.operations) = (Some(DURATION), operations);
        Window::open(&spec)
    }

    #[test]
    fn a_timed_window_ends_at_its_end_and_leaves_out_what_was_in_flight() {
        let window = open(Workload::Rr, Some(9));
        let (start, mut sum) = (window.start(), Tally::default());
        let mut tally = window.tally();
        tally.succeed(start, start + Nanos(10), 5);
        tally.succeed(start, start + DURATION + Nanos(1), 5);
        while !window.is_over(clock::now()) {}
        std::thread::sleep(DURATION.into());
        tally.fail(ErrorKind::Reset);
        tally.fail(ErrorKind::Timeout);
        sum.merge(&tally);
        let done = window.done(&sum, |operations, _| operations);
        assert_eq!((done.operations, done.bytes.0, done.in_flight), (1, 5, 3));
        assert_eq!((done.end_ns.since(start), done.latency.unwrap().total()), (DURATION, 1));
        assert_eq!((done.errors.total(), done.errors.0[&ErrorKind::Timeout]), (1, 1));
    }

    #[test]
    fn a_window_whose_operations_are_used_up_ends_with_the_last_of_them() {
        let window = open(Workload::Rr, Some(2));
        let (start, mut tally) = (window.start(), window.tally());
        for (after, end) in [(10, DURATION), (20, Nanos(20))] {
            tally.succeed(start, start + Nanos(after), 1);
            assert_eq!(window.done(&tally, |_, bytes| bytes).end_ns.since(start), end);
        }
    }

    #[test]
    fn a_stream_ends_with_its_last_transfer_but_never_before_its_time() {
        let window = open(Workload::Stream, None);
        let (start, mut tally) = (window.start(), window.tally());
        for (after, end) in [(Nanos(10), DURATION), (DURATION + Nanos(7), DURATION + Nanos(7))] {
            tally.transferred(start, start + after, 3, 1);
            assert_eq!(window.done(&tally, |_, bytes| bytes).end_ns.since(start), end);
        }
        assert_eq!(window.done(&tally, |operations, _| operations).verified, 6);
    }
}
