//! The event loop of one client thread: raw epoll, no lock, no atomic, no allocation once it runs.
//!
//! Each connection is in a slot. A slot is stepped when its socket had an edge; a socket is registered once,
//! before the first wait for it. With edges the kernel checks no socket twice after a wait, and the engine
//! registers none twice. Deadlines are checked in sweeps, [`SWEEPS_PER_TIMEOUT`] per timeout, and not by a
//! timer each.

mod context;
mod paced;
mod slot;
mod workload;

pub use context::Context;
pub use slot::{Phase, Slot};
pub use workload::Workload;

use crate::clock;
use crate::layer::{Flow, Layer};
use crate::meter::Meter;
use crate::refusal::{Doing, Refusal};
use crate::sample::Sampler;
use crate::schedule::Schedule;
use crate::socket::connect_all;
use crate::waiter::{self, Waiter};
use linerate_contract::{ErrorKind, Nanos};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use paced::Pacer;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A timeout is detected at most 1/16 late. 1/8 would do as well; at 10,000 connections a sweep takes 0.1 ms.
const SWEEPS_PER_TIMEOUT: u64 = 16;
/// Sweeps are never closer than this: the granularity of `epoll_wait(2)`.
const SHORTEST_SWEEP: Nanos = Nanos(1_000_000);
/// The pause of a slot that could not connect, so that a closed port does not keep a CPU busy; 10,000 refused
/// operations over 5 connections still end within two or three seconds.
const RETRY_PAUSE: Nanos = Nanos(1_000_000);
/// The time limit for the closing handshakes of all connections. It is outside of every window.
const CLOSE_TIMEOUT: Nanos = Nanos(1_000_000_000);
/// Edges taken per wait. 32 connections fit at once; more bring no fewer system calls per operation.
const BATCH: usize = 256;
/// The events of epoll after the peer has closed, with or without bytes left to read.
const PEER_CLOSED: EpollFlags =
    EpollFlags::EPOLLRDHUP.union(EpollFlags::EPOLLHUP).union(EpollFlags::EPOLLERR);
/// The token of the descriptor that ends the loop.
const STOP: u64 = u64::MAX;

