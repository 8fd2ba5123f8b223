//! The event loop of one client thread: raw epoll, no lock, no atomic, no allocation once it runs.
//!
//! Each connection is in a slot. A slot is stepped when its socket had an edge; a socket is registered once,
//! before the first wait for it. With edges the kernel checks no socket twice after a wait, and the engine
//! registers none twice. Deadlines are checked in sweeps, [`SWEEPS_PER_TIMEOUT`] per timeout, and not by a
//! timer each. All that happens by time is one deadline of the loop: a turn before it compares once.

mod again;
mod connect;
mod context;
mod lanes;
mod paced;
mod round;
mod slot;
mod turns;
mod workload;

pub use context::{Context, Sent};
pub use slot::{Phase, Slot};
pub use workload::Workload;

use crate::clock;
use crate::layer::Layer;
use crate::meter::{LOOK, Meter};
use crate::refusal::{Doing, Refusal};
use crate::sample::Sampler;
use crate::schedule::Schedule;
use crate::waiter::{self, Waiter};
use linerate_contract::{ErrorKind, Nanos};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::EventFd;
use paced::Pacer;
use round::Round;
use std::collections::VecDeque;
use std::marker::PhantomData;
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
/// A time that is never reached.
const NEVER: Nanos = Nanos(u64::MAX);
/// The events of epoll after the peer has closed, with or without bytes left to read.
const PEER_CLOSED: EpollFlags =
    EpollFlags::EPOLLRDHUP.union(EpollFlags::EPOLLHUP).union(EpollFlags::EPOLLERR);
/// The token of the descriptor that ends the loop.
const STOP: u64 = u64::MAX;

/// A thread's event loop.
#[derive(Debug)]
pub struct Engine<L: Layer, W> {
    /// Kept open: epoll drops a closed descriptor together with its pending events.
    stop: Arc<EventFd>,
    context: Context<L>,
    slots: Vec<Slot<L::Connection>>,
    sampler: Option<Sampler>,
    sweep_every: Nanos,
    next_sweep: Nanos,
    /// Bytes of each stream's transfer that had moved at the last sweep, and when that
    /// had changed.
    moved: Vec<(u64, Nanos)>,
    workload: PhantomData<W>,
}

