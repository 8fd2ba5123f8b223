//! The receiver's counts of one flow: received sequence numbers, their order, and duplicates.
//!
//! Loss is what is missing at the end, reordering a number below an earlier one (RFC 4737). A duplicate
//! differs from a late datagram only while the receiver remembers the number: a bit for each of the last
//! 65,536 numbers, 8 KiB, longer than any queue of a local path.

use super::Report;

/// The number of last sequence numbers that are remembered.
const WINDOW: u64 = 65_536;
const WORDS: usize = (WINDOW / 64) as usize;

/// How a datagram arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramOrder {
    InOrder,
    /// Later than one with a higher number.
    Reordered,
    Duplicate,
}

/// The counts of one flow.
#[derive(Debug, Clone)]
pub struct Account {
    report: Report,
    /// One more than the highest received number.
    next: u64,
    seen: Box<[u64; WORDS]>,
}

impl Default for Account {
    fn default() -> Self {
        Self { report: Report::default(), next: 0, seen: Box::new([0; WORDS]) }
    }
}

impl Account {
    /// A good payload datagram of `bytes` bytes, which arrived at `now_ns`.
    #[inline]
    pub fn good(&mut self, sequence: u64, bytes: u64, now_ns: u64) -> DatagramOrder {
        let arrival = self.place(sequence);
        match arrival {
            DatagramOrder::InOrder => {}
            DatagramOrder::Reordered => self.report.reordered += 1,
            DatagramOrder::Duplicate => {
                self.report.duplicates += 1;
                return arrival;
            }
        }
        if self.report.received == 0 {
            self.report.first_ns = now_ns;
        }
        self.report.last_ns = now_ns;
        self.report.received += 1;
        self.report.bytes += bytes;
        arrival
    }

    /// One that has another length or content than it should.
    pub fn damaged(&mut self) {
        self.report.damaged += 1;
    }

    #[must_use]
    pub fn report(&self) -> Report {
        self.report
    }

    /// Numbers up to the highest that came which did not come: lost, or still on their way.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.next.saturating_sub(self.report.received)
    }

    #[inline]
    fn place(&mut self, sequence: u64) -> DatagramOrder {
        if sequence >= self.next {
            if sequence > self.next {
                self.forget(sequence);
            }
            self.next = sequence.saturating_add(1);
            self.mark(sequence);
            return DatagramOrder::InOrder;
        }
        if self.next - sequence > WINDOW {
            return DatagramOrder::Reordered;
        }
        let (word, bit) = slot(sequence);
        if self.seen[word] & bit != 0 {
            return DatagramOrder::Duplicate;
        }
        self.mark(sequence);
        DatagramOrder::Reordered
    }

    #[inline]
    fn mark(&mut self, sequence: u64) {
        let (word, bit) = slot(sequence);
        self.seen[word] |= bit;
    }

    /// The numbers from the next one up to `sequence` replace those a window before them, as not received.
    #[cold]
    fn forget(&mut self, sequence: u64) {
        if sequence - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for skipped in self.next..sequence {
            let (word, bit) = slot(skipped);
            self.seen[word] &= !bit;
        }
    }
}

#[inline]
fn slot(sequence: u64) -> (usize, u64) {
    ((sequence % WINDOW / 64) as usize, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use DatagramOrder::{Duplicate, InOrder, Reordered};
    use std::collections::BTreeSet;

    #[test]
    fn a_known_sequence_is_told_as_it_is() {
        let mut account = Account::default();
        let arrivals: Vec<DatagramOrder> =
            [0, 1, 3, 2, 3, 0, 7, 4, 4].map(|n| account.good(n, 100, 10 + n)).into();
        assert_eq!(
            arrivals,
            [InOrder, InOrder, InOrder, Reordered, Duplicate, Duplicate, InOrder, Reordered, Duplicate]
        );
        account.damaged();
        let report = account.report();
        assert_eq!((report.received, report.bytes, report.reordered), (6, 600, 2));
        assert_eq!((report.duplicates, report.damaged, account.missing()), (3, 1, 2));
        assert_eq!((report.first_ns, report.last_ns), (10, 14));
    }

    #[test]
    fn gaps_longer_than_the_window_forget_it() {
        let mut account = Account::default();
        account.good(5, 1, 1);
        account.good(5 + 3 * WINDOW, 1, 1);
        // In the place of number 5, but not it.
        assert_eq!(account.good(5 + 2 * WINDOW + 1, 1, 1), Reordered);
        assert_eq!(account.good(5, 1, 1), Reordered, "too long ago to be remembered");
        assert_eq!(account.good(u64::MAX - 16, 1, 1), InOrder);
    }

    /// Against a set that remembers everything, over a sequence with loss, duplicates and late ones.
    #[test]
    fn it_agrees_with_a_memory_of_everything() {
        let mut account = Account::default();
        let (mut all, mut highest, mut random) = (BTreeSet::new(), None, 12_345_u64);
        for step in 0..200_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sequence = step + (random >> 40) % 50;
            let arrival = account.good(sequence, 1, 1);
            let expected = if all.contains(&sequence) {
                Duplicate
            } else if highest.is_some_and(|highest| sequence < highest) {
                Reordered
            } else {
                InOrder
            };
            assert_eq!(arrival, expected, "number {sequence} at step {step}");
            all.insert(sequence);
            highest = highest.max(Some(sequence));
        }
        assert_eq!(account.report().received, all.len() as u64);
    }
}
