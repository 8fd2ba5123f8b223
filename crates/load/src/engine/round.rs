//! Operations that span all connections of a thread, one after the other.

use super::{Context, Engine, NEVER, RETRY_PAUSE, Workload};
use crate::layer::Layer;
use linerate_contract::{ErrorKind, Nanos};

/// The operation under way.
#[derive(Debug, Default)]
pub struct Round {
    began: Nanos,
    /// Connections whose part has not ended; 0 between two operations.
    missing: u32,
    bytes: u64,
    /// The last one failed: connections are opened again.
    failed: bool,
}

impl Round {
    pub fn is_open(&self) -> bool {
        self.missing > 0
    }
}

impl<L: Layer> Context<L> {
    /// A connection's part of the operation has ended well.
    #[inline]
    pub fn end_part(&mut self, bytes: u64) {
        self.round.bytes += bytes;
        self.round.missing -= 1;
        if self.round.missing == 0 {
            let now = self.now();
            self.meter.succeed(self.round.began, now, self.round.bytes, true);
        }
    }

    /// The operation has failed; the next one begins after a pause.
    #[cold]
    pub fn fail_round(&mut self, kind: ErrorKind) {
        let now = self.now();
        self.meter.fail(kind, self.round.began, now);
        (self.round.missing, self.round.failed) = (0, true);
        self.next_wake = now + RETRY_PAUSE;
        self.next_timer = self.next_timer.min(self.next_wake);
    }
}

impl<L: Layer, W: Workload<L>> Engine<L, W> {
    /// Begins an operation, if none is under way and there is another.
    #[inline]
    pub(super) fn next_round(&mut self) {
        let context = &mut self.context;
        if context.round.is_open() || context.next_wake != NEVER {
            return;
        }
        if std::mem::take(&mut context.round.failed) {
            self.slots.iter_mut().for_each(super::Slot::close);
        }
        let began = context.last;
        if !context.meter.begin_at(began, false) {
            return;
        }
        context.round = Round { began, missing: self.slots.len() as u32, ..Round::default() };
        for slot in &mut self.slots {
            slot.began = began;
            match context.open(slot) {
                Ok(()) => W::step(slot, context),
                Err(kind) => context.fail_round(kind),
            }
            if !context.round.is_open() {
                return;
            }
        }
    }
}
