//! An HTTP server with injected faults: it delays responses, fails requests or limits its rate, by a seed,
//! and reports at its end exactly what it injected. The engine is right if the client's result agrees
//! (`linerate selftest`).
//!
//! | option | example | effect |
//! |---|---|---|
//! | `delay` | `fixed 5000` | microseconds before a response |
//! | | `uniform 1000 9000` | from, to |
//! | | `exponential 1000 4000` | minimum, mean of the rest |
//! | | `bimodal 2000 50000 0.05` | usual, rare, share of rare |
//! | `stall` | `100000 1000000` | length, period in microseconds: no response at the start of each period |
//! | `errors` | `0.01` | share of requests that fail, in five ways in turn |
//! | `cap` | `5000` | responses per second, evenly spaced |
//! | `spin` | `always` | it never sleeps, so that no response includes a wake-up (`waiter.rs`) |
//!
//! The reported delay of a response is the time between the request's arrival, by the kernel's timestamp, and
//! the first byte of the response. The inaccuracy of this server's timers and wake-ups is therefore part of
//! the ground truth. One thread.

mod arrival;
mod injection;

use injection::Injection;
use linerate_contract::{Bytes, Counts, Done, ErrorKind, Errors, Event, Nanos, Spec, clock, page};
use linerate_load::listener::Listener;
use linerate_load::process::{Signals, emit, spawn};
use linerate_load::refusal::{Doing, Refusal};
use linerate_load::waiter::{self, Waiter};
use linerate_proto::http::request::{ParsedRequest, parse};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

const LONGEST_REQUEST: usize = 16 << 10;
const STOP: u64 = u64::MAX;

/// Whether the spec requests faults.
pub fn is_requested(spec: &Spec) -> bool {
    ["delay", "stall", "errors", "cap"].iter().any(|option| spec.options.contains_key(*option))
}

/// Serves until SIGTERM, then reports the injected faults as a `done` event: `latency` is the true delay of
/// every good response.
///
/// # Errors
/// Invalid options, or an address that is in use or not of this host.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let injection = Injection::new(spec)?;
    let signals = Signals::claim()?;
    let stop = Arc::new(EventFd::new().doing("eventfd")?);
    let (listener, address) = Listener::bind(address, false)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
    epoll.add(&*stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP)).doing("epoll_ctl")?;
    listener.watch(&epoll)?;
    let wake_up = Arc::clone(&stop);
    spawn(move || {
        signals.wait();
        // Fails only when the counter is full; then it is readable already.
        let _ = wake_up.write(1);
    })?;
    emit(&Event::Ready { address });
    let body = page(spec.size as usize);
    let response = |connection: &str| {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n");
        [head.as_bytes(), &body].concat()
    };
    let mut server = FaultInjector {
        injection,
        waiter: Waiter::from_spec(spec)?,
        // HTTP/1.0 clients keep the connection only after this header.
        keep: response("keep-alive"),
        close: response("close"),
        epoll,
        listener,
        connections: HashMap::new(),
        due: BinaryHeap::new(),
        sequence: 0,
        epoch: Nanos::ZERO,
        injected: Injected::default(),
    };
    server.run();
    emit(&Event::Done(Box::new(server.injected.done(body.len() as u64))));
    Ok(())
}

#[derive(Debug, Default)]
struct Injected {
    delays: Vec<u64>,
    errors: Errors,
    start: Nanos,
    end: Nanos,
}

impl Injected {
    fn done(mut self, size: u64) -> Done {
        self.delays.sort_unstable();
        let mut pairs: Vec<(u64, u64)> = Vec::new();
        for delay in &self.delays {
            match pairs.last_mut() {
                Some((value, count)) if value == delay => *count += 1,
                _ => pairs.push((*delay, 1)),
            }
        }
        let ends = |n: Option<&u64>| n.copied().unwrap_or(0);
        Done {
            operations: self.delays.len() as u64,
            bytes: Bytes(self.delays.len() as u64 * size),
            start_ns: self.start,
            end_ns: self.end,
            errors: self.errors,
            latency: Some(Counts { min: ends(self.delays.first()), max: ends(self.delays.last()), pairs }),
            ..Done::default()
        }
    }
}

/// Due time, id of the connection, its descriptor, and the fault, if any.
type Due = (Nanos, u64, RawFd, Option<ErrorKind>);

struct DelayedConnection {
    fd: OwnedFd,
    input: Vec<u8>,
    /// When its last byte arrived.
    arrived: Nanos,
    /// When the request in progress arrived, and whether the connection stays open after its response.
    waiting: Option<(Nanos, bool)>,
    /// Distinguishes a connection from an earlier one with the same descriptor.
    id: u64,
}

