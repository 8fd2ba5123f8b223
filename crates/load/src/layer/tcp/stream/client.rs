//! The client of `stream`: every thread pumps its share of the connections until each has passed its bytes.
//!
//! There are no operations that wait for one another, so this is not the engine's loop but one that only pumps. What counts is
//! what the receiver got: the server's count for what was written, one's own for what was read.

use super::progress::Watch;
use super::{Content, Direction, Incoming, Number, Outgoing, Progress, exchange};
use crate::process::Stop;
use crate::refusal::{Doing, Refusal};
use crate::socket::{Dialer, connect_all, stream_error};
use crate::{clock, tcp_info};
use linerate_contract::{Bytes, Done, ErrorKind, Errors, Nanos, Spec, TcpEnds, TcpInfo};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{Shutdown, setsockopt, shutdown, sockopt};
use std::os::fd::{AsRawFd, OwnedFd};

/// Edges taken per wait.
const BATCH: usize = 64;
/// A peer that moves no byte is noticed at most 1/8 of the timeout late.
const CHECKS_PER_TIMEOUT: u64 = 8;
/// Who asks for the end where nothing moves waits no longer than this for it.
const LONGEST_CHECK: Nanos = Nanos(250_000_000);

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something, or a kernel that refuses.
pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let direction = Direction::of(spec)?;
    let content = Content::new(spec)?;
    let goal = Goal::of(spec, direction)?;
    if spec.connections == 0 || spec.threads == 0 || goal.bytes == 0 || spec.timeout_ns == Nanos::ZERO {
        let text = "\"connections\", \"threads\", \"bytes\" and \"timeout_ns\" must be above 0";
        return Err(Refusal::BadSpec(text.into()));
    }
    let stop = Stop::on_signal()?;
    let (sockets, mut errors) = open(spec)?;
    let threads = (spec.threads as usize).min(sockets.len()).max(1);
    let watch = spec.sample_ns.map(|every| Watch::start(every, &sockets)).transpose()?;
    let mut pumps: Vec<Pump> = (0..threads)
        .map(|_| Pump::new(direction, &content, goal, spec.timeout_ns, stop.clone()))
        .collect::<Result<_, _>>()?;
    for (index, socket) in sockets.into_iter().enumerate() {
        pumps[index % threads].add(socket)?;
    }
    let start = clock::now();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = pumps.iter_mut().map(|pump| scope.spawn(move || pump.run(start))).collect();
        threads.into_iter().map(|t| t.join().expect("a panic aborts the process")).collect()
    });
    drop(watch);
    let (mut good, mut cpu, mut end, mut tcp) = (0, Nanos::ZERO, start, None);
    for tally in &tallies {
        tcp = tcp.into_iter().chain(tally.tcp).reduce(TcpInfo::with);
        good += tally.good;
        cpu += tally.cpu;
        end = end.max(tally.end);
        errors.merge(&tally.errors);
    }
    let operations = good / spec.size + u64::from(good % spec.size != 0);
    Ok(Done {
        operations,
        bytes: Bytes(good),
        start_ns: start,
        end_ns: end,
        errors,
        cpu_ns: cpu,
        verified: if content.mode.compares() { good } else { 0 },
        tcp: tcp.map(|client| TcpEnds { client: Some(client), server: None }),
        ..Done::default()
    })
}

/// When a stream is over.
#[derive(Debug, Clone, Copy)]
struct Goal {
    /// Of one direction of one connection.
    bytes: u64,
    time: Option<Nanos>,
}

impl Goal {
    fn of(spec: &Spec, direction: Direction) -> Result<Self, Refusal> {
        match (spec.bytes, spec.duration_ns) {
            (Some(bytes), _) => Ok(Self { bytes, time: None }),
            (None, Some(_)) if direction == Direction::Both => {
                Err(Refusal::Unsupported("a stream both ways that ends by time".into()))
            }
            (None, Some(time)) => Ok(Self { bytes: u64::MAX, time: Some(time) }),
            (None, None) => Err(Refusal::BadSpec("a stream needs \"bytes\" or \"duration_ns\"".into())),
        }
    }
}

/// All connections, before the first byte of any; those that could not be had count as errors.
fn open(spec: &Spec) -> Result<(Vec<OwnedFd>, Errors), Refusal> {
    let mut dialer = Dialer::new(spec)?;
    let (mut sockets, mut errors) = (Vec::new(), Errors::default());
    for _ in 0..spec.connections {
        match dialer.open() {
            Ok(socket) => sockets.push(socket),
            Err(kind) => errors.add(kind, 1),
        }
    }
    let stood = connect_all(&sockets, spec.timeout_ns);
    let mut stood = stood.into_iter();
    sockets.retain(|socket| {
        let outcome = stood.next().expect("as many as there are sockets");
        let outcome = outcome.and_then(|()| {
            setsockopt(socket, sockopt::TcpNoDelay, &true).map_err(crate::socket::connect_error)
        });
        if let Err(kind) = outcome {
            errors.add(kind, 1);
        }
        outcome.is_ok()
    });
    Ok((sockets, errors))
}

#[derive(Debug, Default)]
struct Tally {
    good: u64,
    end: Nanos,
    cpu: Nanos,
    errors: Errors,
    tcp: Option<TcpInfo>,
}

/// One connection.
#[derive(Debug)]
struct Stream {
    socket: OwnedFd,
    header: Option<Number>,
    out: Outgoing,
    shut: bool,
    input: Incoming,
    count: Option<Number>,
    /// What had moved at the last check, and when that was.
    seen: (u64, Nanos),
}

/// A thread's loop.
#[derive(Debug)]
struct Pump {
    direction: Direction,
    content: Content,
    goal: Goal,
    timeout: Nanos,
    stop: Stop,
    epoll: Epoll,
    streams: Vec<Option<Stream>>,
    buffer: Box<[u8]>,
    tally: Tally,
}

