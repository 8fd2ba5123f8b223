//! Timers that can be cancelled: a binary heap in which each timer knows its place.
//!
//! A heap and not a wheel: due times are exact to the nanosecond, and with a thousand timers setting one moves it past two
//! others on average (Porter and Simon 1975). Cancelling takes it out at once, so timers of an hour leave nothing behind.

use linerate_contract::Nanos;

/// Names a timer until it has fired or was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(u32);

#[derive(Debug, Clone, Copy)]
struct Entry {
    due: Nanos,
    id: u32,
    token: u64,
}

/// Timers of one thread.
#[derive(Debug, Default)]
pub struct Timers {
    heap: Vec<Entry>,
    /// By id: the timer's place in the heap.
    places: Vec<u32>,
    free: Vec<u32>,
}

impl Timers {
    /// `token` comes back when it is due.
    pub fn set(&mut self, due: Nanos, token: u64) -> Id {
        let id = self.free.pop().unwrap_or_else(|| {
            self.places.push(0);
            self.places.len() as u32 - 1
        });
        self.heap.push(Entry { due, id, token });
        self.up(self.heap.len() - 1);
        Id(id)
    }

    /// Takes back a timer that has not fired.
    pub fn cancel(&mut self, id: Id) {
        self.remove(self.places[id.0 as usize] as usize);
    }

    /// When the next one is due.
    #[must_use]
    pub fn next(&self) -> Option<Nanos> {
        self.heap.first().map(|entry| entry.due)
    }

    /// Takes out one that is due: when it was, and its token.
    pub fn fire(&mut self, now: Nanos) -> Option<(Nanos, u64)> {
        let first = *self.heap.first().filter(|entry| entry.due <= now)?;
        self.remove(0);
        Some((first.due, first.token))
    }

    fn remove(&mut self, place: usize) {
        let entry = self.heap.swap_remove(place);
        self.free.push(entry.id);
        if place < self.heap.len() {
            self.up(place);
            self.down(place);
        }
    }

    fn up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].due <= self.heap[place].due {
                break;
            }
            self.heap.swap(parent, place);
            self.places[self.heap[place].id as usize] = place as u32;
            place = parent;
        }
        self.places[self.heap[place].id as usize] = place as u32;
    }

    fn down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(first) = self.heap.get(left) else { break };
            let second = self.heap.get(left + 1).filter(|right| right.due < first.due);
            let child = if second.is_some() { left + 1 } else { left };
            if self.heap[place].due <= self.heap[child].due {
                break;
            }
            self.heap.swap(place, child);
            self.places[self.heap[place].id as usize] = place as u32;
            place = child;
        }
        self.places[self.heap[place].id as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a sorted map that does the same.
        #[test]
        fn fires_in_order_and_never_what_was_cancelled(steps in prop::collection::vec((0..3_u8, 0..50_u64), 1..300)) {
            let (mut timers, mut model) = (Timers::default(), BTreeMap::new());
            for (token, (what, value)) in steps.into_iter().enumerate() {
                let token = token as u64;
                match what {
                    0 | 1 if what == 0 || model.is_empty() => {
                        model.insert((value, token), timers.set(Nanos(value), token));
                    }
                    1 => {
                        let key = *model.keys().nth(value as usize % model.len()).unwrap();
                        timers.cancel(model.remove(&key).unwrap());
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
