//! The event loop of an open loop: operations begin by a schedule, on any free connection.
//!
//! The schedule is its own queue: it is drawn only as far as operations were sent. An operation that is due
//! and finds no free connection waits in it, in order, and its delay counts from the intended time. After the
//! window's end, operations that were due within it are still sent for [`GRACE`], and all responses are
//! awaited: to stop here would leave out the slowest.

use super::{BATCH, Context, Engine, NEVER, Slot, Workload};
use crate::clock;
use crate::layer::{Flow, Layer};
use crate::meter::Meter;
use crate::schedule::Schedule;
use crate::waiter;
use linerate_contract::{ErrorKind, Nanos};
use nix::sys::epoll::{EpollEvent, EpollFlags};
use std::collections::VecDeque;

/// Longer than common stalls (garbage collection, a flush), and short beside a run of ten seconds.
const GRACE: Nanos = Nanos(1_000_000_000);

/// The next operation, and the slots that are free for it.
#[derive(Debug)]
pub(super) struct Pacer {
    schedule: Option<Schedule>,
    /// When the next operation is due.
    next: Nanos,
    start: Nanos,
    /// From when to when a client that works in turns has nothing to send.
    rest: [Nanos; 2],
    /// Free slots, used in turn as in a connection pool: a load balancer sees all of them. With capacity for
    /// all.
    free: VecDeque<u32>,
    /// Slots in whose lanes operations have begun that are not sent yet. With capacity for all.
    pub(super) unsent: VecDeque<u32>,
}

impl Pacer {
    pub(super) fn new(schedule: Option<Schedule>, connections: u32) -> Self {
        let room = if schedule.is_some() { connections as usize } else { 0 };
        let free = VecDeque::with_capacity(room);
        let unsent = VecDeque::with_capacity(room);
        Self { schedule, next: NEVER, start: Nanos::ZERO, rest: [Nanos::ZERO; 2], free, unsent }
    }

    fn start(&mut self, now: Nanos) {
        self.start = self.schedule.as_mut().map_or(now, |schedule| schedule.start(now));
        self.draw();
    }

    #[inline]
    fn draw(&mut self) {
        let Some(schedule) = &mut self.schedule else { return };
        self.next = schedule.next().map_or(NEVER, |after| self.start + after);
        self.rest = schedule.rest();
    }
}

impl<L: Layer> Context<L> {
    /// When the next operation is due; [`NEVER`] after the last one.
    #[inline]
    fn next_due(&self) -> Nanos {
        let over = self.pacer.next >= self.meter.window_end() || self.meter.budget() == 0;
        if over { NEVER } else { self.pacer.next }
    }

    /// Whether operations begin by a schedule.
    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.pacer.schedule.is_some()
    }

    /// When operations that were due within the window are given up.
    #[inline]
    fn last_send(&self) -> Nanos {
        self.meter.window_end() + GRACE
    }

    /// Waits for events until an operation is due. A client that works in turns does not poll between them:
    /// the other one may have the same CPU.
    #[inline]
    pub(super) fn wait_paced(&mut self, events: &mut [EpollEvent], until: Nanos) -> usize {
        let [from, to] = self.pacer.rest;
        if self.last >= to {
            self.waiter.until(&self.epoll, events, self.last, until)
        } else if self.last < from {
            self.waiter.until(&self.epoll, events, self.last, until.min(from))
        } else {
            waiter::wait(&self.epoll, events, until.min(to).since(self.last))
        }
    }

    /// All that was due is sent or given up, and all responses are there.
    #[inline]
    fn schedule_is_over(&self) -> bool {
        self.meter.open() == 0 && (self.next_due() == NEVER || self.last >= self.last_send())
    }

    /// The slot is free until an operation is due.
    #[inline]
    pub fn park(&mut self, slot: &mut Slot<L::Connection>) {
        if !slot.parked {
            slot.parked = true;
            self.pacer.free.push_back(slot.index);
        }
    }

    /// Opens a connection, for an operation or in advance.
    ///
    /// # Errors
    /// As [`Layer::open`].
    pub fn open_paced(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        if !slot.assigned {
            slot.began = self.now();
        }
        slot.has_served = !slot.assigned;
        self.open(slot)
    }

    /// Establishes the connection; registers the socket if it has to wait.
    ///
    /// # Errors
    /// As [`Layer::establish`].
    #[inline]
    pub fn establish(&mut self, slot: &mut Slot<L::Connection>) -> Result<Flow, ErrorKind> {
        let flow = self.layer.establish(slot.connection.as_mut().expect(super::context::OPENED))?;
        if flow == Flow::Blocked {
            // A socket of datagrams has room nearly always.
            let room = if L::TIMED { EpollFlags::empty() } else { EpollFlags::EPOLLOUT };
            self.wait(slot, EpollFlags::EPOLLIN | room)?;
        }
        Ok(flow)
    }

    /// The slot could not connect, and pauses. Its operation has failed; if it had none, the one that is due
    /// fails.
    #[cold]
    pub fn fail_connect(&mut self, slot: &mut Slot<L::Connection>, kind: ErrorKind) {
        let now = self.now();
        if !slot.assigned
            && let Some(begun) = self.again.pop_front()
        {
            slot.again(begun);
            slot.assigned = true;
        } else if !slot.assigned && self.next_due() <= now {
            self.meter.begin_paced(self.pacer.next, now);
            self.pacer.draw();
            slot.assigned = true;
        }
        if slot.assigned {
            slot.has_served = false;
            self.fail(slot, kind);
        } else {
            slot.close();
        }
        self.pause(slot);
    }
}

