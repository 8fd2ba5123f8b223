//! One connection of a client, and its operation.

use crate::layer::{Begun, Layer};
use linerate_contract::Nanos;
use nix::sys::epoll::EpollFlags;

/// The phase of a connection within its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No operation, or one that has not opened its connection.
    Idle,
    /// Opened, nothing sent yet.
    Connecting,
    /// A request is to be sent on an established connection.
    Sending,
    /// The request was sent.
    Receiving,
    /// The response is complete, and the peer has announced that it closes.
    Closing,
}

/// One connection and its operation.
#[derive(Debug)]
pub struct Slot<C> {
    pub(super) connection: Option<C>,
    /// When the operation began; in an open loop, when it was sent. If it is sent again, the first time.
    pub began: Nanos,
    /// Open loop only: when the operation was due; whether it has one; whether it waits for one.
    pub due: Nanos,
    pub assigned: bool,
    pub(super) parked: bool,
    /// Open loop only: operations have begun in its lanes that are not sent yet.
    pub unsent: bool,
    pub(super) index: u32,
    /// The connection is closed; its socket is kept for the next one.
    pub(super) left: bool,
    pub phase: Phase,
    /// An operation has ended on the connection; in an open loop also: it was opened in advance.
    pub(super) has_served: bool,
    /// The operation under way is sent again.
    pub is_again: bool,
    /// When the first byte of a response arrived that did not arrive at once; else zero.
    pub(super) first: Nanos,
    /// When the last event of the response under way arrived; else zero.
    pub(super) last_event: Nanos,
    /// Requests in flight behind the first one (pipelining).
    pub more: u32,
    /// Transfers of a stream so far.
    pub(super) transfers: u32,
    /// The events that the socket is registered for.
    pub(super) interest: EpollFlags,
    /// The peer has closed its side.
    pub peer_closed: bool,
}

impl<C> Slot<C> {
    pub(super) fn new(index: u32) -> Self {
        Self {
            connection: None,
            began: Nanos::ZERO,
            due: Nanos::ZERO,
            assigned: false,
            parked: false,
            unsent: false,
            left: false,
            index,
            phase: Phase::Idle,
            has_served: false,
            is_again: false,
            first: Nanos::ZERO,
            last_event: Nanos::ZERO,
            more: 0,
            transfers: 0,
            interest: EpollFlags::empty(),
            peer_closed: false,
        }
    }

    /// When an operation under way, or its connection, has something to do without an event.
    pub(super) fn due_in<L: Layer<Connection = C>>(&self, layer: &L) -> Nanos {
        let connection = self.connection.as_ref().filter(|_| self.phase != Phase::Idle);
        connection.map_or(Nanos(u64::MAX), |connection| layer.due(connection))
    }

    /// Closes the connection; the next step opens another.
    #[inline]
    pub fn close(&mut self) {
        self.connection = None;
        self.phase = Phase::Idle;
        self.interest = EpollFlags::empty();
        (self.left, self.peer_closed, self.unsent) = (false, false, false);
        (self.has_served, self.is_again) = (false, false);
        (self.first, self.last_event) = (Nanos::ZERO, Nanos::ZERO);
    }

    /// The next operation is one that is sent again. It began when it was first sent: the time that a peer
    /// has kept it without a response is a part of it.
    #[cold]
    pub(super) fn again(&mut self, begun: Begun) {
        (self.due, self.began, self.is_again) = (begun.due, begun.sent, true);
    }

    /// When the first byte of a response arrived that did not arrive at once; the next one is another.
    pub(super) fn take_first(&mut self) -> Nanos {
        self.last_event = Nanos::ZERO;
        std::mem::take(&mut self.first)
    }

    /// When the operation was due, and when it was first sent.
    pub(super) fn begun(&self) -> Begun {
        Begun { due: self.due, sent: self.began }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_three_cache_lines() {
        use crate::layer::http::HttpConnection;
        use crate::layer::wire::plain::PlainWire;
        type Http = Slot<HttpConnection<PlainWire>>;
        assert!(size_of::<Http>() <= 192, "{}", size_of::<Http>());
    }
}
