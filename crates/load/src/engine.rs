//! The event loop of one client thread: raw epoll, no lock, no atomic, no allocation once it runs.
//!
//! Connections live in slots. A slot is stepped when its socket had an edge; sockets are registered once, when there is
//! first something to wait for. Edges spare the kernel a second look at each socket after each wait, and the engine a
//! second registration. Deadlines are swept every [`SWEEPS_PER_TIMEOUT`]th of the timeout, not timed one by one.

mod context;
mod paced;
mod slot;

pub use context::Context;
pub use slot::{Phase, Slot};

use crate::clock;
use crate::layer::{Flow, Layer};
use crate::meter::Meter;
use crate::pause::{self, Pause};
use crate::refusal::{Doing, Refusal};
use crate::sample::Sampler;
use crate::schedule::Schedule;
use crate::socket::connect_all;
use crate::workload::Workload;
use linerate_contract::{ErrorKind, Nanos};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use paced::Pacer;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A timeout is noticed at most 1/16 late. Half of that would be as good; at 10,000 connections a sweep is 0.1 ms.
const SWEEPS_PER_TIMEOUT: u64 = 16;
/// Sweeps are never closer than this: the granularity of `epoll_wait(2)`.
const SHORTEST_SWEEP: Nanos = Nanos(1_000_000);
/// A slot that could not connect waits for so long, so that a dead port does not burn a CPU; 10,000 refused operations
/// over 5 connections still end within two or three seconds.
const REST: Nanos = Nanos(1_000_000);
/// Goodbyes of all connections that are not answered within this are none. It is outside of every window.
const FAREWELL: Nanos = Nanos(1_000_000_000);
/// Edges taken per wait. 32 connections fit at once; more bring no fewer system calls per operation.
const BATCH: usize = 256;
/// What epoll reports when the peer has closed, with or without bytes left to read.
const GONE: EpollFlags = EpollFlags::EPOLLRDHUP.union(EpollFlags::EPOLLHUP).union(EpollFlags::EPOLLERR);
/// The token of the descriptor that ends the loop.
const STOP: u64 = u64::MAX;

/// A thread's event loop.
#[derive(Debug)]
pub struct Engine<L: Layer, W> {
    /// Kept open: a descriptor that is closed leaves epoll, whatever it had to say.
    _stop: Arc<EventFd>,
    context: Context<L>,
    slots: Vec<Slot<L::Connection>>,
    sampler: Option<Sampler>,
    workload: PhantomData<W>,
}

