//! One message to every connection, and back from all: an operation is over when the slowest has answered.
//!
//! The one operation spans all connections, so this is a loop of its own beside the engine's; the layer is the same. If one
//! connection fails, the operation has failed, and all are opened anew: answers of a broken round must not count for the next.

use crate::clock;
use crate::layer::{Flow, Layer};
use crate::meter::Meter;
use crate::refusal::{Doing, Refusal};
use crate::socket::connect_all;
use linerate_contract::{Done, ErrorKind, Nanos, Spec};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::time::Duration;

/// Edges taken per wait.
const BATCH: usize = 256;
/// After a failed round, so that a dead port does not burn a CPU.
const REST: Duration = Duration::from_millis(1);

/// Runs `spec` on one thread: an operation is one, so there is nothing to share among threads.
///
/// # Errors
/// A spec that lacks something, or a kernel that refuses.
pub fn run<L: Layer>(spec: &Spec) -> Result<Done, Refusal> {
    let enough = spec.operations.is_some() || spec.duration_ns.is_some();
    if spec.connections == 0 || !enough || spec.timeout_ns == Nanos::ZERO {
        let text =
            "fanout needs \"connections\" and \"timeout_ns\" above 0, and \"operations\" or \"duration_ns\"";
        return Err(Refusal::BadSpec(text.into()));
    }
    let mut fan = Fan {
        layer: L::new(spec, true)?,
        epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?,
        connections: Vec::new(),
        wanted: spec.connections as usize,
        timeout: spec.timeout_ns,
    };
    let mut meter = Meter::new(spec, spec.operations);
    // What fails here fails again in the first round, and is counted there.
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
            }
            Err(kind) => {
                meter.fail(kind, clock::now());
                fan.connections.clear();
                std::thread::sleep(REST);
                now = clock::now();
            }
        }
    }
    Ok(Done { connect: None, ..meter.done(clock::thread_cpu().since(cpu)) })
}

struct Fan<L: Layer> {
    layer: L,
    epoll: Epoll,
    connections: Vec<Slot<L::Connection>>,
    wanted: usize,
    timeout: Nanos,
}

struct Slot<C> {
    connection: C,
    doing: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Sending,
    Receiving,
    Back,
}

impl<L: Layer> Fan<L> {
    /// Opens what is not open, and waits until all stand.
    fn open(&mut self) -> Result<(), ErrorKind> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        for index in 0..self.wanted {
            let connection = self.layer.open()?;
            self.epoll
                .add(&connection, EpollEvent::new(flags, index as u64))
                .map_err(|_| ErrorKind::DescriptorExhausted)?;
            self.connections.push(Slot { connection, doing: Place::Back });
        }
        let stood = connect_all(self.connections.iter().map(|slot| &slot.connection), self.timeout);
        stood.into_iter().collect()
    }

    /// One operation; its payload bytes.
    fn round(&mut self, began: Nanos) -> Result<u64, ErrorKind> {
        if self.connections.len() < self.wanted {
            self.connections.clear();
            self.open()?;
        }
        let (mut missing, mut bytes) = (self.wanted, 0);
        for slot in &mut self.connections {
            slot.doing = if self.layer.send(&mut slot.connection)? == Flow::Done {
                Place::Receiving
            } else {
                Place::Sending
            };
        }
        let mut events = [EpollEvent::empty(); BATCH];
        while missing > 0 {
            let left = self.timeout.since(clock::now().since(began));
            if left == Nanos::ZERO {
                return Err(ErrorKind::Timeout);
            }
            let wait = EpollTimeout::from(left.0.div_ceil(1_000_000).min(60_000) as u16);
            let ready = match self.epoll.wait(&mut events, wait) {
                Ok(ready) => ready,
                Err(nix::Error::EINTR) => 0,
                Err(errno) => unreachable!("epoll_wait on its own descriptor and buffer: {errno}"),
            };
            for event in &events[..ready] {
                let slot = &mut self.connections[event.data() as usize];
                if slot.doing == Place::Sending && self.layer.send(&mut slot.connection)? == Flow::Done {
                    slot.doing = Place::Receiving;
                }
                if slot.doing == Place::Receiving
                    && let Some(answer) = self.layer.receive(&mut slot.connection)?
                {
                    slot.doing = Place::Back;
                    bytes += answer.bytes;
                    missing -= 1;
                }
            }
        }
        Ok(bytes)
    }
}
