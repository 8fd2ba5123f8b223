//! Resource usage of the server before and after the window, and leaks.

use super::estimate::median;
use linerate_model::{Measurement, UsagePair};
use serde::Serialize;

/// A server may open a few permanent descriptors: a timer, a second listener, a file.
const PERMANENT: u64 = 8;
/// One of this number of connections may still be closing: more than any system here was observed to have.
const CLOSING: u64 = 100;

/// Medians over the trials: before the client started, and shortly after it ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    pub descriptors_before: f64,
    pub descriptors_after: f64,
    pub memory_mib_before: f64,
    pub memory_mib_after: f64,
}

/// The resources of a server before and after its trials.
pub fn usage(trials: impl Iterator<Item = UsagePair>) -> Option<UsageReport> {
    let trials: Vec<UsagePair> = trials.collect();
    let typical = |value: fn(&UsagePair) -> f64| median(trials.iter().map(value));
    Some(UsageReport {
        descriptors_before: typical(|usage| usage.before.descriptors as f64)?,
        descriptors_after: typical(|usage| usage.after.descriptors as f64)?,
        memory_mib_before: typical(|usage| usage.before.memory.as_mib_f64())?,
        memory_mib_after: typical(|usage| usage.after.memory.as_mib_f64())?,
    })
}

/// Growth of the server's open descriptors, if it exceeds a small share of the connections. Memory is no such
/// sign: a heap keeps freed memory, and only a second number of connections distinguishes a filled pool from
/// a leak.
pub fn leak(measurement: &Measurement, connections: u64) -> Option<u64> {
    let usage = measurement.usage?;
    let grown = usage.after.descriptors.saturating_sub(usage.before.descriptors);
    (grown > PERMANENT.max(connections / CLOSING)).then_some(grown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Bytes;
    use linerate_model::Usage;

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
        let found = usage(trials.iter().filter_map(|m| m.usage)).unwrap();
        assert_eq!((found.descriptors_before, found.descriptors_after), (20.0, 14.0));
        assert_eq!((found.memory_mib_before, found.memory_mib_after), (20.0, 14.0));
        assert_eq!(usage(std::iter::empty()), None);
    }
}
