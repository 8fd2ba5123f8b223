//! What one task counts; merged when all have ended.

use crate::clock;
use linerate_contract::datagram::Report;
use linerate_contract::{Bytes, Datagrams, Done, ErrorKind, Errors, Nanos, Recorder};
use std::io;

#[derive(Debug, Default)]
pub struct Tally {
    operations: u64,
    bytes: u64,
    end: Nanos,
    errors: Errors,
    latency: Option<Recorder>,
    connect: Option<Recorder>,
    datagrams: Option<Datagrams>,
}

impl Tally {
    /// An operation that `began` then has ended well at `now`.
    pub fn succeed(&mut self, began: Nanos, now: Nanos, bytes: u64) {
        self.operations += 1;
        self.bytes += bytes;
        self.end = now;
        self.latency.get_or_insert_default().record(now.since(began).0);
    }

    pub fn connected(&mut self, took: Nanos) {
        self.connect.get_or_insert_default().record(took.0);
    }

    pub fn fail(&mut self, kind: ErrorKind) {
        self.errors.add(kind, 1);
        self.end = clock::now();
    }

    /// Bytes of a stream, in writes of `size`: so many were wanted, so many were good at the receiver.
    pub fn streamed(&mut self, good: u64, wanted: u64, size: u64) {
        self.operations += good.div_ceil(size);
        self.bytes += good;
        self.errors.add(ErrorKind::WrongContent, wanted.saturating_sub(good).div_ceil(size));
        self.end = clock::now();
    }

    /// A flow of datagrams, of which the server tells what it received.
    pub fn flowed(&mut self, sent: u64, report: &Report) {
        self.operations += report.received;
        self.bytes += report.bytes;
        self.end = self.end.max(Nanos(report.last_ns));
        *self.datagrams.get_or_insert_default() += Datagrams::of_flow(sent, report);
    }

    pub fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.end = self.end.max(other.end);
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

    /// `verified`: of messages the operations, of a stream the bytes.
    pub fn done(&self, start: Nanos, cpu: Nanos, verified: impl Fn(u64, u64) -> u64) -> Done {
        Done {
            operations: self.operations,
            bytes: Bytes(self.bytes),
            start_ns: start,
            end_ns: self.end.max(start),
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

/// What an error means before a connection stood.
pub fn connect_error(error: &io::Error) -> ErrorKind {
    match (error.kind(), error.raw_os_error().map(nix::errno::Errno::from_raw)) {
        (io::ErrorKind::ConnectionRefused, _) => ErrorKind::ConnectRefused,
        (io::ErrorKind::TimedOut, _) => ErrorKind::ConnectTimeout,
        (io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse, _) => ErrorKind::AddressExhausted,
        (_, Some(nix::errno::Errno::EMFILE | nix::errno::Errno::ENFILE)) => ErrorKind::DescriptorExhausted,
        _ => ErrorKind::ConnectFailed,
    }
}

/// What an error means on a connection that stood.
pub fn stream_error(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            ErrorKind::Reset
        }
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        _ => ErrorKind::Failed,
    }
}