struct FaultInjector {
    injection: Injection,
    waiter: Waiter,
    keep: Vec<u8>,
    close: Vec<u8>,
    epoll: Epoll,
    listener: Listener,
    connections: HashMap<RawFd, DelayedConnection>,
    /// Earliest first.
    due: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    epoch: Nanos,
    injected: Injected,
}

impl FaultInjector {
    fn run(&mut self) {
        waiter::without_timer_slack();
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let now = clock::now();
            while self.due.peek().is_some_and(|Reverse((time, ..))| *time <= now) {
                let Some(Reverse((_, id, fd, fault))) = self.due.pop() else { break };
                self.answer(id, fd, fault);
            }
            let due = self.due.peek().map(|Reverse((time, ..))| *time);
            let retry = self.listener.retry().map(|pause| now + pause);
            let next = due.into_iter().chain(retry).min().unwrap_or(Nanos(u64::MAX));
            let ready = self.waiter.until(&self.epoll, &mut events, clock::now(), next);
            for event in &events[..ready] {
                match event.data() {
                    STOP => return,
                    Listener::TOKEN => self.accept(),
                    fd => self.read(fd as RawFd),
                }
            }
            if self.listener.is_full() {
                self.accept();
            }
        }
    }

    fn accept(&mut self) {
        while let Some(fd) = self.listener.accept(&self.epoll) {
            let raw = fd.as_raw_fd();
            let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, raw as u64);
            if arrival::enable(&fd).is_ok() && self.epoll.add(&fd, event).is_ok() {
                self.sequence += 1;
                let id = self.sequence;
                self.connections.insert(
                    raw,
                    DelayedConnection { fd, input: Vec::new(), arrived: Nanos::ZERO, waiting: None, id },
                );
            }
        }
    }

    fn read(&mut self, raw: RawFd) {
        let Some(connection) = self.connections.get_mut(&raw) else { return };
        let mut buffer = [0; 4096];
        let over = loop {
            if connection.input.len() > LONGEST_REQUEST {
                break true;
            }
            match arrival::receive(raw, &mut buffer) {
                Ok((0, _)) => break true,
                Ok((n, arrived)) => {
                    connection.input.extend_from_slice(&buffer[..n]);
                    connection.arrived = arrived;
                }
                Err(Errno::EAGAIN) => break false,
                Err(Errno::EINTR) => {}
                Err(_) => break true,
            }
        };
        if over {
            self.connections.remove(&raw);
        } else {
            self.take(raw);
        }
    }

    /// Begins the next request of a connection, if it is complete.
    fn take(&mut self, raw: RawFd) {
        let Some(connection) = self.connections.get_mut(&raw) else { return };
        if connection.waiting.is_some() || connection.input.is_empty() {
            return;
        }
        match parse(&connection.input) {
            ParsedRequest::Get { length, keep } => {
                let arrived = connection.arrived;
                connection.input.drain(..length);
                connection.waiting = Some((arrived, keep));
                if self.epoch == Nanos::ZERO {
                    (self.epoch, self.injected.start) = (arrived, arrived);
                }
                let due = self.injection.due(arrived, self.epoch);
                self.due.push(Reverse((due, connection.id, raw, self.injection.fault())));
            }
            ParsedRequest::Partial => {}
            ParsedRequest::Bad => {
                self.connections.remove(&raw);
            }
        }
    }

    fn answer(&mut self, id: u64, raw: RawFd, fault: Option<ErrorKind>) {
        // The client has closed: it has seen neither the response nor the fault.
        let Some(connection) = self.connections.get_mut(&raw).filter(|c| c.id == id) else { return };
        let Some((arrived, keep)) = connection.waiting.take() else { return };
        let now = clock::now();
        self.injected.end = now;
        let Some(fault) = fault else {
            self.injected.delays.push(now.since(arrived).0);
            // A page fits an empty send buffer; otherwise the client reports it as truncated.
            let response = if keep { &self.keep } else { &self.close };
            let sent = send(raw, response, MsgFlags::MSG_NOSIGNAL);
            if keep && sent == Ok(response.len()) {
                self.take(raw);
            } else {
                self.connections.remove(&raw);
            }
            return;
        };
        self.injected.errors.add(fault, 1);
        let bytes: &[u8] = match fault {
            ErrorKind::WrongStatus => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            ErrorKind::Truncated => &self.keep[..self.keep.len() - 1],
            ErrorKind::Malformed => b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
            _ => b"",
        };
        if fault == ErrorKind::Reset {
            // With this option close(2) resets the connection (socket(7)); if it fails, the client reports
            // another error.
            let _ = setsockopt(&connection.fd, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        } else if !bytes.is_empty() {
            let _ = send(raw, bytes, MsgFlags::MSG_NOSIGNAL);
        }
        // Another status is no reason to close.
        if keep && fault == ErrorKind::WrongStatus {
            return self.take(raw);
        }
        self.connections.remove(&raw);
    }
}
