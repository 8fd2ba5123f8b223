//! System calls for an operation of each side, and which of them differ.

use super::{CostDifference, LEAST_ROUNDS, MOST_FALSE, difference};
use crate::stats::multiplicity::q_values;
use linerate_model::CallWindow;
use serde::Serialize;
use std::collections::BTreeSet;

/// The least difference for an operation, and the least relative one.
const LEAST: [f64; 2] = [0.05, 0.1];
/// The threshold for calls by which threads wait and wake each other: their number depends on how the load
/// comes.
const LEAST_OF_WAITS: [f64; 2] = [0.3, 1.0];
const WAITS: [&str; 14] = [
    "epoll_wait(2)",
    "epoll_pwait(2)",
    "epoll_pwait2(2)",
    "epoll_ctl(2)",
    "poll(2)",
    "ppoll(2)",
    "select(2)",
    "pselect6(2)",
    "futex(2)",
    "nanosleep(2)",
    "clock_nanosleep(2)",
    "sched_yield(2)",
    "rt_sigreturn(2)",
    "tgkill(2)",
];

/// A system call's number for an operation, of the baseline and of the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallDifference {
    /// Such as `write(2)`; `read(2) with EAGAIN` is the part that would have had to wait.
    pub name: String,
    pub per_operation: [f64; 2],
    pub difference: f64,
    pub ci95: [f64; 2],
}

/// Calls that differ for certain, the largest difference first.
pub(super) fn differences(windows: &[[CallWindow; 2]]) -> Vec<CallDifference> {
    let complete: Vec<&[CallWindow; 2]> =
        windows.iter().filter(|sides| sides.iter().all(|side| side.operations > 0)).collect();
    if complete.len() < LEAST_ROUNDS {
        return Vec::new();
    }
    let names: BTreeSet<&String> =
        complete.iter().flat_map(|sides| &**sides).flat_map(|side| side.calls.keys()).collect();
    let of_call = |name: &String| {
        let of_side =
            |side: &CallWindow| side.calls.get(name).copied().unwrap_or(0) as f64 / side.operations as f64;
        let each: Vec<[f64; 2]> = complete.iter().map(|[head, base]| [base, head].map(of_side)).collect();
        let (CostDifference { us, difference_us, ci95 }, p) = difference(&each)?;
        Some((CallDifference { name: name.clone(), per_operation: us, difference: difference_us, ci95 }, p))
    };
    let found: Vec<(CallDifference, f64)> = names.into_iter().filter_map(of_call).collect();
    let q = q_values(&found.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let is_certain = |found: &CallDifference, q: f64| {
        let [base, head] = found.per_operation;
        let waits = WAITS.contains(&&*found.name) || found.name.ends_with("EAGAIN");
        let [least, relative] = if waits { LEAST_OF_WAITS } else { LEAST };
        q <= MOST_FALSE && found.difference.abs() >= least.max(relative * base.min(head))
    };
    let certain = found.into_iter().zip(q).filter(|((found, _), q)| is_certain(found, *q));
    let mut certain: Vec<CallDifference> = certain.map(|((found, _), _)| found).collect();
    certain.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
    certain
}

/// Whether the load alone may make a function's CPU time differ, of the baseline and of the other: of a call
/// that waits or wakes others, below the factor from which its number is told.
pub(super) fn is_of_the_load(name: &str, us: [f64; 2]) -> bool {
    let difference = (us[1] - us[0]).abs();
    WAITS.contains(&name) && difference < LEAST_OF_WAITS[1] * us[0].min(us[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn windows(calls: [&[(&str, u64)]; 2]) -> Vec<[CallWindow; 2]> {
        let window = |calls: &[(&str, u64)], by: u64| CallWindow {
            operations: 1_000,
            calls: calls
                .iter()
                .map(|(name, count)| ((*name).to_owned(), count + by))
                .collect::<BTreeMap<_, _>>(),
            counts: BTreeMap::new(),
        };
        (0..4).map(|round| [window(calls[0], round % 2), window(calls[1], round % 3)]).collect()
    }

    #[test]
    fn one_more_write_is_told_and_more_waits_are_not() {
        let head = [("write(2)", 2_000), ("epoll_wait(2)", 700), ("futex(2)", 250)];
        let base = [("write(2)", 1_000), ("epoll_wait(2)", 400), ("futex(2)", 0)];
        let found = differences(&windows([&head, &base]));
        assert_eq!(found.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["write(2)"]);
        assert!((found[0].difference - 1.0).abs() < 0.01 && found[0].per_operation[0] < 1.1, "{found:?}");
        assert!(differences(&windows([&base, &base])).is_empty());
        assert!(differences(&windows([&head, &base])[..2]).is_empty(), "two windows show no spread");
    }

    #[test]
    fn a_wait_in_each_request_is_told() {
        let found = differences(&windows([&[("futex(2)", 1_000), ("read(2) with EAGAIN", 900)], &[]]));
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
