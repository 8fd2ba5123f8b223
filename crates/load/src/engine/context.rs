//! The context of a workload: the layer, the counters, and the functions that wait for a socket.

use super::RETRY_PAUSE;
use super::paced::Pacer;
use super::round::Round;
use super::slot::{Phase, Slot};
use crate::clock;
use crate::layer::{Begun, Flow, Layer, Progress, Response, Wrong};
use crate::meter::Meter;
use crate::waiter::Waiter;
use linerate_contract::{ErrorKind, Nanos};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::collections::VecDeque;

/// The state of a request after a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Whole,
    Blocked,
    /// The response came before all of the request was sent.
    Answered,
}

/// Everything that a workload uses beside its slot.
#[derive(Debug)]
pub struct Context<L> {
    pub(super) layer: L,
    pub meter: Meter,
    pub(super) epoll: Epoll,
    /// Slots that wait for [`super::RETRY_PAUSE`], with capacity for all; and when they are stepped again.
    pub(super) paused: Vec<u32>,
    pub(super) next_wake: Nanos,
    /// When the loop has something to do by time.
    pub(super) next_timer: Nanos,
    pub(super) pacer: Pacer,
    /// Operations that have begun and are sent again, before others begin: a peer has not looked at them.
    pub(super) again: VecDeque<Begun>,
    /// Some of them are new, and slots without an operation can send them.
    pub(super) has_again: bool,
    /// The operation that spans all connections, where the workload has such.
    pub round: Round,
    /// Transfers of each connection, in a stream.
    pub(super) transfers: u64,
    pub(super) waiter: Waiter,
    /// The last reading of the clock.
    pub(super) last: Nanos,
}

impl<L: Layer> Context<L> {
    /// Reads the clock.
    #[inline]
    pub fn now(&mut self) -> Nanos {
        self.last = clock::now();
        self.last
    }

    /// Whether the connection has another transfer; it is taken.
    #[inline]
    pub fn has_transfer(&mut self, slot: &mut Slot<L::Connection>) -> bool {
        let has = u64::from(slot.transfers) < self.transfers;
        slot.transfers = slot.transfers.saturating_add(has.into());
        has
    }

    /// Begins an operation on a connection, or goes on with one that is sent again; false if none is left to
    /// do, or if its connection could not be opened.
    #[inline]
    pub fn begin(&mut self, slot: &mut Slot<L::Connection>) -> bool {
        if slot.is_again {
            // The slot has kept it.
        } else if let Some(begun) = self.again.pop_front() {
            slot.again(begun);
        } else {
            let first = slot.began == Nanos::ZERO;
            slot.began = self.now();
            if !self.meter.begin_at(self.last, first) {
                return false;
            }
        }
        match self.open(slot) {
            Ok(()) => true,
            Err(kind) => {
                self.fail_and_pause(slot, kind);
                false
            }
        }
    }

    /// Opens a connection, unless it was opened before the window.
    ///
    /// # Errors
    /// As [`Layer::open`].
    #[inline]
    pub(super) fn open(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        slot.phase = Phase::Connecting;
        match &mut slot.connection {
            Some(connection) if slot.left => {
                slot.left = false;
                self.layer.reopen(connection)?;
            }
            Some(_) => slot.phase = Phase::Sending,
            none => *none = Some(self.layer.open()?),
        }
        Ok(())
    }

    /// The operation is over, and the peer has closed its connection. The next connection reuses the socket
    /// if possible: to create, register and close a socket is a seventh of the cost of a request
    /// (docs/decisions/engine.md).
    #[inline]
    pub fn leave(&mut self, slot: &mut Slot<L::Connection>) {
        if slot.connection.as_mut().is_some_and(|connection| self.layer.leave(connection)) {
            slot.phase = Phase::Idle;
            (slot.left, slot.peer_closed, slot.has_served) = (true, false, false);
        } else {
            slot.close();
        }
    }

    /// The connection of the operation under way is established now. Its time is counted, and in a closed
    /// loop the operation `begins` only then. One that is sent again began before.
    #[inline]
    pub fn connected(&mut self, slot: &mut Slot<L::Connection>, now: Nanos, begins: bool) {
        if std::mem::take(&mut slot.is_again) {
            return;
        }
        self.meter.connected(now.since(slot.began));
        if begins {
            slot.began = now;
        }
    }

    /// Sends a request; registers the socket if it has to wait.
    ///
    /// # Errors
    /// As [`Layer::send`].
    #[inline]
    pub fn ask(&mut self, slot: &mut Slot<L::Connection>) -> Result<Sent, ErrorKind> {
        match self.layer.send(slot.connection.as_mut().expect(OPENED)) {
            Ok(Flow::Done) => Ok(Sent::Whole),
            cut => self.ask_in_part(slot, cut),
        }
    }

