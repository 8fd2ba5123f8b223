//! Counts of the kernel for an operation of each side, and which of it differs.

use super::{CostDifference, MOST_FALSE, difference};
use crate::stats::multiplicity::q_values;
use linerate_model::{CallWindow, Count, SideWindow, Unit};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A smaller difference for an operation is not told.
const LEAST: f64 = 0.05;
/// The least relative difference: packets depend on the program, waits and faults on the scheduler, too.
const LEAST_OF_PACKETS: f64 = 0.1;
const LEAST_OF_OTHERS: f64 = 0.5;

/// A count for an operation, of the baseline and of the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountDifference {
    pub count: Count,
    pub per_operation: [f64; 2],
    pub difference: f64,
    pub ci95: [f64; 2],
}

/// The counts that differ for certain over these units, those of packets first.
pub fn counts<'a>(units: impl Iterator<Item = &'a Unit>) -> Vec<CountDifference> {
    let sides = units.filter(|unit| !unit.warmup).filter_map(|unit| unit.both());
    let operations = |side: &SideWindow| side.operations + side.uncounted;
    certain(
        &sides.map(|sides| sides.each_ref().map(|side| (operations(side), &side.counts))).collect::<Vec<_>>(),
    )
}

/// The counts of the windows in which system calls were recorded.
pub(super) fn of_calls(windows: &[[CallWindow; 2]]) -> Vec<CountDifference> {
    certain(
        &windows
            .iter()
            .map(|sides| sides.each_ref().map(|side| (side.operations, &side.counts)))
            .collect::<Vec<_>>(),
    )
}

/// Operations and counts of a window.
type Counted<'a> = (u64, &'a BTreeMap<Count, u64>);

fn certain(sides: &[[Counted<'_>; 2]]) -> Vec<CountDifference> {
    let known: BTreeSet<Count> = sides.iter().flat_map(|sides| sides[0].1.keys()).copied().collect();
    let found: Vec<(CountDifference, f64)> =
        known.into_iter().filter_map(|count| of_count(count, sides)).collect();
    let q = q_values(&found.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let is_certain = |found: &CountDifference, q: f64| {
        let [base, head] = found.per_operation;
        let least = if is_of_packets(found.count) { LEAST_OF_PACKETS } else { LEAST_OF_OTHERS };
        q <= MOST_FALSE && found.difference.abs() >= LEAST.max(least * base.min(head))
    };
    found
        .into_iter()
        .zip(q)
        .filter(|((found, _), q)| is_certain(found, *q))
        .map(|((found, _), _)| found)
        .collect()
}

fn of_count(count: Count, sides: &[[Counted<'_>; 2]]) -> Option<(CountDifference, f64)> {
    let of_side = |(operations, counts): Counted<'_>| {
        Some(*counts.get(&count)? as f64 / operations as f64).filter(|each| each.is_finite())
    };
    let each: Vec<[f64; 2]> =
        sides.iter().filter_map(|sides| Some([of_side(sides[1])?, of_side(sides[0])?])).collect();
    if each.len() < super::LEAST_ROUNDS {
        return None;
    }
    let (CostDifference { us, difference_us, ci95 }, p) = difference(&each)?;
    Some((CountDifference { count, per_operation: us, difference: difference_us, ci95 }, p))
}

fn is_of_packets(count: Count) -> bool {
    use Count::{Bytes, Datagrams, DelayedAcks, Retransmissions, Segments};
    matches!(count, Segments | Retransmissions | DelayedAcks | Datagrams | Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Sharing, Sides, Together};

    fn unit(number: u32, segments: [u64; 2], switches: [u64; 2]) -> Unit {
        let side = |at: usize| SideWindow {
            operations: 1_000,
            counts: BTreeMap::from([
                (Count::Segments, segments[at] + u64::from(number % 2)),
                (Count::VoluntarySwitches, switches[at] + u64::from(number * 7 % 5)),
            ]),
            ..SideWindow::default()
        };
        let together = Together { sides: Some([side(0), side(1)]), ..Together::new(Sharing::Together) };
        Unit { number, ..Unit::new(Sides::Two([1, 0]), together.into()) }
    }

    #[test]
    fn one_segment_more_for_each_response_is_told_and_a_few_waits_are_not() {
        let units: Vec<Unit> = (0..6).map(|number| unit(number, [3_000, 2_000], [310, 300])).collect();
        let found = counts(units.iter());
        assert_eq!(found.iter().map(|found| found.count).collect::<Vec<_>>(), [Count::Segments]);
        assert!((found[0].difference - 1.0).abs() < 1e-9 && found[0].per_operation[0] > 2.0, "{found:?}");
        let equal: Vec<Unit> = (0..6).map(|number| unit(number, [2_000, 2_000], [310, 300])).collect();
        assert!(counts(equal.iter()).is_empty());
        assert!(counts(units[..2].iter()).is_empty(), "two units show no spread");
    }
}
