//! A thread of the client of `stream`: an epoll loop over its connections.

use super::client::StreamStopCondition;
use super::{Incoming, Number, Outgoing, Payload, Progress, exchange};
use crate::process::Stop;
use crate::refusal::{Doing, Refusal};
use crate::socket::stream_error;
use crate::waiter::Waiter;
use crate::{clock, tcp_info};
use linerate_contract::{Direction, ErrorKind, Errors, Nanos, Recorder, TcpInfo};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{Shutdown, shutdown};
use std::os::fd::{AsRawFd, OwnedFd};

/// Events taken per wait.
const BATCH: usize = 64;
/// A peer that moves no byte is noticed at most 1/8 of the timeout late.
const CHECKS_PER_TIMEOUT: u64 = 8;
/// The longest wait for a stop request while nothing moves.
/// It is also the resolution of the longest stall, a tenth of the shortest window.
const LONGEST_CHECK: Nanos = Nanos(50_000_000);

/// The result of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadTotals {
    pub(super) good: u64,
    pub(super) writes: u64,
    pub(super) end: Nanos,
    pub(super) cpu: Nanos,
    pub(super) errors: Errors,
    /// The longest time in which no connection moved a byte.
    pub(super) stall: Nanos,
    pub(super) latency: Option<Recorder>,
    pub(super) tcp: Option<TcpInfo>,
}

impl ThreadTotals {
    pub(super) fn merge(&mut self, other: &Self) {
        self.good += other.good;
        self.writes += other.writes;
        self.end = self.end.max(other.end);
        self.cpu += other.cpu;
        self.errors.merge(&other.errors);
        self.stall = self.stall.min(other.stall);
        if let Some(latency) = &other.latency {
            self.latency.get_or_insert_default().merge(latency);
        }
        self.tcp = self.tcp.into_iter().chain(other.tcp).reduce(TcpInfo::with);
    }

    fn add(&mut self, good: u64, size: usize) {
        self.good += good;
        self.writes += good.div_ceil(size as u64);
    }
}

/// One connection.
#[derive(Debug)]
struct ClientStream {
    socket: OwnedFd,
    /// N of the current transfer, and the server's number of good bytes.
    header: Number,
    answer: Number,
    out: Outgoing,
    input: Incoming,
    began: Nanos,
    /// Transfers after the current one.
    left: u64,
    /// Bytes of earlier transfers.
    moved: u64,
    shut: bool,
    /// Bytes moved at the last check, and when they last changed.
    checked: (u64, Nanos),
}

/// A thread's loop.
#[derive(Debug)]
pub(super) struct Worker {
    direction: Direction,
    payload: Payload,
    until: StreamStopCondition,
    timeout: Nanos,
    stop: Stop,
    waiter: Waiter,
    epoll: Epoll,
    streams: Vec<Option<ClientStream>>,
    buffer: Box<[u8]>,
    /// No further transfer begins after this time.
    last_begin: Nanos,
    /// When a connection had last moved a byte.
    moved_at: Nanos,
    totals: ThreadTotals,
}