    #[cold]
    fn ask_in_part(
        &mut self,
        slot: &mut Slot<L::Connection>,
        cut: Result<Flow, ErrorKind>,
    ) -> Result<Sent, ErrorKind> {
        if self.layer.has_early_response(slot.connection.as_mut().expect(OPENED)) {
            return Ok(Sent::Answered);
        }
        cut?;
        self.wait(slot, EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT)?;
        Ok(Sent::Blocked)
    }

    /// Sends; registers the socket if it has to wait.
    ///
    /// # Errors
    /// As [`Layer::send`].
    #[inline]
    pub fn send(&mut self, slot: &mut Slot<L::Connection>) -> Result<Flow, ErrorKind> {
        let flow = self.layer.send(slot.connection.as_mut().expect(OPENED))?;
        if flow == Flow::Blocked {
            self.wait(slot, EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT)?;
        }
        Ok(flow)
    }

    /// Receives; registers the socket if it has to wait, or if its turn is over.
    ///
    /// # Errors
    /// As [`Layer::receive`]; a response that is not the expected one.
    #[inline(always)]
    pub fn receive(&mut self, slot: &mut Slot<L::Connection>) -> Result<Option<Response>, ErrorKind> {
        match self.receive_any(slot)? {
            Some(Ok(response)) => Ok(Some(response)),
            Some(Err(wrong)) => Err(wrong.kind),
            None => Ok(None),
        }
    }

    /// As [`Self::receive`], where a connection outlives a wrong response: [`Self::end`] counts it.
    ///
    /// # Errors
    /// As [`Layer::receive`].
    #[inline(always)]
    pub fn receive_any(
        &mut self,
        slot: &mut Slot<L::Connection>,
    ) -> Result<Option<Result<Response, Wrong>>, ErrorKind> {
        let response = self.layer.receive(slot.connection.as_mut().expect(OPENED))?;
        if self.meter.times_events() {
            self.note_events(slot);
        }
        match response {
            Progress::Complete(response) => {
                if L::TIMED && !std::mem::replace(&mut slot.interest, EpollFlags::empty()).is_empty() {
                    // What still arrives would end every wait. The socket is registered; no other error is
                    // possible.
                    let _ = self.epoll.delete(slot.connection.as_ref().expect(OPENED));
                }
                return Ok(Some(Ok(response)));
            }
            Progress::Wrong(wrong) => return Ok(Some(Err(wrong))),
            Progress::Waiting => self.wait(slot, EpollFlags::EPOLLIN)?,
            Progress::Blocked => self.wait(slot, EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT)?,
            Progress::Unfinished => self.come_back(slot)?,
        }
        self.note_first(slot);
        Ok(None)
    }

    /// Counts an operation whose response is complete; returns whether its connection can carry another one.
    #[inline]
    pub fn end<const PACED: bool>(
        &mut self,
        slot: &mut Slot<L::Connection>,
        response: Result<Response, Wrong>,
        now: Nanos,
    ) -> bool {
        slot.has_served = true;
        let row = if L::SEVERAL { self.layer.answered() } else { 0 };
        let has_details = L::SEVERAL || slot.first != Nanos::ZERO;
        match response {
            Ok(Response { bytes, verified, reusable, status }) => {
                let counts = if PACED {
                    self.meter.succeed_paced(slot.due, slot.began, now, bytes, verified)
                } else {
                    self.meter.succeed(slot.began, now, bytes, verified)
                };
                let base = if PACED { slot.due } else { slot.began };
                if !self.meter.is_usual(status) {
                    self.meter.unusual(counts, status, base, now);
                }
                if has_details {
                    self.meter.details(counts, row, base, slot.take_first(), now);
                }
                reusable
            }
            Err(wrong) => {
                slot.take_first();
                let base = if PACED { slot.due } else { slot.began };
                self.meter.fail_by(Some(row), wrong, slot.began, base, now);
                wrong.reusable
            }
        }
    }

    /// Begins further operations together with the first one on this connection, as many as the layer
    /// pipelines; behind one that is sent again, those that were first sent with it.
    #[inline]
    pub fn begin_pipelined(&mut self, slot: &mut Slot<L::Connection>) {
        let depth = self.layer.depth();
        if depth > 1 {
            self.begin_further(slot, depth - 1);
        }
    }

