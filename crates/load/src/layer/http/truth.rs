//! An HTTP server whose slowness is known: it answers late, wrongly or at a limited rate, by a seed, and tells at its end
//! exactly what it did. The instrument is right if the client's report agrees (`linerate selftest`).
//!
//! | option | example | what it does |
//! |---|---|---|
//! | `delay` | `fixed 5000`, `uniform 1000 9000`, `exponential 1000 4000`, `bimodal 2000 50000 0.05` | microseconds before an answer: value; from, to; least, mean of the rest; usual, rare, share of rare |
//! | `stall` | `100000 1000000` | no answer leaves in the first so many microseconds of each so many |
//! | `errors` | `0.01` | share of requests that fail, in each of five ways alike |
//! | `cap` | `5000` | answers a second, evenly |
//! | `busy` | `yes` | it never sleeps, so that its own wake-ups are in no answer (`pause.rs`) |
//!
//! The delay of an answer is what really passed between the request's arrival, by the kernel's clock, and the answer's first byte. Its
//! own timers, and how late it was woken, are therefore part of the truth, and not of the difference. One thread.

mod arrival;
mod injection;

use super::request::{Parsed, parse};
use crate::pause::{self, Pause};
use crate::process::{Signals, emit};
use crate::refusal::{Doing, Refusal};
use crate::{clock, socket};
use injection::Injection;
use linerate_contract::{Bytes, Counts, Done, ErrorKind, Errors, Event, Nanos, Spec, page};
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

/// Whether the server of this spec is to be slow, wrong or limited.
#[must_use]
pub fn is_asked_for(spec: &Spec) -> bool {
    ["delay", "stall", "errors", "cap"].iter().any(|option| spec.options.contains_key(*option))
}

/// Serves until SIGTERM, then tells what was injected as a `done` event: `latency` is the true delay of every good answer.
///
/// # Errors
/// Options that are none, or an address that cannot be had.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
    let injection = Injection::new(spec)?;
    let signals = Signals::claim()?;
    let stop = Arc::new(EventFd::new().doing("eventfd")?);
    let (listener, address) = socket::listener(address, false)?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
    epoll.add(&*stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP)).doing("epoll_ctl")?;
    epoll
        .add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, listener.as_raw_fd() as u64))
        .doing("epoll_ctl")?;
    let bell = Arc::clone(&stop);
    std::thread::spawn(move || {
        signals.wait();
        // Fails only when the counter is full, and then the bell rings already.
        let _ = bell.write(1);
    });
    emit(&Event::Ready { address });
    let body = page(spec.size as usize);
    let answer = |connection: &str| {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n");
        [head.as_bytes(), &body].concat()
    };
    let mut server = Truth {
        injection,
        pause: Pause::of(spec)?,
        // HTTP/1.0 clients stay only if they are told to.
        keep: answer("keep-alive"),
        close: answer("close"),
        epoll,
        listener,
        connections: HashMap::new(),
        due: BinaryHeap::new(),
        sequence: 0,
        epoch: Nanos::ZERO,
        account: Account::default(),
    };
    server.run();
    emit(&Event::Done(Box::new(server.account.done(body.len() as u64))));
    Ok(())
}

#[derive(Debug, Default)]
struct Account {
    delays: Vec<u64>,
    errors: Errors,
    start: Nanos,
    end: Nanos,
}

