//! The server: one socket for all flows; a thread receives, compares and keeps each flow's account.

use super::Setting;
use crate::clock;
use crate::packets::{self, Inbox};
use crate::process::{Signals, emit};
use crate::refusal::Refusal;
use linerate_contract::datagram::{Account, Datagram, HEADER, REPORT_LENGTH};
use linerate_contract::{Bytes, Event, Nanos, Sample, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Flows that are kept. A client opens a handful; a stranger must not make the server grow without end.
const MOST_FLOWS: usize = 4_096;
/// A flow that was silent for so long is over: three times the contract's timeout for an operation.
const IDLE: Nanos = Nanos(30_000_000_000);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// A spec that lacks something, or an address that cannot be had.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let signals = Signals::claim()?;
    let (mut receiver, inbox, address) = Receiver::open(spec)?;
    std::thread::spawn(move || receiver.run(inbox));
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

/// What both servers do with a datagram that they have.
pub(super) struct Receiver {
    socket: OwnedFd,
    content: Box<[u8]>,
    /// The content of every n-th datagram is compared.
    every: u64,
    flows: HashMap<SocketAddr, Account>,
    progress: Option<Progress>,
}

impl Receiver {
    /// With its inbox, and the address at which it hears.
    pub(super) fn open(spec: &Spec) -> Result<(Self, Inbox, SocketAddr), Refusal> {
        let setting = Setting::of(spec)?;
        let every = spec.options.get("every").map_or(Ok(1), |n| n.parse::<u64>());
        let every = every.ok().filter(|n| *n > 0);
        let every =
            every.ok_or_else(|| Refusal::BadSpec("\"options.every\" must be a number above 0".into()))?;
        let (socket, address) = packets::bind(spec, setting.mode)?;
        let inbox = Inbox::new(setting.mode, setting.size.max(REPORT_LENGTH));
        let progress = spec.sample_ns.filter(|every| *every > Nanos::ZERO).map(Progress::new);
        let receiver = Self { socket, content: setting.content, every, flows: HashMap::new(), progress };
        Ok((receiver, inbox, address))
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    fn run(&mut self, mut inbox: Inbox) {
        loop {
            match inbox.receive(&self.socket, true) {
                Ok(_) => {
                    let now = clock::now();
                    inbox.each(|from, bytes| self.take(from, bytes, now));
                    self.look(now);
                }
                Err(Errno::EAGAIN | Errno::EINTR) => self.look(clock::now()),
                // An ICMP answer to a report whose client is gone; the socket goes on.
                Err(_) => {}
            }
        }
    }

    #[inline]
    pub(super) fn take(&mut self, from: SocketAddr, bytes: &[u8], now: Nanos) {
        match Datagram::parse(bytes) {
            Some(Datagram::Payload { sequence }) => {
                let Some(account) = self.flows.get_mut(&from) else { return };
                let is_right = bytes.len() == HEADER + self.content.len()
                    && (sequence % self.every != 0 || bytes[HEADER..] == *self.content);
                if is_right {
                    account.good(sequence, bytes.len() as u64, now.0);
                } else {
                    account.damaged();
                }
            }
            Some(Datagram::Hello) => {
                if self.flows.len() >= MOST_FLOWS {
                    self.flows.retain(|_, account| now.since(Nanos(account.report().last_ns)) < IDLE);
                }
                if self.flows.len() < MOST_FLOWS || self.flows.contains_key(&from) {
                    self.flows.insert(from, Account::default());
                    if let Some(progress) = &mut self.progress {
                        progress.begin(&self.flows);
                    }
                    self.answer(from, Datagram::Hello);
                }
            }
            Some(Datagram::End { .. }) => {
                if let Some(account) = self.flows.get(&from) {
                    self.answer(from, Datagram::Report(account.report()));
                }
            }
            Some(Datagram::Report(_)) | None => {}
        }
    }

    fn answer(&self, to: SocketAddr, datagram: Datagram) {
        // A lost answer is asked for again.
        let _ = sendto(
            self.socket.as_raw_fd(),
            &datagram.to_bytes(),
            &SockaddrStorage::from(to),
            MsgFlags::MSG_NOSIGNAL,
        );
    }

    #[inline]
    fn look(&mut self, now: Nanos) {
        if let Some(progress) = &mut self.progress
            && now >= progress.next
        {
            progress.tell(now, &self.flows);
        }
    }
}

/// What was told until now.
struct Progress {
    every: Nanos,
    /// When the first datagram came after the last HELLO.
    start: Option<Nanos>,
    next: Nanos,
    told: Totals,
}

/// Received, bytes of those, missing.
type Totals = (u64, u64, i64);

impl Progress {
    fn new(every: Nanos) -> Self {
        Self { every, start: None, next: Nanos::ZERO, told: (0, 0, 0) }
    }

    /// A client is about to send.
    fn begin(&mut self, flows: &HashMap<SocketAddr, Account>) {
        (self.start, self.next, self.told) = (None, Nanos::ZERO, totals(flows));
    }

    #[cold]
    fn tell(&mut self, now: Nanos, flows: &HashMap<SocketAddr, Account>) {
        let sum = totals(flows);
        if sum.0 == self.told.0 {
            return;
        }
        let start = *self.start.get_or_insert(now);
        if now > start {
            emit(&Event::Sample(Sample {
                at_ns: now.since(start),
                operations: sum.0 - self.told.0,
                bytes: Bytes(sum.1 - self.told.1),
                failed: 0,
                latency: None,
                lost: Some(sum.2 - self.told.2),
                rtt_us: None,
            }));
            self.told = sum;
        }
        self.next = start + Nanos((now.since(start).0 / self.every.0 + 1) * self.every.0);
    }
}

fn totals(flows: &HashMap<SocketAddr, Account>) -> Totals {
    flows.values().fold((0, 0, 0), |sum, account| {
        let report = account.report();
        (sum.0 + report.received, sum.1 + report.bytes, sum.2 + account.missing() as i64)
    })
}
