//! The client: each thread sends on its share of the flows in turn, then requests the server's reports.

use super::pace::{self, Pace};
use super::{UdpConfig, throughput};
use crate::cause::{self, note, note_errno};
use crate::clock;
use crate::packets::{self, Burst};
use crate::process::{Stop, together};
use crate::refusal::Refusal;
use crate::socket::connect_error;
use linerate_contract::datagram::{Datagram, HEADER, REPORT_LENGTH, Report};
use linerate_contract::{Bytes, Cause, Causes, Datagrams, Done, ErrorKind, Errors, Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bursts between two clock readings without a rate: a reading costs 25 ns, a datagram at least 500 ns.
const BURSTS_PER_READING: usize = 4;

/// Runs `spec` to its end.
///
/// # Errors
/// An invalid spec, or a refused system call.
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
    let config = UdpConfig::from_spec(spec)?;
    let until = UdpStopCondition::from_spec(spec)?;
    if spec.connections == 0 || spec.threads == 0 || spec.timeout_ns == Nanos::ZERO {
        let text = "\"connections\", \"threads\" and \"timeout_ns\" must be above 0";
        return Err(Refusal::BadSpec(text.into()));
    }
    let mut errors = Errors::default();
    let mut flows = Vec::new();
    for _ in 0..spec.connections {
        match open(spec, &config, stop)? {
            Ok(socket) => flows.push(UdpFlow { socket, sent: 0, failed: None, report: None }),
            Err(kind) => errors.add(kind, 1),
        }
    }
    let threads = (spec.threads as usize).min(flows.len()).max(1);
    let mut senders = Vec::new();
    for _ in 0..threads {
        let burst = Burst::new(config.mode, &config.content);
        let pace = Pace::from_spec(spec, threads, burst.max())?;
        senders.push(Sender {
            flows: Vec::new(),
            burst,
            pace,
            until,
            timeout: spec.timeout_ns,
            stop: stop.clone(),
        });
    }
    for (index, flow) in flows.into_iter().enumerate() {
        senders[index % threads].flows.push(flow);
    }
    let start = clock::now();
    let results = together(senders.iter_mut().map(|sender| move || sender.run(start)).collect())?;
    let schedules: Vec<_> = senders
        .iter()
        .zip(&results)
        .filter_map(|(sender, result)| {
            Some(sender.pace.as_ref()?.adherence(start, result.stopped, sender.sent()))
        })
        .collect();
    let schedule = (!schedules.is_empty()).then(|| pace::sum(&schedules));
    let flows = senders.iter().flat_map(|sender| &sender.flows);
    let mut done = add_up(flows, config.size, spec, (start, clock::now()), errors);
    done.end_ns = results.iter().fold(done.end_ns, |end, result| end.max(result.stopped));
    done.cpu_ns = results.iter().fold(Nanos::ZERO, |sum, result| sum + result.cpu);
    done.schedule = schedule;
    done.causes = cause::take();
    results.iter().for_each(|result| done.causes.merge(&result.causes));
    done.causes = done.causes.counted_in(&done.errors);
    Ok(done)
}

/// When a flow is over.
#[derive(Debug, Clone, Copy)]
struct UdpStopCondition {
    /// Datagrams per flow.
    datagrams: u64,
    time: Option<Nanos>,
}

