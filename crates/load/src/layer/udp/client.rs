//! The client: a thread sends for its share of the flows, in turn, then asks the server what came.

use super::pace::{self, Pace};
use super::{Setting, throughput};
use crate::clock;
use crate::packets::{self, Burst};
use crate::process::Stop;
use crate::refusal::Refusal;
use linerate_contract::datagram::{Datagram, HEADER, REPORT_LENGTH, Report};
use linerate_contract::{Bytes, Datagrams, Done, ErrorKind, Errors, Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bursts between two readings of the clock where nothing is paced: a reading costs 25 ns, a datagram 500 at the least.
const BURSTS_PER_LOOK: usize = 4;

/// Runs `spec` to its end.
///
/// # Errors
/// A spec that lacks something, or a kernel that refuses.
pub fn run(spec: &Spec) -> Result<Done, Refusal> {
    let tolerance = throughput::tolerance(spec)?;
    let stop = Stop::on_signal()?;
    match tolerance {
        Some(tolerance) => throughput::run(spec, tolerance, &stop),
        None => measure(spec, &stop),
    }
}

/// One measurement, with flows of its own.
pub(super) fn measure(spec: &Spec, stop: &Stop) -> Result<Done, Refusal> {
    let setting = Setting::of(spec)?;
    let limit = Limit::of(spec)?;
    if spec.connections == 0 || spec.threads == 0 || spec.timeout_ns == Nanos::ZERO {
        let text = "\"connections\", \"threads\" and \"timeout_ns\" must be above 0";
        return Err(Refusal::BadSpec(text.into()));
    }
    let mut errors = Errors::default();
    let mut flows = Vec::new();
    for _ in 0..spec.connections {
        match open(spec, &setting, stop)? {
            Ok(socket) => flows.push(Flow { socket, sent: 0, failed: None, report: None }),
            Err(kind) => errors.add(kind, 1),
        }
    }
    let threads = (spec.threads as usize).min(flows.len()).max(1);
    let mut senders = Vec::new();
    for _ in 0..threads {
        let burst = Burst::new(setting.mode, &setting.content);
        let pace = Pace::of(spec, threads, burst.most())?;
        senders.push(Sender {
            flows: Vec::new(),
            burst,
            pace,
            limit,
            timeout: spec.timeout_ns,
            stop: stop.clone(),
        });
    }
    for (index, flow) in flows.into_iter().enumerate() {
        senders[index % threads].flows.push(flow);
    }
    let start = clock::now();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            senders.iter_mut().map(|sender| scope.spawn(move || sender.run(start))).collect();
        threads.into_iter().map(|t| t.join().expect("a panic aborts the process")).collect()
    });
    let schedules: Vec<_> = senders
        .iter()
        .zip(&tallies)
        .filter_map(|(sender, tally)| {
            Some(sender.pace.as_ref()?.adherence(start, tally.stopped, sender.sent()))
        })
        .collect();
    let schedule = (!schedules.is_empty()).then(|| pace::sum(&schedules));
    let flows = senders.iter().flat_map(|sender| &sender.flows);
    let mut done = account(flows, setting.size, spec, start, errors);
    done.cpu_ns = tallies.iter().fold(Nanos::ZERO, |sum, tally| sum + tally.cpu);
    done.schedule = schedule;
    Ok(done)
}

/// When a flow is over.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Datagrams of one flow.
    datagrams: u64,
    time: Option<Nanos>,
}

impl Limit {
    fn of(spec: &Spec) -> Result<Self, Refusal> {
        match (spec.bytes, spec.duration_ns) {
            (None, None) => {
                Err(Refusal::BadSpec("a stream over UDP needs \"bytes\" or \"duration_ns\"".into()))
            }
            (bytes, time) => {
                Ok(Self { datagrams: bytes.map_or(u64::MAX >> 1, |bytes| bytes.div_ceil(spec.size)), time })
            }
        }
    }
}

#[derive(Debug)]
struct Flow {
    socket: OwnedFd,
    sent: u64,
    failed: Option<ErrorKind>,
    report: Option<Report>,
}

/// A socket whose server has answered.
fn open(spec: &Spec, setting: &Setting, stop: &Stop) -> Result<Result<OwnedFd, ErrorKind>, Refusal> {
    let socket = match packets::connect(spec, setting.mode)? {
        Ok(socket) => socket,
        Err(kind) => return Ok(Err(kind)),
    };
    let hello = Datagram::Hello.to_bytes();
    let answer =
        ask(&socket, &hello, spec.timeout_ns, stop, |answer| (answer == Datagram::Hello).then_some(()));
    Ok(match answer {
        Ok(()) => Ok(socket),
        Err(Errno::ECONNREFUSED) => Err(ErrorKind::ConnectRefused),
        Err(Errno::ETIMEDOUT) => Err(ErrorKind::ConnectTimeout),
        Err(_) => Err(ErrorKind::ConnectFailed),
    })
}