/// A thread's event loop.
#[derive(Debug)]
pub struct Engine<L: Layer, W> {
    /// Kept open: epoll drops a closed descriptor together with its pending events.
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
    /// A failure of epoll_create1(2) or epoll_ctl(2).
    pub fn new(
        layer: L,
        meter: Meter,
        connections: u32,
        schedule: Option<Schedule>,
        waiter: Waiter,
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
                paused: Vec::with_capacity(connections as usize),
                pacer: Pacer::new(schedule, connections),
                waiter,
                last: Nanos::ZERO,
            },
            slots: (0..connections).map(Slot::new).collect(),
            sampler,
            workload: PhantomData,
        })
    }

    /// Opens the window, runs until it is over, and returns the counters and the CPU time of the window.
    pub fn run(mut self) -> (Meter, Nanos) {
        if W::PACED {
            return self.run_paced();
        }
        if self.context.waiter.coalesces() {
            waiter::without_timer_slack();
        }
        if W::PERSISTENT {
            self.connect();
        }
        let cpu = clock::thread_cpu();
        let start = self.context.now();
        self.context.meter.start(start);
        self.slots.iter_mut().for_each(|slot| W::step(slot, &mut self.context));
        let stopped = !self.turn(start, Meter::running);
        let cpu = clock::thread_cpu().since(cpu);
        let now = self.context.now();
        if stopped {
            self.context.meter.stop(now);
        } else {
            self.context.meter.close(now);
            self.drain(now);
        }
        self.close();
        (self.context.meter, cpu)
    }

    /// Waits for the operations in flight at the window's end: one that never ends has failed.
    fn drain(&mut self, now: Nanos) {
        if let Some(sampler) = self.sampler.take() {
            sampler.finish(&mut self.context.meter);
        }
        if !self.turn(now, |meter, _| meter.open() > 0) {
            self.context.meter.stop(now);
        }
    }

    /// After the window: closes the idle connections, and completes the counters.
    fn close(&mut self) {
        let deadline = clock::now() + CLOSE_TIMEOUT;
        for slot in self.slots.iter_mut().filter(|slot| slot.phase == Phase::Idle) {
            if let Some(mut connection) = slot.connection.take() {
                self.context.layer.close(&mut connection, deadline);
            }
        }
        self.context.meter.secured_by(self.context.layer.security());
        if let Some(sampler) = self.sampler.take() {
            sampler.finish(&mut self.context.meter);
        }
    }

    /// Persistent connections are established before the first operation (the contract's `connections`),
    /// including handshakes. One that fails is opened again by its first operation, which then fails with the
    /// right kind.
    fn connect(&mut self) {
        let deadline = clock::now() + self.context.meter.timeout();
        for slot in &mut self.slots {
            slot.connection = self.context.layer.open().ok();
        }
        let established = connect_all(
            self.slots.iter().filter_map(|slot| slot.connection.as_ref()),
            self.context.meter.timeout(),
        );
        let opened = self.slots.iter_mut().filter(|slot| slot.connection.is_some());
        opened.zip(established).filter(|(_, result)| result.is_err()).for_each(|(slot, _)| slot.close());
        for slot in &mut self.slots {
            if let Some(connection) = &mut slot.connection
                && !establish(&mut self.context.layer, connection, deadline)
            {
                slot.close();
            }
        }
    }

    /// Runs while `goes_on`; false if the loop was stopped.
    fn turn(&mut self, start: Nanos, goes_on: impl Fn(&Meter, Nanos) -> bool) -> bool {
        let timeout = self.context.meter.timeout();
        let sweep_every = Nanos(timeout.0 / SWEEPS_PER_TIMEOUT).max(SHORTEST_SWEEP);
        let mut next_sweep = start + sweep_every;
        let mut next_wake = Nanos(u64::MAX);
        let mut events = [EpollEvent::empty(); BATCH];
        while goes_on(&self.context.meter, self.context.last) {
            if !self.context.paused.is_empty() && next_wake == Nanos(u64::MAX) {
                next_wake = self.context.last + RETRY_PAUSE;
            }
            let until = next_sweep.min(next_wake).min(self.next_end()).min(self.next_sample());
            let ready = self.context.wait_events(&mut events, until);
            let before = self.context.last;
            for event in &events[..ready] {
                if event.data() == STOP {
                    return false;
                }
                let slot = &mut self.slots[event.data() as usize];
                slot.peer_closed |= event.events().intersects(PEER_CLOSED);
                W::step(slot, &mut self.context);
            }
            // An operation that ended in this batch has read the clock already.
            if self.context.last == before {
                self.context.now();
            }
            self.context.meter.look(self.context.last);
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
        true
    }

    /// The window's end; after it no time, while transfers are finished.
    fn next_end(&self) -> Nanos {
        let end = self.context.meter.window_end();
        if self.context.last < end { end } else { Nanos(u64::MAX) }
    }

    fn next_sample(&self) -> Nanos {
        self.sampler.as_ref().map_or(Nanos(u64::MAX), Sampler::next)
    }

    #[inline]
    fn sample(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.poll(self.context.last, &mut self.context.meter);
        }
    }

    fn wake(&mut self) {
        // Slots that fail again are appended, and are not stepped in this call.
        for _ in 0..self.context.paused.len() {
            let index = self.context.paused.swap_remove(0);
            W::step(&mut self.slots[index as usize], &mut self.context);
        }
    }

    fn sweep(&mut self, timeout: Nanos) {
        for slot in &mut self.slots {
            if slot.phase != Phase::Idle && self.context.last.since(slot.began) >= timeout {
                match slot.phase {
                    // The answer was complete: a peer that does not close as announced is no failure of the
                    // operation.
                    Phase::Closing => slot.close(),
                    Phase::Connecting => self.context.fail(slot, ErrorKind::ConnectTimeout),
                    _ => self.context.fail(slot, ErrorKind::Timeout),
                }
                W::step(slot, &mut self.context);
            }
        }
    }
}

/// Establishes a connection before the window; false if that fails. Waits for input only: the messages of a
/// handshake fit any send buffer.
fn establish<L: Layer>(layer: &mut L, connection: &mut L::Connection, deadline: Nanos) -> bool {
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
        // After an interruption the handshake simply continues.
        let _ = poll(&mut [PollFd::new(connection.as_fd(), PollFlags::POLLIN)], left);
    }
}
