//! The server: one socket, a session for each address and conversation, one thread.

use super::held::{HeldSegments, pushes};
use super::output::Output;
use super::{KcpConfig, SPIN};
use crate::cause::{note, peer_failed, print_peers};
use crate::clock;
use crate::packets::{
    self, DatagramServer, DatagramService, OwnAddresses, Received, ReceiverSampler, SendQueue, widen_buffers,
};
use crate::process::{Signals, spawn};
use crate::refusal::Refusal;
use crate::waiter::Waiter;
use kcp::Kcp;
use linerate_contract::{Cause, ErrorKind, Nanos, Spec};
use linerate_proto::frames::{FrameContent, FrameReader};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// A session without input for this long is over; three times the contract's timeout for an operation.
const IDLE: Nanos = Nanos(30_000_000_000);
/// Concurrent sessions, so that the server's memory is bounded.
const MAX_SESSIONS: usize = 1_024;
/// The most of one socket: a client has a socket for each conversation (sdk/CONTRACT.md); a few more,
/// for one that uses its socket again at once.
const MAX_SESSIONS_OF_A_SOCKET: usize = 8;
/// Bytes of segments that wait for an earlier one, over all sessions: 23 full windows of the default. Beyond,
/// only what is in order is accepted, so every session still proceeds, and new ones begin.
const MAX_HELD: usize = 32 << 20;
/// The state machine's own bytes for a segment, rounded up.
const SEGMENT: usize = 128;
/// The interval of the checks for idle sessions and samples while nothing is in flight.
const POLL_INTERVAL: Nanos = Nanos(50_000_000);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// An invalid spec, or an address that is in use or not of this host.
pub(crate) fn run(spec: &Spec) -> Result<(), Refusal> {
    let config = KcpConfig::from_spec(spec)?;
    let signals = Signals::claim()?;
    let (socket, address) = packets::bind(spec, config.mode, false)?;
    widen_buffers(&socket, spec)?;
    let in_flight = config.in_flight(&socket)?;
    let sampler = ReceiverSampler::from_spec(spec);
    let server = DatagramServer::new(socket, Waiter::spinning(spec, SPIN)?, config.inbox(in_flight))?;
    let own = OwnAddresses::for_address(address)?;
    spawn(move || server.run(KcpServer::new(config, own, in_flight, sampler)))?;
    signals.serve(address);
    print_peers();
    Ok(())
}

struct KcpSession {
    kcp: Kcp<Output>,
    reader: FrameReader,
    held: HeldSegments,
    answered: bool,
    /// When the last input arrived.
    last_input: Nanos,
    next_flush: Nanos,
    /// There was input since the last turn.
    fed: bool,
}

pub(super) struct KcpServer {
    config: KcpConfig,
    in_flight: u16,
    content: FrameContent,
    queue: Rc<RefCell<SendQueue>>,
    sessions: HashMap<(SocketAddr, u32), KcpSession>,
    own: OwnAddresses,
    /// Segments that wait for an earlier one, in all sessions.
    held: usize,
    start: Nanos,
    buffer: Box<[u8]>,
    /// Good bytes of all sessions, for samples.
    good: u64,
    sampler: Option<ReceiverSampler>,
}

impl KcpServer {
    fn new(config: KcpConfig, own: OwnAddresses, in_flight: u16, sampler: Option<ReceiverSampler>) -> Self {
        Self {
            content: FrameContent::new(config.mtu),
            buffer: vec![0; config.mtu].into(),
            config,
            in_flight,
            queue: Rc::default(),
            sessions: HashMap::new(),
            own,
            held: 0,
            start: clock::now(),
            good: 0,
            sampler,
        }
    }

    fn has_no_room_for(&self, from: SocketAddr) -> bool {
        self.sessions.len() >= MAX_SESSIONS
            || self.sessions.keys().filter(|(of, _)| *of == from).count() >= MAX_SESSIONS_OF_A_SOCKET
    }

    fn sample(&mut self, now: Nanos) {
        if let Some(sampler) = self.sampler.as_mut().filter(|sampler| sampler.is_due(now)) {
            sampler.take(now, Received { bytes: self.good, ..Received::default() });
        }
    }
}