/// Sends `question` each time that the socket's own timeout passes without the answer.
fn ask<T>(
    socket: &OwnedFd,
    question: &[u8],
    timeout: Nanos,
    stop: &Stop,
    mut wanted: impl FnMut(Datagram) -> Option<T>,
) -> nix::Result<T> {
    let deadline = clock::now() + timeout;
    let mut buffer = [0; REPORT_LENGTH + 1];
    while clock::now() < deadline && !stop.is_asked() {
        match send(socket.as_raw_fd(), question, MsgFlags::MSG_NOSIGNAL) {
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => {}
            Err(errno) => return Err(errno),
        }
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => {
                if let Some(answer) = Datagram::parse(&buffer[..length]).and_then(&mut wanted) {
                    return Ok(answer);
                }
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::ETIMEDOUT)
}

/// A thread's flows.
#[derive(Debug)]
struct Sender {
    flows: Vec<Flow>,
    burst: Burst,
    pace: Option<Pace>,
    limit: Limit,
    timeout: Nanos,
    stop: Stop,
}

#[derive(Debug, Default)]
struct Tally {
    cpu: Nanos,
    /// When the last datagram was sent, or none was due any more.
    stopped: Nanos,
}

impl Sender {
    fn run(&mut self, start: Nanos) -> Tally {
        let cpu = clock::thread_cpu();
        crate::pause::without_timer_slack();
        let end = self.limit.time.map_or(Nanos(u64::MAX), |time| start + time);
        if self.pace.is_some() {
            self.send_paced(start, end);
        } else {
            self.send_all(end);
        }
        let tally = Tally { cpu: clock::thread_cpu().since(cpu), stopped: clock::now().min(end) };
        for flow in self.flows.iter_mut().filter(|flow| flow.failed.is_none()) {
            let over = Datagram::End { sent: flow.sent }.to_bytes();
            let report = ask(&flow.socket, &over, self.timeout, &Stop::default(), |answer| match answer {
                Datagram::Report(report) => Some(report),
                _ => None,
            });
            match report {
                Ok(report) => flow.report = Some(report),
                Err(Errno::ETIMEDOUT) => flow.failed = Some(ErrorKind::Timeout),
                Err(_) => flow.failed = Some(ErrorKind::Reset),
            }
        }
        tally
    }

    fn send_all(&mut self, end: Nanos) {
        let most = self.burst.most();
        while clock::now() < end && !self.stop.is_asked() {
            let mut moved = false;
            for flow in &mut self.flows {
                for _ in 0..BURSTS_PER_LOOK {
                    moved |= flow.send(&mut self.burst, most, self.limit.datagrams);
                }
            }
            if !moved && self.flows.iter().all(|flow| flow.is_over(self.limit.datagrams)) {
                return;
            }
        }
    }

    fn send_paced(&mut self, start: Nanos, end: Nanos) {
        let mut turn = 0;
        while !self.stop.is_asked() && !self.flows.iter().all(|flow| flow.is_over(self.limit.datagrams)) {
            let sent = self.sent();
            let pace = self.pace.as_mut().expect("the caller looked");
            let Some((count, _)) = pace.next(start, sent, end) else { return };
            let length = self.flows.len();
            let flow = &mut self.flows[turn % length];
            flow.send(&mut self.burst, count, self.limit.datagrams);
            turn += 1;
        }
    }

    fn sent(&self) -> u64 {
        self.flows.iter().map(|flow| flow.sent).sum()
    }
}

impl Flow {
    fn is_over(&self, limit: u64) -> bool {
        self.failed.is_some() || self.sent >= limit
    }

    /// Sends up to `count` datagrams; false if none went.
    #[inline]
    fn send(&mut self, burst: &mut Burst, count: usize, limit: u64) -> bool {
        if self.is_over(limit) {
            return false;
        }
        let count = (limit - self.sent).min(count as u64) as usize;
        match burst.send(&self.socket, self.sent, count) {
            Ok(sent) => {
                self.sent += sent as u64;
                true
            }
            // The socket or the device is full, which is no fault: the clock decides how long it is tried.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => false,
            Err(Errno::ECONNREFUSED) => {
                self.failed = Some(if self.sent == 0 { ErrorKind::ConnectRefused } else { ErrorKind::Reset });
                false
            }
            Err(_) => {
                self.failed = Some(ErrorKind::Failed);
                false
            }
        }
    }
}

/// What the servers' reports and the flows' own failures add up to.
fn account<'a>(
    flows: impl Iterator<Item = &'a Flow>,
    size: usize,
    spec: &Spec,
    start: Nanos,
    mut errors: Errors,
) -> Done {
    let mut datagrams = Datagrams::default();
    let (mut bytes, mut end) = (0, start);
    for flow in flows {
        if let Some(kind) = flow.failed {
            errors.add(kind, 1);
        }
        let report = flow.report.unwrap_or_default();
        datagrams.sent += flow.sent;
        datagrams.received += report.received;
        datagrams.reordered += report.reordered;
        datagrams.duplicates += report.duplicates;
        datagrams.damaged += report.damaged;
        bytes += report.bytes;
        end = end.max(Nanos(report.last_ns));
    }
    datagrams.lost = datagrams.sent.saturating_sub(datagrams.received);
    let every = spec.options.get("every").and_then(|n| n.parse::<u64>().ok()).unwrap_or(1).max(1);
    Done {
        operations: datagrams.received,
        bytes: Bytes(bytes),
        start_ns: start,
        end_ns: end,
        errors,
        verified: (datagrams.received / every) * (size - HEADER) as u64,
        datagrams: Some(datagrams),
        ..Done::default()
    }
}
