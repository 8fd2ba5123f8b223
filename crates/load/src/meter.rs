//! What one thread counts while its window is open. It shares nothing, and is merged when the window is closed.

use linerate_contract::{Adherence, Bytes, Done, ErrorKind, Errors, Nanos, Recorder, Spec};

/// Sent this much after its time, an operation is counted as late: twenty times what a schedule is kept to on a quiet
/// machine, so that what is counted is a want of connections or of CPU and not a wake-up. Twice of it would hide the latter.
const LATE: Nanos = Nanos(1_000_000);

/// What an open loop counts beside.
#[derive(Debug, Default)]
struct Paced {
    service: Recorder,
    delay: Recorder,
    late: u64,
    unsent: u64,
}

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
    /// What the layer tells of its TLS.
    tls: Option<String>,
    /// Of an open loop only: its histograms are a quarter of a megabyte each.
    paced: Option<Box<Paced>>,
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
            tls: None,
            paced: spec.rate.map(|_| Box::default()),
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
        self.begin_several(1) == 1
    }

    /// Takes up to `most` operations out of the budget; how many there were.
    #[inline]
    pub fn begin_several(&mut self, most: u32) -> u32 {
        let count = self.budget.min(most.into());
        self.budget -= count;
        self.open += count;
        count as u32
    }

    /// Operations were begun that nobody will answer, through no fault of the peer: others take their place.
    pub fn withdraw(&mut self, count: u32) {
        self.budget += u64::from(count);
        self.open -= u64::from(count);
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
        if self.is_in_time(took, now, bytes, verified) {
            self.latency.record(took.0);
        }
    }

    /// Counts an answer that took so long; false if it is a timeout and has no latency.
    #[inline]
    fn is_in_time(&mut self, took: Nanos, now: Nanos, bytes: u64, verified: bool) -> bool {
        if took > self.timeout {
            self.fail(ErrorKind::Timeout, now);
            return false;
        }
        self.open -= 1;
        self.end = now;
        self.operations += 1;
        self.bytes += bytes;
        self.verified += u64::from(verified);
        true
    }

    /// Takes one operation that was `due` and begins at `now`.
    #[inline]
    pub fn begin_paced(&mut self, due: Nanos, now: Nanos) {
        self.budget -= 1;
        self.open += 1;
        let delay = now.since(due);
        let paced = self.paced.as_mut().expect(RATE);
        paced.delay.record(delay.0);
        paced.late += u64::from(delay > LATE);
    }

    /// As [`Self::succeed`], of an operation that was `due` before it began.
    #[inline]
    pub fn succeed_paced(&mut self, due: Nanos, began: Nanos, now: Nanos, bytes: u64, verified: bool) {
        let took = now.since(began);
        if self.is_in_time(took, now, bytes, verified) {
            self.latency.record(now.since(due).0);
            self.paced.as_mut().expect(RATE).service.record(took.0);
        }
    }

    /// An operation was due and there is no time left for it.
    pub fn give_up(&mut self) {
        self.budget -= 1;
        self.paced.as_mut().expect(RATE).unsent += 1;
    }

    /// Operations that may still begin.
    #[inline]
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Operations under way.
    #[inline]
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open
    }

    /// What a snapshot shows: operations, bytes, failed ones.
    #[must_use]
    pub fn totals(&self) -> (u64, u64, u64) {
        (self.operations, self.bytes, self.errors.total())
    }

    /// Response times so far.
    #[must_use]
    pub fn latency(&self) -> &Recorder {
        &self.latency
    }

    /// Version, cipher suite and library, where the layer has TLS.
    pub fn secured_by(&mut self, tls: Option<String>) {
        self.tls = tls;
    }

    /// When the window opened.
    #[must_use]
    pub fn started(&self) -> Nanos {
        self.start
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
        if self.tls.is_none() {
            self.tls.clone_from(&other.tls);
        }
        if let (Some(paced), Some(other)) = (&mut self.paced, &other.paced) {
            paced.service.merge(&other.service);
            paced.delay.merge(&other.delay);
            paced.late += other.late;
            paced.unsent += other.unsent;
        }
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
            service: self.paced.as_ref().map(|p| p.service.counts()),
            schedule: self.paced.as_ref().map(|p| Adherence {
                late: p.late,
                unsent: p.unsent,
                delay: p.delay.counts(),
            }),
            connect: Some(self.connect.counts()),
            cpu_ns: cpu,
            verified: self.verified,
            tls: self.tls.clone(),
            ..Done::default()
        }
    }
}

/// The engine paces only where the spec has a rate.
const RATE: &str = "an open loop has a rate";

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
    fn an_open_loop_counts_from_when_an_operation_was_due() {
        let mut spec = Spec::new(Role::Client, "http", "rr");
        (spec.timeout_ns, spec.rate) = (Nanos(5_000_000), Some(1.0));
        let mut m = Meter::new(&spec, Some(3));
        m.start(Nanos(0));
        m.begin_paced(Nanos(10), Nanos(30));
        m.begin_paced(Nanos(20), Nanos(2_000_020));
        m.succeed_paced(Nanos(10), Nanos(30), Nanos(100), 1, false);
        m.succeed_paced(Nanos(20), Nanos(2_000_020), Nanos(2_000_100), 1, false);
        m.give_up();
        let done = m.done(Nanos::ZERO);
        assert_eq!(done.latency.unwrap().min, 90);
        assert_eq!(done.service.unwrap().pairs, [(70, 1), (80, 1)]);
        let schedule = done.schedule.unwrap();
        assert_eq!((schedule.late, schedule.unsent, schedule.delay.min), (1, 1, 20));
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