/// A datagram that is none of a conversation.
#[cold]
fn refuse(bytes: &[u8]) {
    let text = "a datagram that is none of KCP in stream mode";
    peer_failed(note(ErrorKind::Malformed, || Cause::showing(text, bytes)));
}

impl DatagramService for KcpServer {
    /// Passes a datagram to its session. A new session begins only with input that KCP accepts: other
    /// datagrams use no slot.
    fn feed(&mut self, from: SocketAddr, bytes: &[u8], now: Nanos) {
        if bytes.len() < kcp::KCP_OVERHEAD || bytes.len() > self.config.mtu {
            return refuse(bytes);
        }
        // Without stream mode a message would wait until all of it is there.
        if pushes(bytes).any(|segment| segment.following != 0) {
            return refuse(bytes);
        }
        let conv = kcp::get_conv(bytes);
        let is_full = self.held >= MAX_HELD / (self.config.mtu + SEGMENT);
        if let Some(session) = self.sessions.get_mut(&(from, conv)) {
            if is_full && !session.held.is_in_order(bytes) {
                return;
            }
            if session.kcp.input(bytes).is_ok() {
                let before = session.held.count();
                session.held.note(bytes);
                self.held = self.held + session.held.count() - before;
                (session.last_input, session.fed) = (now, true);
            }
            return;
        }
        if conv == 0 || self.has_no_room_for(from) || self.own.contains(from) {
            return;
        }
        let output = Output { queue: self.queue.clone(), to: Some(from) };
        let Ok(mut kcp) = self.config.conversation(conv, output, self.in_flight) else { return };
        let mut held = HeldSegments::new(kcp.rcv_wnd());
        if is_full && !held.is_in_order(bytes) {
            return;
        }
        if kcp.input(bytes).is_err() {
            return refuse(bytes);
        }
        held.note(bytes);
        self.held += held.count();
        let (reader, answered, fed) = (FrameReader::default(), false, true);
        let session = KcpSession { kcp, reader, held, answered, last_input: now, next_flush: now, fed };
        self.sessions.insert((from, conv), session);
        if let Some(sampler) = &mut self.sampler {
            sampler.begin(Received { bytes: self.good, ..Received::default() });
        }
    }

    fn turn(&mut self, now: Nanos) -> Nanos {
        let millis = (now.since(self.start).0 / 1_000_000) as u32;
        for session in self.sessions.values_mut() {
            if session.fed {
                let before = session.reader.good;
                while let Ok(length) = session.kcp.recv(&mut self.buffer) {
                    session.reader.take(&self.buffer[..length], &self.content);
                }
                session.held.read();
                self.good += session.reader.good - before;
                if session.reader.ended && !session.answered {
                    session.answered = session.kcp.send(&session.reader.good.to_le_bytes()).is_ok();
                }
            }
            if session.fed || now >= session.next_flush {
                // Writing into memory does not fail, and the first update was at the start.
                let _ = session.kcp.update(millis);
                let _ = session.kcp.flush();
                session.next_flush = now + self.config.interval;
                session.fed = false;
            }
        }
        self.sessions.retain(|_, session| {
            let is_over = session.answered && session.kcp.wait_snd() == 0;
            !(session.kcp.is_dead_link()
                || now.since(session.last_input) >= if is_over { POLL_INTERVAL } else { IDLE })
        });
        self.held = self.sessions.values().map(|session| session.held.count()).sum();
        self.sample(now);
        let due = self.sessions.values().map(|session| session.next_flush).min();
        due.unwrap_or(Nanos(u64::MAX)).min(now + POLL_INTERVAL)
    }

    fn send(&mut self, socket: &OwnedFd) {
        let _ = self.queue.borrow_mut().send(socket, self.config.mode);
    }
}

#[cfg(any(test, fuzzing))]
impl KcpServer {
    /// Without a socket.
    pub(super) fn at(address: SocketAddr) -> Self {
        let mut spec = Spec::new(
            linerate_contract::Role::Server,
            linerate_contract::Layer::Kcp,
            linerate_contract::Workload::Stream,
        );
        spec.size = 1_000;
        let config = KcpConfig::from_spec(&spec).expect("a good spec");
        Self::new(config, OwnAddresses::for_address(address).expect("it is one of this host"), 32, None)
    }

    pub(super) fn config(&self) -> &KcpConfig {
        &self.config
    }