impl UdpStopCondition {
    fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
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
struct UdpFlow {
    socket: OwnedFd,
    sent: u64,
    failed: Option<ErrorKind>,
    report: Option<Report>,
}

/// Opens a socket and waits for the server's response to HELLO.
fn open(spec: &Spec, config: &UdpConfig, stop: &Stop) -> Result<Result<OwnedFd, ErrorKind>, Refusal> {
    let socket = match packets::connect(spec, config.mode)? {
        Ok(socket) => socket,
        Err(kind) => return Ok(Err(kind)),
    };
    let hello = Datagram::Hello.to_bytes();
    let response = request(&socket, &hello, spec.timeout_ns, stop, |response| {
        (response == Datagram::Welcome).then_some(())
    });
    Ok(match response {
        Ok(()) => Ok(socket),
        Err(Errno::ETIMEDOUT) => {
            Err(note(ErrorKind::ConnectTimeout, || Cause::new("no response to the first datagram of a flow")))
        }
        Err(errno) => Err(connect_error(errno)),
    })
}

/// Sends `request` until the wanted response arrives, once per timeout of the socket.
fn request<T>(
    socket: &OwnedFd,
    request: &[u8],
    timeout: Nanos,
    stop: &Stop,
    mut wanted: impl FnMut(Datagram) -> Option<T>,
) -> nix::Result<T> {
    let deadline = clock::now() + timeout;
    let mut buffer = [0; REPORT_LENGTH + 1];
    while clock::now() < deadline && !stop.is_asked() {
        match send(socket.as_raw_fd(), request, MsgFlags::MSG_NOSIGNAL) {
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => {}
            Err(errno) => return Err(errno),
        }
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => {
                if let Some(response) = Datagram::parse(&buffer[..length]).and_then(&mut wanted) {
                    return Ok(response);
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
    flows: Vec<UdpFlow>,
    burst: Burst,
    pace: Option<Pace>,
    until: UdpStopCondition,
    timeout: Nanos,
    stop: Stop,
}

#[derive(Debug, Default)]
struct SenderResult {
    cpu: Nanos,
    causes: Causes,
    /// When the last datagram was sent, or the time was over.
    stopped: Nanos,
}

impl Sender {
    fn run(&mut self, start: Nanos) -> SenderResult {
        let cpu = clock::thread_cpu();
        crate::waiter::without_timer_slack();
        let end = self.until.time.map_or(Nanos(u64::MAX), |time| start + time);
        if self.pace.is_some() {
            self.send_paced(start, end);
        } else {
            self.send_all(end);
        }
        // A rate may have nothing more due long before the time is over.
        let is_cut = self.stop.is_asked() || self.flows.iter().all(|flow| flow.sent >= self.until.datagrams);
        let stopped = if is_cut { clock::now().min(end) } else { end };
        let mut result =
            SenderResult { cpu: clock::thread_cpu().since(cpu), stopped, causes: Causes::default() };
        for flow in self.flows.iter_mut().filter(|flow| flow.failed.is_none()) {
            let over = Datagram::End { sent: flow.sent }.to_bytes();
            let report =
                request(&flow.socket, &over, self.timeout, &Stop::default(), |response| match response {
                    Datagram::Report(report) => Some(report),
                    _ => None,
                });
            match report {
                Ok(report) => flow.report = Some(report),
                Err(Errno::ETIMEDOUT) => {
                    let text = "no report of the server about the flow";
                    flow.failed = Some(note(ErrorKind::Timeout, || Cause::new(text)));
                }
                Err(errno) => {
                    flow.failed = Some(note_errno(ErrorKind::Reset, "asking for the report", errno))
                }
            }
        }
        result.causes = cause::take();
        result
    }

    fn send_all(&mut self, end: Nanos) {
        let max = self.burst.max();
        while clock::now() < end && !self.stop.is_asked() {
            let mut moved = false;
            for flow in &mut self.flows {
                for _ in 0..BURSTS_PER_READING {
                    moved |= flow.send(&mut self.burst, max, self.until.datagrams);
                }
            }
            if !moved && self.flows.iter().all(|flow| flow.is_over(self.until.datagrams)) {
                return;
            }
        }
    }

    fn send_paced(&mut self, start: Nanos, end: Nanos) {
        let mut turn = 0;
        while !self.stop.is_asked() && !self.flows.iter().all(|flow| flow.is_over(self.until.datagrams)) {
            let sent = self.sent();
            let pace = self.pace.as_mut().expect("the caller checked");
            let Some((count, _)) = pace.next(start, sent, end) else { return };
            let length = self.flows.len();
            let flow = &mut self.flows[turn % length];
            flow.send(&mut self.burst, count, self.until.datagrams);
            turn += 1;
        }
    }

    fn sent(&self) -> u64 {
        self.flows.iter().map(|flow| flow.sent).sum()
    }
}

impl UdpFlow {
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
            // The socket or the device is full: no failure, and tried again until the time is over.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => false,
            Err(Errno::ECONNREFUSED) => {
                let kind = if self.sent == 0 { ErrorKind::ConnectRefused } else { ErrorKind::Reset };
                self.failed = Some(note_errno(kind, "sending a datagram", Errno::ECONNREFUSED));
                false
            }
            Err(errno) => {
                self.failed = Some(note_errno(ErrorKind::Failed, "sending a datagram", errno));
                false
            }
        }
    }
}

/// Adds up the server's reports, which arrived between `start` and `now`, and the failures of flows.
fn add_up<'a>(
    flows: impl Iterator<Item = &'a UdpFlow>,
    size: usize,
    spec: &Spec,
    (start, now): (Nanos, Nanos),
    mut errors: Errors,
) -> Done {
    let mut datagrams = Datagrams::default();
    let (mut bytes, mut end) = (0, start);
    for flow in flows {
        if let Some(kind) = flow.failed {
            errors.add(kind, 1);
        }
        datagrams.sent += flow.sent;
        let report = flow.report.unwrap_or_default();
        if !report.is_possible(flow.sent, size as u64, now.since(start)) {
            let text = "a report that no path can cause, such as more datagrams than were sent";
            errors.add(note(ErrorKind::Malformed, || Cause::new(text)), 1);
            continue;
        }
        datagrams += Datagrams { sent: 0, ..Datagrams::of_flow(flow.sent, &report) };
        bytes += report.bytes;
        end = end.max(start + report.duration());
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

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn a_report_that_no_path_can_cause_is_malformed_and_counts_nothing() {
        let flow = |report: Report| UdpFlow {
            socket: std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            sent: 10,
            failed: None,
            report: Some(report),
        };
        let (first_ns, last_ns) = (5_000, 5_700);
        let good = Report { received: 9, bytes: 900, duplicates: 20, first_ns, last_ns, ..Report::default() };
        let wrong = [
            Report { received: 11, bytes: 1_100, ..good },
            Report { received: u64::MAX, bytes: u64::MAX, ..good },
            Report { bytes: 901, ..good },
            Report { reordered: 10, ..good },
            Report { duplicates: u64::MAX, damaged: u64::MAX, ..good },
            Report { damaged: u64::MAX, ..good },
            Report { last_ns: u64::MAX, ..good },
            Report { last_ns: first_ns - 1, ..good },
        ];
        let flows = [good, good].into_iter().chain(wrong).map(flow).collect::<Vec<_>>();
        let spec = Spec::new(Role::Client, Layer::Udp, Workload::Stream);
        let done = add_up(flows.iter(), 100, &spec, (Nanos(1), Nanos(2_000)), Errors::default());
        assert_eq!((done.operations, done.bytes, done.end_ns), (18, Bytes(1_800), Nanos(701)));
        assert_eq!(done.errors.0[&ErrorKind::Malformed], wrong.len() as u64);
    }
}
