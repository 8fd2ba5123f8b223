//! One message to every connection, and one answer from each: an operation ends with the slowest answer.
//!
//! An operation spans all connections, so this is a loop of its own beside the engine's; the layer is the
//! same. If one connection fails, the operation has failed, and all are opened again: late answers must not
//! count for the next one.

use crate::clock;
use crate::layer::{Flow, Layer, Reply};
use crate::meter::Meter;
use crate::refusal::{Doing, Refusal};
use crate::socket::connect_all;
use crate::waiter::Waiter;
use linerate_contract::{Done, ErrorKind, Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::time::Duration;

/// Edges taken per wait.
const BATCH: usize = 256;
/// Events of every connection.
const EVENTS: EpollFlags = EpollFlags::EPOLLIN.union(EpollFlags::EPOLLOUT).union(EpollFlags::EPOLLET);
/// The pause after a failed operation, so that a closed port does not keep a CPU busy.
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// Runs `spec` on one thread: there is one operation at a time.
///
/// # Errors
/// An invalid spec, or a refused system call.
pub fn run<L: Layer>(spec: &Spec) -> Result<Done, Refusal> {
    let enough = spec.operations.is_some() || spec.duration_ns.is_some();
    if spec.connections == 0 || !enough || spec.timeout_ns == Nanos::ZERO {
        let text =
            "fanout needs \"connections\" and \"timeout_ns\" above 0, and \"operations\" or \"duration_ns\"";
        return Err(Refusal::BadSpec(text.into()));
    }
    let mut fan = Fanout {
        layer: L::new(spec, true)?,
        epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?,
        connections: Vec::new(),
        wanted: spec.connections as usize,
        timeout: spec.timeout_ns,
        waiter: Waiter::of(spec)?,
    };
    let mut meter = Meter::new(spec, spec.operations);
    // A failure repeats in the first operation, and is counted there.
    if fan.open().is_err() {
        fan.connections.clear();
    }
    let cpu = clock::thread_cpu();
    let mut now = clock::now();
    meter.start(now);
    while now < meter.window_end() && meter.begin() {
        let began = now;
        match fan.round(began) {
            Ok(bytes) => {
                now = clock::now();
                meter.succeed(began, now, bytes, true);
                meter.look(now);
            }
            Err(kind) => {
                meter.fail(kind, clock::now());
                fan.connections.clear();
                std::thread::sleep(RETRY_PAUSE);
                now = clock::now();
            }
        }
    }
    meter.close(now);
    Ok(Done { connect: None, ..meter.done(clock::thread_cpu().since(cpu)) })
}

struct Fanout<L: Layer> {
    layer: L,
    epoll: Epoll,
    connections: Vec<Peer<L::Connection>>,
    wanted: usize,
    timeout: Nanos,
    waiter: Waiter,
}

struct Peer<C> {
    connection: C,
    phase: PeerPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeerPhase {
    Sending,
    Receiving,
    Answered,
}

impl<L: Layer> Fanout<L> {
    /// Opens all connections, and waits until they are established.
    fn open(&mut self) -> Result<(), ErrorKind> {
        for index in 0..self.wanted {
            let connection = self.layer.open()?;
            self.epoll
                .add(&connection, EpollEvent::new(EVENTS, index as u64))
                .map_err(|_| ErrorKind::DescriptorExhausted)?;
            self.connections.push(Peer { connection, phase: PeerPhase::Answered });
        }
        let established = connect_all(self.connections.iter().map(|peer| &peer.connection), self.timeout);
        established.into_iter().collect()
    }

    /// Runs one operation; returns its payload bytes.
    fn round(&mut self, began: Nanos) -> Result<u64, ErrorKind> {
        if self.connections.len() < self.wanted {
            self.connections.clear();
            self.open()?;
        }
        let (mut missing, mut bytes) = (self.wanted, 0);
        for peer in &mut self.connections {
            peer.phase = if self.layer.send(&mut peer.connection)? == Flow::Done {
                PeerPhase::Receiving
            } else {
                PeerPhase::Sending
            };
        }
        let mut events = [EpollEvent::empty(); BATCH];
        while missing > 0 {
            let left = self.timeout.since(clock::now().since(began));
            if left == Nanos::ZERO {
                return Err(ErrorKind::Timeout);
            }
            let ready = self.waiter.within(&self.epoll, &mut events, left);
            for event in &events[..ready] {
                let peer = &mut self.connections[event.data() as usize];
                if peer.phase == PeerPhase::Sending && self.layer.send(&mut peer.connection)? == Flow::Done {
                    peer.phase = PeerPhase::Receiving;
                }
                if peer.phase != PeerPhase::Receiving {
                    continue;
                }
                match self.layer.receive(&mut peer.connection)? {
                    Reply::Complete(answer) => {
                        peer.phase = PeerPhase::Answered;
                        bytes += answer.bytes;
                        missing -= 1;
                    }
                    Reply::Waiting | Reply::Blocked => {}
                    Reply::Unfinished => {
                        // A change of the registration makes the kernel report the state again.
                        let mut again = EpollEvent::new(EVENTS, event.data());
                        let outcome = self.epoll.modify(&peer.connection, &mut again);
                        outcome.map_err(|_| ErrorKind::DescriptorExhausted)?;
                    }
                }
            }
        }
        Ok(bytes)
    }
}