    /// Apart, since its length kept the question for the depth from being a part of the loop.
    #[inline(never)]
    fn begin_further(&mut self, slot: &mut Slot<L::Connection>, most: u32) {
        if slot.is_again {
            let together = self.again.iter().take_while(|begun| begun.sent == slot.began);
            slot.more = together.take(most as usize).count() as u32;
            self.again.drain(..slot.more as usize);
        } else {
            slot.more = self.meter.begin_several(most);
        }
        self.layer.ask(slot.connection.as_mut().expect(OPENED), 1 + slot.more);
    }

    /// Registers the socket of a connection that waits for an operation, so that its end is seen.
    pub fn watch(&mut self, slot: &mut Slot<L::Connection>) {
        if !L::TIMED {
            // If that fails, the next operation meets the end.
            let _ = self.wait(slot, EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP);
        }
    }

    /// The request was sent: registers the socket for the response.
    #[inline]
    pub fn expect_response(&mut self, slot: &mut Slot<L::Connection>) {
        slot.phase = Phase::Receiving;
        if let Err(kind) = self.wait(slot, EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP) {
            self.fail_and_pause(slot, kind);
        }
    }

    /// The operation failed: its connection is closed, and the next step opens another. Pipelined operations
    /// behind it fail as well, unless the response was wrong and not the connection.
    ///
    /// An operation that met the end of a connection on which others were answered before has not failed: it
    /// is sent again on another one, as other clients do (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1).
    #[cold]
    pub fn fail(&mut self, slot: &mut Slot<L::Connection>, kind: ErrorKind) {
        let may_be_again = slot.has_served && matches!(kind, ErrorKind::Reset | ErrorKind::EmptyResponse);
        if let Some(connection) = slot.connection.as_mut().filter(|_| may_be_again)
            && self.layer.can_send_again(connection, kind)
        {
            self.withdraw(slot);
            return self.closed_between(slot);
        }
        if matches!(kind, ErrorKind::WrongStatus | ErrorKind::WrongLength | ErrorKind::WrongContent) {
            self.withdraw(slot);
        }
        let now = self.now();
        let row = slot.connection.as_ref().and_then(|connection| self.layer.asked(connection));
        for _ in 0..=std::mem::take(&mut slot.more) {
            self.meter.fail_of(row, kind, slot.began, now);
        }
        slot.assigned = false;
        slot.close();
    }

    /// As [`Self::fail`], and the slot pauses.
    #[cold]
    pub fn fail_and_pause(&mut self, slot: &mut Slot<L::Connection>, kind: ErrorKind) {
        self.fail(slot, kind);
        self.pause(slot);
    }

    /// The slot is stepped again after [`super::RETRY_PAUSE`], or with others that pause already.
    pub fn pause(&mut self, slot: &Slot<L::Connection>) {
        self.paused.push(slot.index);
        self.next_wake = self.next_wake.min(self.last + RETRY_PAUSE);
        self.next_timer = self.next_timer.min(self.next_wake);
    }

    /// Registers the socket for `interest`, unless it is registered already.
    #[inline]
    pub(super) fn wait(
        &mut self,
        slot: &mut Slot<L::Connection>,
        interest: EpollFlags,
    ) -> Result<(), ErrorKind> {
        if slot.interest.contains(interest) {
            return Ok(());
        }
        self.register(slot, interest)
    }

    /// The turn of the slot is over, and it has more to receive.
    pub(super) fn come_back(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        if L::TIMED {
            // Without edges each wait reports what the socket has. With room to send, no wait would sleep.
            return self.wait(slot, EpollFlags::EPOLLIN);
        }
        // A change of the registration makes the kernel report the state again. With room to send it always
        // does: the layer may have the rest in its own buffer, and the socket nothing.
        self.register(slot, slot.interest | EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT)
    }

    fn register(&mut self, slot: &mut Slot<L::Connection>, interest: EpollFlags) -> Result<(), ErrorKind> {
        let fd = slot.connection.as_ref().expect(OPENED);
        let edges = if L::TIMED { EpollFlags::empty() } else { EpollFlags::EPOLLET };
        let mut event = EpollEvent::new(interest | edges, u64::from(slot.index));
        let outcome = if slot.interest.is_empty() {
            self.epoll.add(fd, event)
        } else {
            self.epoll.modify(fd, &mut event)
        };
        slot.interest = interest;
        // ENOSPC (fs.epoll.max_user_watches) or ENOMEM: a limit of the generator, not of the system under
        // test.
        outcome.map_err(|_| ErrorKind::DescriptorExhausted)
    }
}

/// Phases other than idle have a connection.
pub(super) const OPENED: &str = "a slot that is not idle has a connection";
