//! Connections with several operations under way: lanes. All that can begin begins, and is sent together.

use super::context::OPENED;
use super::{Context, Phase, Slot};
use crate::layer::{Begun, Ending, Flow, LaneEnd, Lanes, MAX_READS, Progress, Response};
use linerate_contract::{ErrorKind, Nanos};
use nix::sys::epoll::EpollFlags;

impl<L: Lanes> Context<L> {
    /// Starts the operation of the slot and further ones, and sends them. Where the peer lets none begin yet,
    /// the slot waits.
    ///
    /// # Errors
    /// The peer lets none begin any more, or as [`crate::layer::Layer::send`].
    pub fn start_lanes(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        let connection = slot.connection.as_mut().expect(OPENED);
        if !self.layer.has_room(connection) {
            self.layer.receive(connection)?;
            if self.layer.is_over(connection) {
                return Err(ErrorKind::Reset);
            }
            if !self.layer.has_room(connection) {
                return self.send_lanes(slot);
            }
        }
        let connection = slot.connection.as_mut().expect(OPENED);
        self.layer.start(connection, Begun::at(slot.began));
        (slot.phase, slot.is_again) = (Phase::Receiving, false);
        self.fill_lanes(slot);
        self.send_lanes(slot)
    }

    /// Starts the operation that the slot was given; on a connection where none can begin any more, another
    /// one gets it. It is sent with what else is due by now, by [`Self::send_unsent`].
    #[inline]
    pub fn start_lane(&mut self, slot: &mut Slot<L::Connection>) {
        slot.assigned = false;
        let begun = slot.begun();
        let connection = slot.connection.as_mut().expect(OPENED);
        if !self.layer.has_room(connection) {
            return self.again.push_back(begun);
        }
        self.layer.start(connection, begun);
        slot.is_again = false;
        if !slot.unsent {
            slot.unsent = true;
            self.pacer.unsent.push_back(slot.index);
        }
    }

    /// Sends what has begun in the lanes of the slot.
    ///
    /// # Errors
    /// As [`crate::layer::Layer::send`].
    #[inline]
    pub fn send_unsent(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        slot.unsent = false;
        self.send_lanes(slot)
    }

    /// The connection is free for an operation that is due, if the peer lets one begin.
    #[inline]
    pub fn offer(&mut self, slot: &mut Slot<L::Connection>) {
        if self.layer.has_room(slot.connection.as_ref().expect(OPENED)) {
            self.park(slot);
        }
    }

    /// Whether nothing is under way on the connection, and nothing begins on it any more.
    #[inline]
    pub fn is_spent(&self, slot: &Slot<L::Connection>) -> bool {
        let connection = slot.connection.as_ref().expect(OPENED);
        self.layer.under_way(connection) == 0 && self.layer.is_over(connection)
    }

    /// Receives what is there, counts what has ended, begins further operations and sends them together: a
    /// datagram that leaves costs both ends more than a read.
    ///
    /// # Errors
    /// The connection is of no use any more.
    #[inline]
    pub fn exchange(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        let mut has_more = true;
        for _ in 0..MAX_READS {
            let response = self.layer.receive(slot.connection.as_mut().expect(OPENED));
            self.settle();
            // No further event tells of an end that is behind what was read.
            let is_closed = !L::TIMED && slot.peer_closed;
            has_more = response? == Progress::Unfinished || is_closed;
            if !has_more {
                break;
            }
        }
        self.fill_lanes(slot);
        self.send_lanes(slot)?;
        if has_more { self.come_back(slot) } else { Ok(()) }
    }

    /// Whether nothing is under way; a connection that is of no use any more is closed.
    #[inline]
    pub fn is_idle(&mut self, slot: &mut Slot<L::Connection>) -> bool {
        let connection = slot.connection.as_mut().expect(OPENED);
        if self.layer.under_way(connection) > 0 {
            return false;
        }
        if self.layer.is_over(connection) {
            // The peer may still keep its end; nothing waits for its response.
            self.layer.close(connection, self.last);
            slot.close();
        }
        (slot.phase, slot.has_served) = (Phase::Idle, slot.connection.is_some());
        true
    }

    /// The connection is of no use any more: all that is under way on it has failed. Returns how much.
    #[cold]
    pub fn fail_lanes(&mut self, slot: &mut Slot<L::Connection>, kind: ErrorKind) -> u32 {
        let under_way = self.layer.under_way(slot.connection.as_ref().expect(OPENED));
        match under_way {
            0 => self.closed_idle(slot),
            several => {
                slot.more = several - 1;
                self.fail(slot, kind);
            }
        }
        under_way
    }

    /// Fails what has taken too long.
    pub fn expire_lanes(&mut self, slot: &mut Slot<L::Connection>) {
        let (now, timeout) = (self.last, self.meter.timeout());
        self.layer.expire(slot.connection.as_mut().expect(OPENED), now, timeout);
        self.settle();
        // The peer gets the reason; a failed send is no further failure.
        let _ = self.send_lanes(slot);
    }

    /// Whether the slot's operation has no lane yet and has taken too long.
    pub fn is_late(&self, slot: &Slot<L::Connection>) -> bool {
        self.last.since(slot.began) >= self.meter.timeout()
    }

    #[inline]
    fn send_lanes(&mut self, slot: &mut Slot<L::Connection>) -> Result<(), ErrorKind> {
        match self.send(slot)? {
            Flow::Done => self.wait(slot, EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP),
            Flow::Blocked => Ok(()),
        }
    }

    #[inline]
    fn fill_lanes(&mut self, slot: &mut Slot<L::Connection>) {
        if self.is_paced() {
            return;
        }
        let connection = slot.connection.as_mut().expect(OPENED);
        while self.layer.has_room(connection) {
            let begun = match self.again.pop_front() {
                Some(begun) => begun,
                None if self.meter.begin_at(self.last, false) => Begun::at(self.last),
                None => return,
            };
            self.layer.start(connection, begun);
        }
    }

    /// Counts what has ended. One clock reading ends these operations and begins the next.
    #[inline]
    fn settle(&mut self) {
        self.now();
        let is_paced = self.is_paced();
        for Ending { begun: Begun { due, sent }, first, request, end } in self.layer.ended() {
            let base = if is_paced { due } else { sent };
            match end {
                LaneEnd::Answered(Response { bytes, verified, status, .. }) => {
                    let counts = if is_paced {
                        self.meter.succeed_paced(due, sent, self.last, bytes, verified)
                    } else {
                        self.meter.succeed(sent, self.last, bytes, verified)
                    };
                    if !self.meter.is_usual(status) {
                        self.meter.unusual(counts, status, base, self.last);
                    }
                    if self.meter.has_rows() || first != Nanos::ZERO {
                        self.meter.details(counts, request, base, first, self.last);
                    }
                }
                LaneEnd::Failed(wrong) => self.meter.fail_by(Some(request), wrong, sent, base, self.last),
                LaneEnd::Events { count, last, at } => self.meter.events(count, base, last, at),
                LaneEnd::Withdrawn => {
                    self.again.push_back(Begun { due, sent });
                    self.has_again = true;
                }
            }
        }
    }
}