impl<L: Layer, W: Workload<L>> Engine<L, W> {
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
        let transfers = meter.budget() / u64::from(connections.max(1));
        let sweep_every = Nanos(meter.timeout().0 / SWEEPS_PER_TIMEOUT).max(SHORTEST_SWEEP);
        Ok(Self {
            stop,
            context: Context {
                layer,
                pacer: Pacer::new(schedule, connections),
                again: VecDeque::with_capacity(connections as usize),
                has_again: false,
                meter,
                epoll,
                paused: Vec::with_capacity(connections as usize),
                round: Round::default(),
                transfers,
                waiter,
                last: Nanos::ZERO,
                next_wake: NEVER,
                next_timer: NEVER,
            },
            slots: (0..connections).map(Slot::new).collect(),
            sampler,
            sweep_every,
            next_sweep: NEVER,
            moved: vec![(0, Nanos::ZERO); if W::FINISHES { connections as usize } else { 0 }],
            workload: PhantomData,
        })
    }

    /// Opens the window, runs until it is over, and returns the counters and the CPU time of the window.
    pub fn run(mut self) -> (Meter, Nanos) {
        if W::PACED {
            return self.run_paced();
        }
        if self.context.waiter.coalesces() || L::TIMED {
            waiter::without_timer_slack();
        }
        if W::PERSISTENT {
            self.connect();
        }
        let cpu = clock::thread_cpu();
        let start = self.context.now();
        self.context.meter.start(start);
        self.slots.iter_mut().for_each(|slot| W::step(slot, &mut self.context));
        let stopped = !self.turn(|context| context.meter.running(context.last));
        if W::FINISHES {
            self.finish(stopped);
        } else if W::PERSISTENT && !W::LANES {
            let is_unserved = |slot: &&Slot<L::Connection>| slot.phase != Phase::Idle && !slot.has_served;
            self.context.meter.leave_unserved(self.slots.iter().filter(is_unserved).count());
        }
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

    /// Finishes what is under way: after the window whatever time it takes, after a stop request a second.
    fn finish(&mut self, stopped: bool) {
        let until = if stopped { self.context.last + CLOSE_TIMEOUT } else { NEVER };
        for slot in &mut self.slots {
            if let Some(connection) = &mut slot.connection {
                self.context.layer.finish(connection);
            }
            if slot.phase == Phase::Receiving {
                W::step(slot, &mut self.context);
            }
        }
        self.turn(|context| context.meter.open() > 0 && context.last < until);
    }

    /// Waits for the operations in flight at the window's end: one that never ends has failed. With
    /// `options.patience_ms` only for that long: what is still under way then is in flight, and has not
    /// failed.
    fn drain(&mut self, now: Nanos) {
        if let Some(sampler) = self.sampler.take() {
            sampler.finish(&mut self.context.meter);
        }
        let until = self.context.meter.awaits_until();
        let ended = self.turn(|context| context.meter.open() > 0 && context.last < until);
        if !ended || self.context.meter.open() > 0 {
            self.context.meter.stop(now);
        }
    }

    /// After the window: closes the idle connections, and completes the counters.
    fn close(&mut self) {
        let deadline = clock::now() + CLOSE_TIMEOUT;
        for slot in self.slots.iter_mut().filter(|slot| slot.phase == Phase::Idle) {
            if let Some(mut connection) = slot.connection.take() {
                if W::FINISHES {
                    self.context.meter.add_tcp(self.context.layer.tcp(&connection));
                }
                self.context.layer.close(&mut connection, deadline);
            }
        }
        self.context.meter.answered_by(&self.context.layer);
        if let Some(sampler) = self.sampler.take() {
            sampler.finish(&mut self.context.meter);
        }
    }

    /// Runs while `goes_on`; false if the loop was stopped.
    fn turn(&mut self, goes_on: impl Fn(&Context<L>) -> bool) -> bool {
        self.next_sweep = self.context.last + self.sweep_every;
        self.pass_time();
        let mut events = [EpollEvent::empty(); BATCH];
        loop {
            if W::PACED {
                self.send_due();
            }
            if W::SPANS {
                self.next_round();
            }
            if W::LANES && std::mem::take(&mut self.context.has_again) {
                self.send_again();
            }
            if !goes_on(&self.context) {
                return true;
            }
            let until = if W::PACED { self.next_send() } else { NEVER }.min(self.next_due());
            let before = self.context.last;
            if !self.take_events(&mut events, until.min(self.context.next_timer)) {
                return false;
            }
            // An operation that ended in this batch has read the clock already.
            if W::PACED || self.context.last == before {
                self.context.now();
            }
            if L::TIMED {
                self.step_due();
            }
            if self.context.last >= self.context.next_timer {
                self.pass_time();
            }
        }
    }

    /// Waits for events, and steps their slots; false if the loop was stopped.
    #[inline]
    fn take_events(&mut self, events: &mut [EpollEvent], until: Nanos) -> bool {
        let context = &mut self.context;
        let ready = if W::PACED {
            context.wait_paced(events, until)
        } else if L::TIMED {
            context.waiter.until(&context.epoll, events, context.last, until)
        } else if context.waiter.coalesces() {
            context.waiter.coalesced_until(&context.epoll, events, context.last, until)
        } else {
            context.waiter.within(&context.epoll, events, until.since(context.last))
        };
        if W::FINISHES && ready > 0 {
            // An edge is a byte that has arrived, or has left.
            self.context.meter.moved();
        }
        for event in &events[..ready] {
            if event.data() == STOP {
                // Once.
                let _ = self.context.epoll.delete(&*self.stop);
                return false;
            }
            let slot = &mut self.slots[event.data() as usize];
            slot.peer_closed |= event.events().intersects(PEER_CLOSED);
            W::step(slot, &mut self.context);
        }
        true
    }

    /// When a connection has something to do without an event.
    #[inline]
    fn next_due(&self) -> Nanos {
        let flows = self.slots.iter().take_while(|_| L::TIMED);
        flows.map(|slot| slot.due_in(&self.context.layer)).min().unwrap_or(NEVER)
    }

    fn step_due(&mut self) {
        for slot in &mut self.slots {
            if slot.due_in(&self.context.layer) <= self.context.last {
                W::step(slot, &mut self.context);
            }
        }
    }

    /// Does what is due by now, and finds the next time at which something is.
    #[cold]
    fn pass_time(&mut self) {
        let now = self.context.last;
        self.context.meter.look(now);
        if now >= self.context.next_wake {
            self.context.next_wake = NEVER;
            self.wake();
        }
        if now >= self.context.meter.next_turn() {
            self.take_turn();
        }
        if now >= self.next_sweep {
            if W::LANES || !L::TIMED {
                self.sweep();
            }
            self.next_sweep = self.context.last + self.sweep_every;
        }
        let mut next = self.next_sweep.min(now + LOOK).min(self.context.meter.next_turn());
        if self.sampler.as_ref().is_some_and(|sampler| self.context.last >= sampler.next()) {
            self.sample();
        }
        next = next.min(self.sampler.as_ref().map_or(NEVER, Sampler::next));
        let end = self.context.meter.window_end();
        if self.context.last < end {
            next = next.min(end);
        }
        self.context.next_timer = next.min(self.context.next_wake);
    }

    fn sample(&mut self) {
        let Context { layer, meter, last, .. } = &mut self.context;
        let stream = W::FINISHES.then(|| {
            let connections = self.slots.iter().filter_map(|slot| slot.connection.as_ref());
            connections.fold((meter.totals().1, None), |(moved, rtt), connection| {
                let info = layer.tcp(connection);
                (moved + layer.moved(connection), rtt.max(info.map(|info| info.rtt_us)))
            })
        });
        if let Some(sampler) = &mut self.sampler {
            sampler.take(*last, meter, stream);
        }
    }

    fn wake(&mut self) {
        // Slots that fail again are appended, and are not stepped in this call.
        for _ in 0..self.context.paused.len() {
            let index = self.context.paused.swap_remove(0);
            W::step(&mut self.slots[index as usize], &mut self.context);
        }
    }

    /// Slots without an operation send what is sent again: nothing else would step them.
    #[cold]
    fn send_again(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.phase == Phase::Idle) {
            if !self.context.again.is_empty() {
                W::step(slot, &mut self.context);
            }
        }
    }

    fn sweep(&mut self) {
        self.context.expire_again();
        let timeout = self.context.meter.timeout();
        for slot in &mut self.slots {
            if W::LANES {
                W::expire(slot, &mut self.context);
                continue;
            }
            // An open loop connects in advance, too.
            let has_begun = if W::PACED { slot.assigned } else { slot.phase != Phase::Idle };
            let waits = has_begun || slot.phase == Phase::Connecting;
            let mut since = slot.began;
            if W::FINISHES
                && let Some(connection) = &slot.connection
            {
                let moved = self.context.layer.moved(connection);
                let before = &mut self.moved[slot.index as usize];
                if before.0 != moved {
                    *before = (moved, self.context.last);
                }
                since = since.max(before.1);
            }
            if !waits || self.context.last.since(since) < timeout {
                continue;
            }
            let late = match slot.phase {
                Phase::Connecting => ErrorKind::ConnectTimeout,
                _ => ErrorKind::Timeout,
            };
            match slot.phase {
                _ if W::SPANS => return self.context.fail_round(late),
                Phase::Connecting if W::PACED => {
                    self.context.fail_connect(slot, late);
                    continue;
                }
                // The response was complete: a peer that does not close as announced is no failure of the
                // operation.
                Phase::Closing => slot.close(),
                _ => self.context.fail(slot, late),
            }
            W::step(slot, &mut self.context);
        }
    }
}
