//! Resource usage of the server before and after the window, and leaks.

use super::estimate::median;
use crate::measurement::{Measurement, Usage, UsagePair};

/// A server may open a few permanent descriptors: a timer, a second listener, a file.
const PERMANENT: u64 = 8;
/// One of this number of connections may still be closing: more than any system here was observed to have.
const CLOSING: u64 = 100;

/// Medians over the trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Typical {
    pub descriptors: f64,
    pub memory_mib: f64,
}

/// Before and after.
#[must_use]
pub fn usage(trials: impl Iterator<Item = UsagePair>) -> Option<[Typical; 2]> {
    let trials: Vec<UsagePair> = trials.collect();
    let of = |when: fn(&UsagePair) -> Usage| {
        Some(Typical {
            descriptors: median(trials.iter().map(|usage| when(usage).descriptors as f64))?,
            memory_mib: median(trials.iter().map(|usage| when(usage).memory.as_mib_f64()))?,
        })
    };
    Some([of(|usage| usage.before)?, of(|usage| usage.after)?])
}

/// Growth of the server's open descriptors, if it exceeds a small share of the connections. Memory is no such
/// sign: a heap keeps freed memory, and only a second number of connections distinguishes a filled pool from
/// a leak.
#[must_use]
pub fn leak(measurement: &Measurement, connections: u64) -> Option<u64> {
    let usage = measurement.usage?;
    let grown = usage.after.descriptors.saturating_sub(usage.before.descriptors);
    (grown > PERMANENT.max(connections / CLOSING)).then_some(grown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Bytes;

    fn trial(before: u64, after: u64) -> Measurement {
        let usage = |descriptors| Usage { descriptors, memory: Bytes(descriptors << 20) };
        Measurement {
            usage: Some(UsagePair { before: usage(before), after: usage(after) }),
            ..Measurement::default()
        }
    }

    #[test]
    fn a_descriptor_per_connection_is_a_leak_and_a_few_are_not() {
        assert_eq!(leak(&trial(10, 2_010), 2_000), Some(2_000));
        assert_eq!(leak(&trial(10, 31), 2_000), Some(21));
        assert_eq!(leak(&trial(10, 30), 2_000), None);
        assert_eq!(leak(&trial(10, 18), 1), None);
        assert_eq!(leak(&trial(10, 3), 2_000), None);
        assert_eq!(leak(&Measurement::default(), 2_000), None);
    }

    #[test]
    fn usage_is_the_median_before_and_after() {
        let trials = [trial(10, 12), trial(30, 16), trial(20, 14)];
        let [before, after] = usage(trials.iter().filter_map(|m| m.usage)).unwrap();
        assert_eq!((before.descriptors, after.descriptors, after.memory_mib), (20.0, 14.0, 14.0));
        assert_eq!(usage(std::iter::empty()), None);
    }
}