impl Worker {
    pub(super) fn new(
        direction: Direction,
        payload: &Payload,
        until: StreamStopCondition,
        timeout: Nanos,
        stop: Stop,
        waiter: Waiter,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            direction,
            payload: payload.clone(),
            until,
            timeout,
            stop,
            waiter,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?,
            streams: Vec::new(),
            buffer: vec![0; payload.content.size()].into(),
            last_begin: Nanos(u64::MAX),
            moved_at: Nanos(u64::MAX),
            totals: ThreadTotals::default(),
        })
    }

    pub(super) fn add(&mut self, socket: OwnedFd) -> Result<(), Refusal> {
        self.epoll.add(&socket, event(self.streams.len() as u64)).doing("epoll_ctl")?;
        let mut stream = ClientStream {
            socket,
            header: Number::default(),
            answer: Number::default(),
            out: Outgoing::default(),
            input: Incoming::default(),
            began: Nanos::ZERO,
            left: self.until.transfers - 1,
            moved: 0,
            shut: false,
            checked: (0, Nanos::ZERO),
        };
        self.begin(&mut stream);
        self.streams.push(Some(stream));
        Ok(())
    }

    /// Prepares a transfer.
    fn begin(&self, s: &mut ClientStream) {
        let bytes = self.until.bytes;
        s.header = Number::new(bytes);
        s.answer = Number::default();
        s.out.restart(if self.direction.client_writes() { bytes } else { 0 });
        s.input = Incoming::up_to(if self.direction.client_reads() { bytes } else { 0 });
    }

    pub(super) fn run(&mut self, start: Nanos) -> ThreadTotals {
        let cpu = clock::thread_cpu();
        self.streams.iter_mut().flatten().for_each(|stream| stream.began = start);
        let mut end = self.until.time.map(|time| start + time);
        self.last_begin = end.unwrap_or(Nanos(u64::MAX));
        self.moved_at = start;
        let mut stopped = false;
        let mut left = self.streams.len();
        let check_every = Nanos((self.timeout.0 / CHECKS_PER_TIMEOUT).clamp(1_000_000, LONGEST_CHECK.0));
        let mut next_check = clock::now() + check_every;
        let mut events = [EpollEvent::empty(); BATCH];
        while left > 0 {
            let next = end.map_or(next_check, |end| end.min(next_check));
            let ready = self.waiter.within(&self.epoll, &mut events, next.since(clock::now()));
            for event in &events[..ready] {
                left -= usize::from(self.step(event.data() as usize));
            }
            let now = clock::now();
            if end.is_some_and(|end| now >= end) {
                end = None;
                left -= if self.until.is_by_time() { self.end_all() } else { 0 };
            }
            if !stopped && self.stop.is_asked() {
                (end, self.last_begin, stopped) = (None, Nanos::ZERO, true);
                left -= self.end_all();
            }
            if now >= next_check {
                left -= self.check(now, check_every);
                next_check = now + check_every;
            }
        }
        self.totals.stall = self.totals.stall.max(self.totals.end.since(self.moved_at + check_every));
        self.totals.cpu = clock::thread_cpu().since(cpu);
        std::mem::take(&mut self.totals)
    }

    /// Moves what can be moved; true if the connection is done.
    fn step(&mut self, index: usize) -> bool {
        let Some(mut stream) = self.streams[index].take() else { return false };
        match self.advance(&mut stream) {
            Ok(Progress::Complete) => {
                self.finish(&stream);
                return true;
            }
            Ok(Progress::End) => {
                self.fail(&stream, ErrorKind::Truncated);
                return true;
            }
            Err(errno) => {
                self.fail(&stream, stream_error(errno));
                return true;
            }
            Ok(Progress::Turn) => {
                // A change of the registration makes the kernel report the state again.
                let mut again = event(index as u64);
                if let Err(errno) = self.epoll.modify(&stream.socket, &mut again) {
                    unreachable!("a registered socket can be registered anew: {errno}");
                }
            }
            Ok(Progress::Blocked) => {}
        }
        self.streams[index] = Some(stream);
        false
    }

    /// Moves one connection; `Complete` when its last transfer is.
    fn advance(&mut self, s: &mut ClientStream) -> nix::Result<Progress> {
        loop {
            if s.header.push(&s.socket, self.direction.client_writes())? == Progress::Blocked {
                return Ok(Progress::Blocked);
            }
            let halves = (&mut s.out, &mut s.input);
            let (sending, reading) = exchange(&s.socket, &self.payload, halves, &mut self.buffer)?;
            let writes = self.direction.client_writes();
            if writes && sending == Progress::Complete && self.until.is_by_time() && !s.shut {
                shutdown(s.socket.as_raw_fd(), Shutdown::Write)?;
                s.shut = true;
            }
            if reading == Progress::End {
                return Ok(Progress::End);
            }
            if sending == Progress::Turn || reading == Progress::Turn {
                return Ok(Progress::Turn);
            }
            if sending == Progress::Blocked || reading == Progress::Blocked {
                return Ok(Progress::Blocked);
            }
            if self.direction.client_writes() {
                let progress = s.answer.pull(&s.socket)?;
                if progress != Progress::Complete {
                    return Ok(progress);
                }
            }
            self.count(s);
            // count() has read the clock.
            if s.left == 0 || self.totals.end >= self.last_begin {
                return Ok(Progress::Complete);
            }
            s.left -= 1;
            s.moved += s.out.at + s.input.at;
            self.begin(s);
            s.began = self.totals.end;
        }
    }

    /// A transfer is complete.
    fn count(&mut self, s: &ClientStream) {
        let now = clock::now();
        self.totals.end = now;
        let size = self.payload.content.size();
        let written = if self.direction.client_writes() { s.answer.value().min(s.out.total) } else { 0 };
        self.totals.add(written, size);
        self.totals.add(s.input.good, size);
        let wrong = s.out.total + s.input.total - written - s.input.good;
        self.totals.errors.add(ErrorKind::WrongContent, wrong.div_ceil(size as u64));
        if !self.until.is_by_time() {
            self.totals.latency.get_or_insert_default().record(now.since(s.began).0);
        }
    }

    /// Ends all streams, by time or by a stop request; how many are done at once.
    ///
    /// Written bytes of a transfer by time are confirmed by the server's number, which is waited for. Those
    /// of a transfer that is cut off cannot be confirmed and do not count.
    fn end_all(&mut self) -> usize {
        let confirmed = self.until.is_by_time() && self.direction == Direction::ClientWrites;
        let mut ended = 0;
        for index in 0..self.streams.len() {
            let Some(stream) = &mut self.streams[index] else { continue };
            if confirmed {
                stream.out.total = stream.out.at;
                ended += usize::from(self.step(index));
            } else {
                let stream = self.streams[index].take().expect("it was there a line above");
                self.totals.end = clock::now();
                self.totals.add(stream.input.good, self.payload.content.size());
                let wrong = stream.input.at - stream.input.good;
                self.totals
                    .errors
                    .add(ErrorKind::WrongContent, wrong.div_ceil(self.payload.content.size() as u64));
                self.finish(&stream);
                ended += 1;
            }
        }
        ended
    }

    /// The connection is done.
    fn finish(&mut self, stream: &ClientStream) {
        let info = tcp_info::info(&stream.socket).ok();
        self.totals.tcp = self.totals.tcp.into_iter().chain(info).reduce(TcpInfo::with);
    }

    /// The connection fails: received bytes of the current transfer count, sent ones are not confirmed.
    fn fail(&mut self, stream: &ClientStream, kind: ErrorKind) {
        self.totals.end = clock::now();
        self.totals.add(stream.input.good, self.payload.content.size());
        self.totals.errors.add(kind, 1);
    }

    /// Fails the connections that have not moved for the timeout; how many.
    fn check(&mut self, now: Nanos, check_every: Nanos) -> usize {
        let (mut ended, mut has_moved) = (0, false);
        for index in 0..self.streams.len() {
            let Some(stream) = &mut self.streams[index] else { continue };
            let moved = stream.moved + stream.out.at + stream.input.at;
            if stream.checked.1 == Nanos::ZERO || stream.checked.0 != moved {
                stream.checked = (moved, now);
                has_moved = true;
            } else if now.since(stream.checked.1) >= self.timeout {
                let stream = self.streams[index].take().expect("it was there a line above");
                self.fail(&stream, ErrorKind::Timeout);
                ended += 1;
            }
        }
        if has_moved {
            self.totals.stall = self.totals.stall.max(now.since(self.moved_at + check_every));
            self.moved_at = now;
        }
        ended
    }
}

fn event(index: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET, index)
}