impl<L: Layer, W: Workload> Engine<L, W> {
    /// A loop over `connections` slots that ends early when `stop` becomes readable.
    ///
    /// # Errors
    /// No descriptor for epoll.
    pub fn new(
        layer: L,
        meter: Meter,
        connections: u32,
        schedule: Option<Schedule>,
        pause: Pause,
        sampler: Option<Sampler>,
        stop: Arc<EventFd>,
    ) -> Result<Self, Refusal> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing("epoll_create1")?;
        epoll.add(&*stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP)).doing("epoll_ctl")?;
        Ok(Self {
            _stop: stop,
            context: Context {
                layer,
                meter,
                epoll,
                resting: Vec::with_capacity(connections as usize),
                pacer: Pacer::new(schedule, connections),
                pause,
                last: Nanos::ZERO,
            },
            slots: (0..connections).map(Slot::new).collect(),
            sampler,
            workload: PhantomData,
        })
    }

    /// Opens the window, works until it is over, and gives the account and the CPU time it took.
    pub fn run(mut self) -> (Meter, Nanos) {
        if W::PACED {
            return self.run_paced();
        }
        if self.context.pause.coalesces() {
            pause::without_timer_slack();
        }
        if W::PERSISTENT {
            self.connect();
        }
        let cpu = clock::thread_cpu();
        let start = self.context.now();
        self.context.meter.start(start);
        self.slots.iter_mut().for_each(|slot| W::step(slot, &mut self.context));
        self.turn(start);
        let cpu = clock::thread_cpu().since(cpu);
        self.part();
        (self.context.meter, cpu)
    }

    /// What is done when the window is over.
    fn part(&mut self) {
        let deadline = clock::now() + FAREWELL;
        for slot in self.slots.iter_mut().filter(|slot| slot.phase == Phase::Idle) {
            if let Some(mut connection) = slot.connection.take() {
                self.context.layer.part(&mut connection, deadline);
            }
        }
        self.context.meter.secured_by(self.context.layer.security());
    }

    /// Connections that stay stand before the first operation begins (the contract's `connections`), handshakes included. One that
    /// cannot be had is tried again by its first operation, which then fails by the right name.
    fn connect(&mut self) {
        let deadline = clock::now() + self.context.meter.timeout();
        for slot in &mut self.slots {
            slot.connection = self.context.layer.open().ok();
        }
        let stood = connect_all(
            self.slots.iter().filter_map(|slot| slot.connection.as_ref()),
            self.context.meter.timeout(),
        );
        let opened = self.slots.iter_mut().filter(|slot| slot.connection.is_some());
        opened.zip(stood).filter(|(_, stood)| stood.is_err()).for_each(|(slot, _)| slot.close());
        for slot in &mut self.slots {
            if let Some(connection) = &mut slot.connection
                && !shake_hands(&mut self.context.layer, connection, deadline)
            {
                slot.close();
            }
        }
    }

    fn turn(&mut self, start: Nanos) {
        let timeout = self.context.meter.timeout();
        let sweep_every = Nanos(timeout.0 / SWEEPS_PER_TIMEOUT).max(SHORTEST_SWEEP);
        let mut next_sweep = start + sweep_every;
        let mut next_wake = Nanos(u64::MAX);
        let mut events = [EpollEvent::empty(); BATCH];
        while self.context.meter.running(self.context.last) {
            if !self.context.resting.is_empty() && next_wake == Nanos(u64::MAX) {
                next_wake = self.context.last + REST;
            }
            let until =
                next_sweep.min(next_wake).min(self.context.meter.window_end()).min(self.next_sample());
            let ready = self.context.look(&mut events, until);
            let before = self.context.last;
            for event in &events[..ready] {
                if event.data() == STOP {
                    return;
                }
                let slot = &mut self.slots[event.data() as usize];
                slot.peer_closed |= event.events().intersects(GONE);
                W::step(slot, &mut self.context);
            }
            // An operation that ended in this batch has read the clock already.
            if self.context.last == before {
                self.context.now();
            }
            if self.context.last >= next_wake {
                next_wake = Nanos(u64::MAX);
                self.wake();
            }
            if self.context.last >= next_sweep {
                self.sweep(timeout);
                next_sweep = self.context.last + sweep_every;
            }
            self.sample();
        }
    }

    fn next_sample(&self) -> Nanos {
        self.sampler.as_ref().map_or(Nanos(u64::MAX), Sampler::next)
    }

    #[inline]
    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.look(self.context.last, &self.context.meter);
        }
    }

    fn wake(&mut self) {
        // Those that fail at once are appended behind, and rest again.
        for _ in 0..self.context.resting.len() {
            let index = self.context.resting.swap_remove(0);
            W::step(&mut self.slots[index as usize], &mut self.context);
        }
    }

    fn sweep(&mut self, timeout: Nanos) {
        for slot in &mut self.slots {
            if slot.phase != Phase::Idle && self.context.last.since(slot.began) >= timeout {
                match slot.phase {
                    // The answer was good; a peer that does not close as it said is no failure of the operation.
                    Phase::Parting => slot.close(),
                    Phase::Connecting => self.context.fail(slot, ErrorKind::ConnectTimeout),
                    _ => self.context.fail(slot, ErrorKind::Timeout),
                }
                W::step(slot, &mut self.context);
            }
        }
    }
}

/// Establishes a connection before the window; false if that fails. What a peer sends is waited for: what is sent to it is short
/// enough for any socket.
fn shake_hands<L: Layer>(layer: &mut L, connection: &mut L::Connection, deadline: Nanos) -> bool {
    loop {
        match layer.establish(connection) {
            Ok(Flow::Done) => return true,
            Ok(Flow::Blocked) => {}
            Err(_) => return false,
        }
        let left = deadline.since(clock::now()).0.div_ceil(1_000_000).min(60_000) as u16;
        if left == 0 {
            return false;
        }
        // Interrupted or not, the next look tells.
        let _ = poll(&mut [PollFd::new(connection.as_fd(), PollFlags::POLLIN)], left);
    }
}