impl Pump {
    fn new(
        direction: Direction,
        content: &Content,
        goal: Goal,
        timeout: Nanos,
        stop: Stop,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            direction,
            content: content.clone(),
            goal,
            timeout,
            stop,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?,
            streams: Vec::new(),
            buffer: vec![0; content.size].into(),
            tally: Tally::default(),
        })
    }

    fn add(&mut self, socket: OwnedFd) -> Result<(), Refusal> {
        let (writes, reads) =
            (self.direction != Direction::ClientReads, self.direction != Direction::ClientWrites);
        self.epoll.add(&socket, event(self.streams.len() as u64)).doing("epoll_ctl")?;
        self.streams.push(Some(Stream {
            socket,
            header: reads.then(|| Number::new(self.goal.bytes)),
            out: Outgoing::up_to(if writes { self.goal.bytes } else { 0 }),
            shut: false,
            input: Incoming::up_to(if reads { self.goal.bytes } else { 0 }),
            count: writes.then(Number::default),
            seen: (0, Nanos::ZERO),
        }));
        Ok(())
    }

    fn run(&mut self, start: Nanos) -> Tally {
        let cpu = clock::thread_cpu();
        let mut over = self.goal.time.map(|time| start + time);
        let mut told = false;
        let mut left = self.streams.len();
        let check_every = Nanos((self.timeout.0 / CHECKS_PER_TIMEOUT).clamp(1_000_000, LONGEST_CHECK.0));
        let mut next_check = clock::now() + check_every;
        let mut events = [EpollEvent::empty(); BATCH];
        while left > 0 {
            let next_look = over.map_or(next_check, |over| over.min(next_check));
            let wait = next_look.since(clock::now()).0.div_ceil(1_000_000).min(60_000) as u16;
            let ready = match self.epoll.wait(&mut events, EpollTimeout::from(wait)) {
                Ok(ready) => ready,
                Err(nix::Error::EINTR) => 0,
                Err(errno) => unreachable!("epoll_wait on its own descriptor and buffer: {errno}"),
            };
            for event in &events[..ready] {
                left -= usize::from(self.step(event.data() as usize));
            }
            let now = clock::now();
            if over.is_some_and(|over| now >= over) || (!told && self.stop.is_asked()) {
                (over, told) = (None, true);
                left -= self.call_time();
            }
            if now >= next_check {
                left -= self.check(now);
                next_check = now + check_every;
            }
        }
        self.tally.cpu = clock::thread_cpu().since(cpu);
        std::mem::take(&mut self.tally)
    }

    /// Moves what can be moved; true if the stream is over.
    fn step(&mut self, index: usize) -> bool {
        let Some(mut stream) = self.streams[index].take() else { return false };
        match self.pump(&mut stream) {
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
                // A change of the registration makes the kernel look again.
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

    fn pump(&mut self, s: &mut Stream) -> nix::Result<Progress> {
        if let Some(header) = &mut s.header
            && header.push(&s.socket)? == Progress::Blocked
        {
            return Ok(Progress::Blocked);
        }
        let halves = (&mut s.out, &mut s.input);
        let (sending, reading) = exchange(&s.socket, &self.content, halves, &mut self.buffer)?;
        if sending == Progress::Complete && !s.shut && s.count.is_some() {
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
        match &mut s.count {
            Some(count) => count.pull(&s.socket),
            None => Ok(Progress::Complete),
        }
    }

    /// The time is over: what is written is all that there is, and what is read is enough. How many streams ended by it.
    fn call_time(&mut self) -> usize {
        let mut ended = 0;
        for index in 0..self.streams.len() {
            let Some(stream) = &mut self.streams[index] else { continue };
            if self.direction == Direction::ClientWrites {
                stream.out.total = stream.out.at;
                ended += usize::from(self.step(index));
            } else {
                // Whatever else it has written, nobody vouches for it any more.
                (stream.out.total, stream.input.total) = (0, stream.input.at);
                let stream = self.streams[index].take().expect("it was there a line above");
                self.finish(&stream);
                ended += 1;
            }
        }
        ended
    }

    fn finish(&mut self, stream: &Stream) {
        self.tally.end = clock::now();
        let told = tcp_info::info(&stream.socket).ok();
        self.tally.tcp = self.tally.tcp.into_iter().chain(told).reduce(TcpInfo::with);
        let written = stream.count.map_or(0, Number::value);
        let good = written + stream.input.good;
        self.tally.good += good;
        let missing = stream.out.total + stream.input.total - good.min(stream.out.total + stream.input.total);
        self.tally.errors.add(ErrorKind::WrongContent, missing.div_ceil(self.content.size as u64));
    }

    /// The stream ends here; what was received counts, what was sent has nobody to vouch for it.
    fn fail(&mut self, stream: &Stream, kind: ErrorKind) {
        self.tally.end = clock::now();
        self.tally.good += stream.input.good;
        self.tally.errors.add(kind, 1);
    }

    /// Ends the streams that have not moved for the timeout; how many.
    fn check(&mut self, now: Nanos) -> usize {
        let mut ended = 0;
        for index in 0..self.streams.len() {
            let Some(stream) = &mut self.streams[index] else { continue };
            let moved = stream.out.at + stream.input.at;
            if stream.seen.1 == Nanos::ZERO || stream.seen.0 != moved {
                stream.seen = (moved, now);
            } else if now.since(stream.seen.1) >= self.timeout {
                let stream = self.streams[index].take().expect("it was there a line above");
                self.fail(&stream, ErrorKind::Timeout);
                ended += 1;
            }
        }
        ended
    }
}

fn event(index: u64) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET, index)
}
