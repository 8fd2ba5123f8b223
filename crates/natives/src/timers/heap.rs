//! Timers that can be cancelled: a binary heap in which each timer knows its place.
//!
//! A heap and not a wheel: due times are exact to the nanosecond, and with a thousand timers setting one
//! moves it past two others on average (Porter and Simon 1975). A cancelled timer is removed at once, so
//! timers of an hour leave nothing behind.

use linerate_contract::Nanos;

/// Identifies one timer for good: after it fired or was cancelled, the id matches no other timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id {
    index: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy)]
struct HeapEntry {
    due: Nanos,
    index: u32,
    token: u64,
}

/// One index: its timer's place in the heap, and how many timers have used it before (modulo 2^32).
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    heap: u32,
    generation: u32,
}

/// Timers of one thread.
#[derive(Debug, Default)]
pub struct Timers {
    heap: Vec<HeapEntry>,
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Timers {
    /// Sets a timer; [`Self::fire`] returns its `token` once it is due.
    pub fn set(&mut self, due: Nanos, token: u64) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() as u32 - 1
        });
        self.heap.push(HeapEntry { due, index, token });
        self.up(self.heap.len() - 1);
        Id { index, generation: self.places[index as usize].generation }
    }

    /// Cancels a timer; false if it has fired or was cancelled before.
    pub fn cancel(&mut self, id: Id) -> bool {
        let place = self.places[id.index as usize];
        let pending = place.generation == id.generation;
        if pending {
            self.remove(place.heap as usize);
        }
        pending
    }

    /// When the next timer is due.
    pub fn next(&self) -> Option<Nanos> {
        self.heap.first().map(|entry| entry.due)
    }

    /// Removes one timer that is due at `now`; returns its due time and token.
    pub fn fire(&mut self, now: Nanos) -> Option<(Nanos, u64)> {
        let first = *self.heap.first().filter(|entry| entry.due <= now)?;
        self.remove(0);
        Some((first.due, first.token))
    }

    fn remove(&mut self, at: usize) {
        let entry = self.heap.swap_remove(at);
        let place = &mut self.places[entry.index as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(entry.index);
        if at < self.heap.len() {
            self.up(at);
            self.down(at);
        }
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].due <= self.heap[at].due {
                break;
            }
            self.heap.swap(parent, at);
            self.note(at);
            at = parent;
        }
        self.note(at);
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            let Some(first) = self.heap.get(left) else { break };
            let second = self.heap.get(left + 1).filter(|right| right.due < first.due);
            let child = if second.is_some() { left + 1 } else { left };
            if self.heap[at].due <= self.heap[child].due {
                break;
            }
            self.heap.swap(at, child);
            self.note(at);
            at = child;
        }
        self.note(at);
    }

    #[inline]
    fn note(&mut self, at: usize) {
        self.places[self.heap[at].index as usize].heap = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_id_of_a_fired_timer_cancels_no_later_timer() {
        let mut timers = Timers::default();
        let fired = timers.set(Nanos(1), 1);
        assert_eq!(timers.fire(Nanos(1)), Some((Nanos(1), 1)));
        let later = timers.set(Nanos(2), 2);
        assert!(!timers.cancel(fired));
        assert_eq!(timers.next(), Some(Nanos(2)));
        assert!(timers.cancel(later) && !timers.cancel(later));
        assert_eq!(timers.next(), None);
    }

    proptest! {
        /// A sorted map is the model.
        #[test]
        fn timers_fire_in_order_and_cancelled_ones_never_fire(
            steps in prop::collection::vec((0..3_u8, 0..50_u64), 1..300),
        ) {
            let (mut timers, mut model) = (Timers::default(), BTreeMap::new());
            for (token, (what, value)) in steps.into_iter().enumerate() {
                let token = token as u64;
                match what {
                    0 | 1 if what == 0 || model.is_empty() => {
                        model.insert((value, token), timers.set(Nanos(value), token));
                    }
                    1 => {
                        let key = *model.keys().nth(value as usize % model.len()).unwrap();
                        prop_assert!(timers.cancel(model.remove(&key).unwrap()));
                    }
                    _ => {
                        let mut fired = Vec::new();
                        while let Some((due, token)) = timers.fire(Nanos(value)) {
                            fired.push((due.0, token));
                        }
                        prop_assert!(fired.is_sorted_by_key(|f| f.0));
                        fired.sort_unstable();
                        let rest = model.split_off(&(value + 1, 0));
                        prop_assert_eq!(fired, model.keys().copied().collect::<Vec<_>>());
                        model = rest;
                    }
                }
                prop_assert_eq!(timers.next(), model.keys().next().map(|k| Nanos(k.0)));
            }
        }
    }
}
