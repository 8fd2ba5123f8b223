//! What one thread counts while its window is open. It shares nothing, and is merged when the window is closed.

use linerate_contract::{Bytes, Done, ErrorKind, Errors, Nanos, Recorder, Spec};

/// The account of one thread.
#[derive(Debug)]
pub struct Meter {
    /// Operations that may still begin.
    budget: u64,
    /// Operations begun and not ended.
    open: u64,
    /// Length of the window, and where it ends once it began.
    duration: Nanos,
    window_end: Nanos,
    timeout: Nanos,
    start: Nanos,
    end: Nanos,
    operations: u64,
    bytes: u64,
    verified: u64,
    errors: Errors,
    latency: Recorder,
    connect: Recorder,
}

impl Meter {
    /// The account of a thread that is to do `budget` operations (`None`: as many as the time allows).
    #[must_use]
    pub fn new(spec: &Spec, budget: Option<u64>) -> Self {
        Self {
            budget: budget.unwrap_or(u64::MAX),
            open: 0,
            duration: spec.duration_ns.unwrap_or(Nanos(u64::MAX)),
            window_end: Nanos(u64::MAX),
            timeout: spec.timeout_ns,
            start: Nanos::ZERO,
            end: Nanos::ZERO,
            operations: 0,
            bytes: 0,
            verified: 0,
            errors: Errors::default(),
            latency: Recorder::default(),
            connect: Recorder::default(),
        }
    }

    /// Opens the window.
    pub fn start(&mut self, now: Nanos) {
        self.start = now;
        self.end = now;
        self.window_end = now + self.duration;
    }

    /// Takes one operation out of the budget; false if none is left.
    #[inline]
    pub fn begin(&mut self) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        self.open += 1;
        true
    }

    /// The connection of an operation stood after `took`.
    #[inline]
    pub fn connected(&mut self, took: Nanos) {
        self.connect.record(took.0);
    }

    /// An operation ended at `now` with a good answer. One that took longer than the deadline is a timeout, even if
    /// the sweep did not come by in between.
    #[inline]
    pub fn succeed(&mut self, began: Nanos, now: Nanos, bytes: u64, verified: bool) {
        let took = now.since(began);
        if took > self.timeout {
            self.fail(ErrorKind::Timeout, now);
            return;
        }
        self.open -= 1;
        self.end = now;
        self.operations += 1;
        self.bytes += bytes;
        self.verified += u64::from(verified);
        self.latency.record(took.0);
    }

    /// An operation ended at `now` without one.
    #[cold]
    pub fn fail(&mut self, kind: ErrorKind, now: Nanos) {
        self.open -= 1;
        self.end = now;
        self.errors.add(kind, 1);
    }

    /// Whether there is still something to wait for at `now`.
    #[inline]
    #[must_use]
    pub fn running(&self, now: Nanos) -> bool {
        now < self.window_end && (self.budget > 0 || self.open > 0)
    }

    /// How long one operation may take.
    #[must_use]
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// The window's end, or the end of time.
    #[must_use]
    pub fn window_end(&self) -> Nanos {
        self.window_end
    }

    /// Adds another thread's account.
    pub fn merge(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.verified += other.verified;
        self.errors.merge(&other.errors);
        self.latency.merge(&other.latency);
        self.connect.merge(&other.connect);
    }

    /// The account as it travels.
    #[must_use]
    pub fn done(&self, cpu: Nanos) -> Done {
        Done {
            operations: self.operations,
            bytes: Bytes(self.bytes),
            start_ns: self.start,
            end_ns: self.end,
            errors: self.errors.clone(),
            latency: Some(self.latency.counts()),
            connect: Some(self.connect.counts()),
            cpu_ns: cpu,
            verified: self.verified,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    fn meter(budget: u64) -> Meter {
        let mut spec = Spec::new(Role::Client, "http", "crr");
        spec.timeout_ns = Nanos(100);
        Meter::new(&spec, Some(budget))
    }

    #[test]
    fn an_operation_is_counted_once_as_good_or_bad() {
        let mut m = meter(3);
        m.start(Nanos(10));
        assert!(m.begin() && m.begin() && m.begin() && !m.begin());
        m.succeed(Nanos(10), Nanos(60), 5, true);
        m.succeed(Nanos(10), Nanos(111), 5, true);
        assert!(m.running(Nanos(120)));
        m.fail(ErrorKind::Reset, Nanos(130));
        assert!(!m.running(Nanos(130)));
        let done = m.done(Nanos(7));
        assert_eq!((done.operations, done.bytes, done.verified, done.errors.total()), (1, Bytes(5), 1, 2));
        assert_eq!(done.errors.0[&ErrorKind::Timeout], 1);
        assert_eq!((done.start_ns, done.end_ns), (Nanos(10), Nanos(130)));
    }

    #[test]
    fn merged_accounts_add_up_and_span_both_windows() {
        let (mut a, mut b) = (meter(1), meter(1));
        a.start(Nanos(5));
        b.start(Nanos(3));
        assert!(a.begin() && b.begin());
        a.succeed(Nanos(5), Nanos(8), 1, false);
        b.succeed(Nanos(3), Nanos(7), 2, false);
        a.merge(&b);
        let done = a.done(Nanos::ZERO);
        assert_eq!((done.operations, done.bytes), (2, Bytes(3)));
        assert_eq!((done.start_ns, done.end_ns), (Nanos(3), Nanos(8)));
    }
}