impl<L: Layer, W: Workload<L>> Engine<L, W> {
    pub(super) fn run_paced(mut self) -> (Meter, Nanos) {
        waiter::without_timer_slack();
        let mut events = [EpollEvent::empty(); BATCH];
        self.context.now();
        let mut stopped = !self.connect_all(&mut events);
        let cpu = clock::thread_cpu();
        // Before the window.
        self.context.waiter.take_polled();
        let start = self.context.now();
        self.context.meter.start(start);
        self.context.pacer.start(start);
        stopped = stopped || !self.turn(|context| !context.schedule_is_over());
        let until = if stopped { self.context.now() } else { NEVER };
        while self.context.next_due() < until {
            self.context.meter.give_up();
            self.context.pacer.draw();
        }
        let cpu = clock::thread_cpu().since(cpu);
        let polled = self.context.waiter.take_polled();
        self.context.meter.polled(polled);
        let now = self.context.now();
        if stopped {
            self.context.meter.stop(now);
        } else {
            self.context.meter.close(now);
        }
        self.close();
        (self.context.meter, cpu)
    }

    /// Establishes every connection, or lets it fail once, before the schedule begins; false if the loop was
    /// stopped.
    fn connect_all(&mut self, events: &mut [EpollEvent]) -> bool {
        let deadline = self.context.last + self.context.meter.timeout();
        self.slots.iter_mut().for_each(|slot| W::step(slot, &mut self.context));
        while self.context.pacer.free.len() + self.context.paused.len() < self.slots.len()
            && self.context.now() < deadline
        {
            if !self.take_events(events, deadline.min(self.next_due())) {
                return false;
            }
            if L::TIMED {
                self.context.now();
                self.step_due();
            }
        }
        true
    }

    /// When the next operation can be sent. Without a free connection, only after an event; after the grace,
    /// never.
    #[inline]
    pub(super) fn next_send(&self) -> Nanos {
        let context = &self.context;
        let is_free = !context.pacer.free.is_empty();
        match context.again.front() {
            Some(begun) if is_free => begun.due,
            None if is_free && context.last < context.last_send() => context.next_due(),
            _ => NEVER,
        }
    }

    /// Sends every operation that is due, while connections are free. What has begun in lanes meanwhile
    /// leaves together: a client that is late would fall further behind with a call for each.
    #[inline]
    pub(super) fn send_due(&mut self) {
        self.begin_due();
        while let Some(index) = self.context.pacer.unsent.pop_front() {
            let slot = &mut self.slots[index as usize];
            // Unless its connection was closed.
            if slot.unsent {
                W::step(slot, &mut self.context);
            }
        }
    }

    /// Begins every operation that is due, while connections are free. Reads the clock for each: sending the
    /// previous one took time.
    #[inline]
    fn begin_due(&mut self) {
        let context = &mut self.context;
        while let Some(&index) = context.pacer.free.front() {
            let now = context.now();
            let again = context.again.pop_front();
            let due = context.next_due();
            if again.is_none() && (due > now || now >= context.last_send()) {
                return;
            }
            context.pacer.free.pop_front();
            let slot = &mut self.slots[index as usize];
            slot.parked = false;
            slot.assigned = true;
            if let Some(begun) = again {
                slot.again(begun);
            } else {
                (slot.due, slot.began) = (due, now);
                context.meter.begin_paced(due, now);
                context.pacer.draw();
            }
            W::step(slot, context);
        }
    }
}
