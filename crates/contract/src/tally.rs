//! The counters of one task of a client, merged at the end.

use crate::datagram::Report;
use crate::{Bytes, Datagrams, Done, ErrorKind, Errors, Nanos, Recorder, clock};
use nix::errno::Errno;
use std::io;

/// Operations so far, with latencies and errors.
#[derive(Debug, Default)]
pub struct Tally {
    operations: u64,
    bytes: u64,
    in_flight: u64,
    /// Operations that end after this time were in flight at the end of the window; none: all count.
    cut: Option<Nanos>,
    end: Nanos,
    /// Time of the longest flow of datagrams, by the server's clock.
    flow: Nanos,
    errors: Errors,
    latency: Option<Recorder>,
    connect: Option<Recorder>,
    datagrams: Option<Datagrams>,
}

impl Tally {
    /// Counts operations that end until `cut`; [`crate::Window::tally`] is the way to it.
    pub(crate) fn until(cut: Option<Nanos>) -> Self {
        Self { cut, ..Self::default() }
    }

    /// An operation that `began` then has succeeded at `now`.
    pub fn succeed(&mut self, began: Nanos, now: Nanos, bytes: u64) {
        self.transferred(began, now, 1, bytes);
    }

    /// A transfer of `writes` writes that `began` then has ended at `now`.
    pub fn transferred(&mut self, began: Nanos, now: Nanos, writes: u64, bytes: u64) {
        if self.was_in_flight(now) {
            return;
        }
        self.operations += writes;
        self.bytes += bytes;
        self.end = now;
        self.latency.get_or_insert_default().record(now.since(began).0);
    }

    /// An operation without payload and latency has succeeded at `now`; whether it counts.
    pub fn ended(&mut self, now: Nanos) -> bool {
        let counts = !self.was_in_flight(now);
        if counts {
            self.operations += 1;
            self.end = now;
        }
        counts
    }

    /// A connection is established.
    pub fn connected(&mut self, took: Nanos) {
        self.connect.get_or_insert_default().record(took.0);
    }

    /// An operation has failed now. After the window only the end of its time is a failure.
    pub fn fail(&mut self, kind: ErrorKind) {
        let now = clock::now();
        let is_timeout = matches!(kind, ErrorKind::Timeout | ErrorKind::ConnectTimeout);
        if self.was_in_flight(now) && !is_timeout {
            return;
        }
        self.errors.add(kind, 1);
        self.end = now;
    }

    /// Counts an operation that ends after the window.
    fn was_in_flight(&mut self, now: Nanos) -> bool {
        let was = self.cut.is_some_and(|cut| now > cut);
        self.in_flight += u64::from(was);
        was
    }

    /// Bytes of a stream in writes of `size`: good ones at the receiver, and wanted ones.
    pub fn streamed(&mut self, good: u64, wanted: u64, size: u64) {
        self.operations += good.div_ceil(size);
        self.bytes += good;
        self.errors.add(ErrorKind::WrongContent, wanted.saturating_sub(good).div_ceil(size));
        self.end = clock::now();
    }

    /// A flow of datagrams, the last of which was sent at `stopped`, with the server's report.
    pub fn flowed(&mut self, sent: u64, stopped: Nanos, report: &Report) {
        self.operations += report.received;
        self.bytes += report.bytes;
        self.end = self.end.max(stopped);
        self.flow = self.flow.max(report.duration());
        *self.datagrams.get_or_insert_default() += Datagrams::of_flow(sent, report);
    }

    /// Adds the counters of another task.
    pub fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.in_flight += other.in_flight;
        self.end = self.end.max(other.end);
        self.flow = self.flow.max(other.flow);
        self.errors.merge(&other.errors);
        if let Some(datagrams) = other.datagrams {
            *self.datagrams.get_or_insert_default() += datagrams;
        }
        for (sum, part) in [(&mut self.latency, &other.latency), (&mut self.connect, &other.connect)] {
            if let Some(part) = part {
                sum.get_or_insert_default().merge(part);
            }
        }
    }

    /// The result, with the end of the last operation. [`crate::Window::done`] has the end of the window.
    pub(crate) fn done(&self, start: Nanos, cpu: Nanos, verified: impl Fn(u64, u64) -> u64) -> Done {
        Done {
            operations: self.operations,
            bytes: Bytes(self.bytes),
            start_ns: start,
            in_flight: self.in_flight,
            end_ns: self.end.max(Nanos(start.0.saturating_add(self.flow.0))),
            errors: self.errors.clone(),
            latency: self.latency.as_ref().map(Recorder::counts),
            connect: self.connect.as_ref().map(Recorder::counts),
            cpu_ns: cpu,
            datagrams: self.datagrams,
            verified: verified(self.operations, self.bytes),
            ..Done::default()
        }
    }
}

/// The kind of an error before a connection is established.
#[must_use]
pub fn connect_error(error: &io::Error) -> ErrorKind {
    match (error.kind(), error.raw_os_error().map(Errno::from_raw)) {
        (io::ErrorKind::ConnectionRefused, _) => ErrorKind::ConnectRefused,
        (io::ErrorKind::TimedOut, _) => ErrorKind::ConnectTimeout,
        (io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse, _) => ErrorKind::AddressExhausted,
        (_, Some(Errno::EMFILE | Errno::ENFILE)) => ErrorKind::DescriptorExhausted,
        _ => ErrorKind::ConnectFailed,
    }
}

/// The kind of an error on an established connection.
#[must_use]
pub fn stream_error(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            ErrorKind::Reset
        }
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        _ => ErrorKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_several_tasks_add_up() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.succeed(Nanos(100), Nanos(150), 10);
        one.connected(Nanos(7));
        other.transferred(Nanos(100), Nanos(400), 3, 30);
        one.merge(&other);
        one.fail(ErrorKind::Reset);
        let done = one.done(Nanos(100), Nanos(9), |operations, _| operations);
        assert_eq!((done.operations, done.bytes, done.verified), (4, Bytes(40), 4));
        assert_eq!((done.latency.unwrap().total(), done.connect.unwrap().total()), (2, 1));
        assert_eq!((done.errors.0[&ErrorKind::Reset], done.cpu_ns), (1, Nanos(9)));
        assert!(done.end_ns > Nanos(400), "a failure is the end of an operation, too");
    }

    #[test]
    fn an_error_has_another_kind_before_a_connection_is_established() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(
            (connect_error(&reset), stream_error(&reset)),
            (ErrorKind::ConnectFailed, ErrorKind::Reset)
        );
        let exhausted = io::Error::from_raw_os_error(Errno::EMFILE as i32);
        assert_eq!(connect_error(&exhausted), ErrorKind::DescriptorExhausted);
    }

    #[test]
    fn flows_last_as_long_as_by_the_servers_clock_from_the_clients_start() {
        let mut sum = Tally::default();
        for (first_ns, last_ns) in [(7_000, 9_500), (100, 1_100), (5, 3)] {
            let mut one = Tally::default();
            let report = Report { received: 2, first_ns, last_ns, ..Report::default() };
            one.flowed(3, Nanos(1_002_000), &report);
            sum.merge(&one);
        }
        let end = |start| sum.done(Nanos(start), Nanos(0), |_, bytes| bytes).end_ns;
        assert_eq!((sum.operations, end(1_000_000)), (6, Nanos(1_002_500)));
        // The client sent for longer than the server received.
        assert_eq!(end(999_000), Nanos(1_002_000));
    }
}