    pub(super) fn forget(&mut self) {
        self.sessions.clear();
        self.held = 0;
        self.queue.borrow_mut().clear();
        self.start = Nanos::ZERO;
    }

    /// One turn without a socket; returns the number of bytes that it would send.
    pub(super) fn answers(&mut self, now: Nanos) -> usize {
        self.turn(now);
        assert!(self.sessions.len() <= MAX_SESSIONS);
        let most = MAX_HELD / (self.config.mtu + SEGMENT) + self.config.mtu / kcp::KCP_OVERHEAD;
        assert!(self.held <= most);
        let queued = self.queue.borrow().bytes().len();
        self.queue.borrow_mut().clear();
        queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_are_not_kcp_begin_no_session() {
        let (mut server, from) = (server(), "127.0.0.1:9".parse().unwrap());
        for conv in 1..2_000_u32 {
            let mut bytes = [0xff; 64];
            bytes[..4].copy_from_slice(&conv.to_le_bytes());
            server.feed(from, &bytes, Nanos(1));
        }
        assert!(server.sessions.is_empty());
        let datagram = segment(7, 0, 0, 5);
        server.feed(OWN.parse().unwrap(), &datagram, Nanos(1));
        assert!(server.sessions.is_empty(), "a forged source: the server itself");
        server.feed(from, &datagram, Nanos(1));
        assert_eq!(server.sessions.len(), 1);
    }

    const OWN: &str = "127.0.0.1:4000";

    fn server() -> KcpServer {
        KcpServer::at(OWN.parse().unwrap())
    }

    /// A segment with data.
    fn segment(conv: u32, number: u32, following: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; kcp::KCP_OVERHEAD + length];
        bytes[..4].copy_from_slice(&conv.to_le_bytes());
        (bytes[4], bytes[5]) = (81, following);
        bytes[12..16].copy_from_slice(&number.to_le_bytes());
        bytes[20..24].copy_from_slice(&(length as u32).to_le_bytes());
        bytes
    }

    #[test]
    fn a_datagram_above_the_mtu_and_one_without_stream_mode_are_dropped() {
        let (mut server, from) = (server(), "127.0.0.1:9".parse().unwrap());
        server.feed(from, &segment(7, 0, 0, 60_000), Nanos(1));
        server.feed(from, &segment(7, 0, 200, 5), Nanos(1));
        assert!(server.sessions.is_empty());
    }

    #[test]
    fn one_socket_has_a_few_sessions_and_leaves_the_others_to_others() {
        let mut server = server();
        for conv in 1..2_000 {
            server.feed("127.0.0.1:9".parse().unwrap(), &segment(conv, 0, 0, 5), Nanos(1));
        }
        assert_eq!(server.sessions.len(), MAX_SESSIONS_OF_A_SOCKET);
        server.feed("127.0.0.1:10".parse().unwrap(), &segment(1, 0, 0, 5), Nanos(1));
        assert_eq!(server.sessions.len(), MAX_SESSIONS_OF_A_SOCKET + 1);
    }

    #[test]
    fn segments_that_wait_have_a_limit_over_all_sessions_and_those_in_order_pass_it() {
        let mut server = server();
        let most = MAX_HELD / (server.config.mtu + SEGMENT);
        for port in 1..=100 {
            let from = SocketAddr::from(([127, 0, 0, 1], port));
            server.feed(from, &segment(1, 0, 0, 5), Nanos(1));
            for number in 2..1_000 {
                server.feed(from, &segment(1, number, 0, 1_300), Nanos(1));
            }
        }
        assert_eq!(server.held, most);
        let late = SocketAddr::from(([127, 0, 0, 1], 200));
        server.feed(late, &segment(1, 1, 0, 5), Nanos(1));
        assert_eq!(server.sessions.len(), 100, "it would have to wait");
        server.feed(late, &segment(1, 0, 0, 5), Nanos(1));
        assert_eq!((server.sessions.len(), server.held), (101, most), "an honest client is served");
        let first = SocketAddr::from(([127, 0, 0, 1], 1));
        server.feed(first, &segment(1, 1, 0, 5), Nanos(1));
        assert_eq!(server.held, most - 998, "the gap of the first session is filled");
        server.answers(Nanos(2));
        assert_eq!(server.held, most - 998);
    }
}