impl Account {
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

/// When, for which connection, its descriptor, and how the request fails, if it does.
type Due = (Nanos, u64, RawFd, Option<ErrorKind>);

struct Connection {
    fd: OwnedFd,
    input: Vec<u8>,
    /// When its last byte came.
    came: Nanos,
    /// When the request came that waits for its answer, and whether the connection then stays.
    waiting: Option<(Nanos, bool)>,
    /// Tells a connection from an earlier one with the same descriptor.
    id: u64,
}

struct Truth {
    injection: Injection,
    pause: Pause,
    keep: Vec<u8>,
    close: Vec<u8>,
    epoll: Epoll,
    listener: OwnedFd,
    connections: HashMap<RawFd, Connection>,
    /// Earliest first.
    due: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    epoch: Nanos,
    account: Account,
}

impl Truth {
    fn run(&mut self) {
        pause::without_timer_slack();
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let now = clock::now();
            while self.due.peek().is_some_and(|Reverse((time, ..))| *time <= now) {
                let Some(Reverse((_, id, fd, fault))) = self.due.pop() else { break };
                self.answer(id, fd, fault);
            }
            let next = self.due.peek().map_or(Nanos(u64::MAX), |Reverse((time, ..))| *time);
            let ready = self.pause.until(&self.epoll, &mut events, clock::now(), next);
            for event in &events[..ready] {
                match event.data() {
                    STOP => return,
                    fd if fd == self.listener.as_raw_fd() as u64 => self.accept(),
                    fd => self.read(fd as RawFd),
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok(fd) = socket::accept(&self.listener) {
            let raw = fd.as_raw_fd();
            let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, raw as u64);
            if arrival::ask(&fd).is_ok() && self.epoll.add(&fd, event).is_ok() {
                self.sequence += 1;
                let id = self.sequence;
                self.connections
                    .insert(raw, Connection { fd, input: Vec::new(), came: Nanos::ZERO, waiting: None, id });
            }
        }
    }

    fn read(&mut self, raw: RawFd) {
        let Some(connection) = self.connections.get_mut(&raw) else { return };
        let mut buffer = [0; 4096];
        let over = loop {
            match arrival::receive(raw, &mut buffer) {
                Ok((0, _)) => break true,
                Ok((n, came)) => {
                    connection.input.extend_from_slice(&buffer[..n]);
                    connection.came = came;
                }
                Err(Errno::EAGAIN) => break false,
                Err(Errno::EINTR) => {}
                Err(_) => break true,
            }
        };
        if over || connection.input.len() > LONGEST_REQUEST {
            self.connections.remove(&raw);
        } else {
            self.take(raw);
        }
    }

    /// Begins the next request of a connection, if it is whole.
    fn take(&mut self, raw: RawFd) {
        let Some(connection) = self.connections.get_mut(&raw) else { return };
        if connection.waiting.is_some() || connection.input.is_empty() {
            return;
        }
        match parse(&connection.input) {
            Parsed::Get { length, keep } => {
                let came = connection.came;
                connection.input.drain(..length);
                connection.waiting = Some((came, keep));
                if self.epoch == Nanos::ZERO {
                    (self.epoch, self.account.start) = (came, came);
                }
                let due = self.injection.due(came, self.epoch);
                self.due.push(Reverse((due, connection.id, raw, self.injection.fault())));
            }
            Parsed::Partial => {}
            Parsed::Bad => {
                self.connections.remove(&raw);
            }
        }
    }

    fn answer(&mut self, id: u64, raw: RawFd, fault: Option<ErrorKind>) {
        // A client that gave up has seen neither the answer nor the fault.
        let Some(connection) = self.connections.get_mut(&raw).filter(|c| c.id == id) else { return };
        let Some((came, keep)) = connection.waiting.take() else { return };
        let now = clock::now();
        self.account.end = now;
        let Some(fault) = fault else {
            self.account.delays.push(now.since(came).0);
            // A page fits the send buffer of a connection with nothing else in it, or the client reports it as cut.
            let answer = if keep { &self.keep } else { &self.close };
            let sent = send(raw, answer, MsgFlags::MSG_NOSIGNAL);
            if keep && sent == Ok(answer.len()) {
                self.take(raw);
            } else {
                self.connections.remove(&raw);
            }
            return;
        };
        self.account.errors.add(fault, 1);
        let bytes: &[u8] = match fault {
            ErrorKind::WrongStatus => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            ErrorKind::Truncated => &self.keep[..self.keep.len() - 1],
            ErrorKind::Malformed => b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
            _ => b"",
        };
        if fault == ErrorKind::Reset {
            // Closing with this option resets the connection (socket(7)); where it fails, the client tells the difference.
            let _ = setsockopt(&connection.fd, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        } else if !bytes.is_empty() {
            let _ = send(raw, bytes, MsgFlags::MSG_NOSIGNAL);
        }
        self.connections.remove(&raw);
    }
}
