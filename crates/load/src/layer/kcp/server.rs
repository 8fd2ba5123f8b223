//! The server: one socket, a session for each address and conversation, one thread.

use super::Setting;
use super::frames::{Content, Reader};
use super::outlet::{Outbox, Outlet};
use super::watch::Watch;
use crate::clock;
use crate::packets;
use crate::process::{Signals, emit};
use crate::refusal::Refusal;
use kcp::Kcp;
use linerate_contract::{Bytes, Event, Nanos, Sample, Spec};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// A client that says nothing for so long is gone; three times the contract's timeout for an operation.
const IDLE: Nanos = Nanos(30_000_000_000);
/// Sessions at the same time. A stranger must not make the server grow without end.
const MOST_SESSIONS: usize = 1_024;
/// Where nothing is in flight, a look at idle sessions and samples is due so often.
const REST: Nanos = Nanos(50_000_000);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// A spec that lacks something, or an address that cannot be had.
pub fn run(spec: &Spec) -> Result<(), Refusal> {
    let setting = Setting::of(spec)?;
    let signals = Signals::claim()?;
    let (socket, address) = packets::bind(spec, setting.packets)?;
    let in_flight = setting.in_flight(&socket)?;
    let sample = spec.sample_ns.filter(|every| *every > Nanos::ZERO);
    let watch = Watch::of(spec, [&socket])?;
    std::thread::spawn(move || Server::new(setting, socket, watch, in_flight, sample).run());
    emit(&Event::Ready { address });
    signals.wait();
    Ok(())
}

struct Session {
    kcp: Kcp<Outlet>,
    reader: Reader,
    answered: bool,
    heard: Nanos,
    next_flush: Nanos,
    fed: bool,
}

struct Server {
    setting: Setting,
    socket: OwnedFd,
    watch: Watch,
    in_flight: u16,
    content: Content,
    outbox: Rc<RefCell<Outbox>>,
    sessions: HashMap<(SocketAddr, u32), Session>,
    start: Nanos,
    buffer: Box<[u8]>,
    /// Good bytes of all sessions, for samples.
    good: u64,
    sample: Option<Sampling>,
}

/// Samples: how often, since when, and what was told.
struct Sampling {
    every: Nanos,
    begun: Option<Nanos>,
    next: Nanos,
    told: u64,
}

impl Server {
    fn new(setting: Setting, socket: OwnedFd, watch: Watch, in_flight: u16, sample: Option<Nanos>) -> Self {
        Self {
            content: Content::new(setting.mtu),
            buffer: vec![0; setting.mtu].into(),
            setting,
            socket,
            watch,
            in_flight,
            outbox: Rc::default(),
            sessions: HashMap::new(),
            start: clock::now(),
            good: 0,
            sample: sample.map(|every| Sampling { every, begun: None, next: Nanos::ZERO, told: 0 }),
        }
    }

    fn run(mut self) {
        crate::pause::without_timer_slack();
        let mut inbox = self.setting.inbox(self.in_flight);
        loop {
            let now = clock::now();
            // Errors are ICMP answers to clients that are gone; the socket goes on.
            if inbox.receive(&self.socket, false).is_ok() {
                inbox.each(|from, bytes| self.feed(from, bytes, now));
            }
            self.turn(now);
            let _ = self.outbox.borrow_mut().send(&self.socket, self.setting.packets);
            self.look(now);
            self.wait();
        }
    }

    fn feed(&mut self, from: SocketAddr, bytes: &[u8], now: Nanos) {
        if bytes.len() < kcp::KCP_OVERHEAD {
            return;
        }
        let conv = kcp::get_conv(bytes);
        let key = (from, conv);
        if !self.sessions.contains_key(&key) {
            let outlet = Outlet { outbox: self.outbox.clone(), to: Some(from) };
            let session = (conv != 0 && self.sessions.len() < MOST_SESSIONS)
                .then(|| self.setting.conversation(conv, outlet, self.in_flight).ok())
                .flatten();
            let Some(kcp) = session else { return };
            let session = Session {
                kcp,
                reader: Reader::default(),
                answered: false,
                heard: now,
                next_flush: now,
                fed: false,
            };
            self.sessions.insert(key, session);
            if let Some(sampling) = &mut self.sample {
                (sampling.begun, sampling.next, sampling.told) = (None, Nanos::ZERO, self.good);
            }
        }
        let session = self.sessions.get_mut(&key).expect("it was put there a line above");
        if session.kcp.input(bytes).is_ok() {
            (session.heard, session.fed) = (now, true);
        }
    }

    fn turn(&mut self, now: Nanos) {
        let millis = (now.since(self.start).0 / 1_000_000) as u32;
        for session in self.sessions.values_mut() {
            if session.fed {
                let before = session.reader.good;
                while let Ok(length) = session.kcp.recv(&mut self.buffer) {
                    session.reader.take(&self.buffer[..length], &self.content);
                }
                self.good += session.reader.good - before;
                if session.reader.ended && !session.answered {
                    session.answered = session.kcp.send(&session.reader.good.to_le_bytes()).is_ok();
                }
            }
            if session.fed || now >= session.next_flush {
                // Writing into memory does not fail, and the first update was long ago.
                let _ = session.kcp.update(millis);
                let _ = session.kcp.flush();
                session.next_flush = now + self.setting.interval;
                session.fed = false;
            }
        }
        self.sessions.retain(|_, session| {
            let is_over = session.answered && session.kcp.wait_snd() == 0;
            !(session.kcp.is_dead_link() || now.since(session.heard) >= if is_over { REST } else { IDLE })
        });
    }

    /// Until something comes, or a flush is due.
    fn wait(&mut self) {
        let now = clock::now();
        let due = self.sessions.values().map(|session| session.next_flush).min();
        let until = due.unwrap_or(now + REST).min(now + REST);
        self.watch.until(now, until);
    }

    fn look(&mut self, now: Nanos) {
        let Some(sampling) = &mut self.sample else { return };
        if self.good == sampling.told || now < sampling.next {
            return;
        }
        let begun = *sampling.begun.get_or_insert(now);
        if now > begun {
            emit(&Event::Sample(Sample {
                at_ns: now.since(begun),
                operations: 0,
                bytes: Bytes(self.good - sampling.told),
                failed: 0,
                latency: None,
                lost: None,
                rtt_us: None,
            }));
            sampling.told = self.good;
        }
        sampling.next = begun + Nanos((now.since(begun).0 / sampling.every.0 + 1) * sampling.every.0);
    }
}
