//! Operations that are sent again, since their peer has not looked at them; and what is noted of a response
//! before its end.

use super::context::OPENED;
use super::{Context, Slot};
use crate::layer::Layer;
use linerate_contract::{ErrorKind, Nanos};

impl<L: Layer> Context<L> {
    /// The peer has closed a connection on which nothing is under way.
    #[cold]
    pub fn closed_idle(&mut self, slot: &mut Slot<L::Connection>) {
        self.meter.closed_idle();
        slot.close();
    }

    /// The peer has closed a connection before it looked at the slot's operation, which is sent again.
    #[cold]
    pub(super) fn closed_between(&mut self, slot: &mut Slot<L::Connection>) {
        self.closed_idle(slot);
        slot.again(slot.begun());
    }

    /// Withdraws the requests behind the first one, which will not be answered on this connection. They are
    /// sent again on another (RFC 9112 section 9.3.2).
    #[cold]
    pub fn withdraw(&mut self, slot: &mut Slot<L::Connection>) {
        for _ in 0..std::mem::take(&mut slot.more) {
            self.again.push_back(slot.begun());
        }
    }

    /// Fails what waits to be sent again and has taken too long.
    pub(super) fn expire_again(&mut self) {
        let (now, timeout) = (self.last, self.meter.timeout());
        self.again.retain(|begun| {
            let is_late = now.since(begun.sent) >= timeout;
            if is_late {
                self.meter.fail(ErrorKind::Timeout, begun.sent, now);
            }
            !is_late
        });
    }

    /// Notes when the response under way began, if it has.
    #[cold]
    pub(super) fn note_first(&mut self, slot: &mut Slot<L::Connection>) {
        let connection = slot.connection.as_ref().expect(OPENED);
        if slot.first == Nanos::ZERO && self.layer.has_begun(connection) {
            slot.first = self.now();
        }
    }

    /// Notes the events that the last read brought.
    #[cold]
    pub(super) fn note_events(&mut self, slot: &mut Slot<L::Connection>) {
        let count = self.layer.take_events();
        if count > 0 {
            let (began, now) = (self.base(slot), self.now());
            let last = std::mem::replace(&mut slot.last_event, now);
            if slot.first == Nanos::ZERO {
                slot.first = now;
            }
            self.meter.events(count, began, last, now);
        }
    }

    /// When the response time of the slot's operation begins.
    pub(super) fn base(&self, slot: &Slot<L::Connection>) -> Nanos {
        if self.is_paced() { slot.due } else { slot.began }
    }
}
