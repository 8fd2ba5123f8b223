//! The turns of a closed loop whose load alternates with that of another client.

use super::{Engine, Phase, Workload};
use crate::layer::Layer;

impl<L: Layer, W: Workload<L>> Engine<L, W> {
    /// An own turn begins: so do the operations of all slots that have none.
    #[cold]
    pub(super) fn take_turn(&mut self) {
        self.context.meter.take_turn(self.context.last);
        for slot in self.slots.iter_mut().filter(|slot| W::LANES || slot.phase == Phase::Idle) {
            W::step(slot, &mut self.context);
        }
    }
}
