//! The reasons of a suite's rows: a line for each, and what the kernel counted for an operation.

use super::{Reason, count_name};
use crate::layout::TextTable;
use crate::model::SuiteReport;
use linerate_model::{CallWindow, Count};
use std::collections::BTreeMap;

/// System calls that have a column, those that are called most.
const CALLS: usize = 6;
/// A count of fewer for an operation has no column.
const LEAST: f64 = 0.05;

/// A sentence for each row that was profiled.
pub(crate) fn reasons(suite: &SuiteReport) -> Vec<String> {
    let line = |reason: &Reason| {
        let hints = reason.hints.iter().map(|hint| format!("; {hint}")).collect::<String>();
        format!("why {} beside {}: {}{hints}", reason.id, reason.baseline, reason.why.sentence)
    };
    suite.reasons.iter().map(line).collect()
}

/// Counts of the kernel and system calls for an operation, of each row that was profiled and of its baseline;
/// `None` without any.
pub(crate) fn counted(suite: &SuiteReport) -> Option<TextTable> {
    let mut rows: Vec<(&str, BTreeMap<String, f64>)> = Vec::new();
    for reason in &suite.reasons {
        let windows = &reason.why.profile.calls;
        for (id, side) in [(&reason.baseline, 1), (&reason.id, 0)] {
            let counts = per_operation(windows.iter().map(|sides| &sides[side]));
            if !counts.is_empty() && rows.iter().all(|(known, _)| known != id) {
                rows.push((id, counts));
            }
        }
    }
    let most = |name: &str| rows.iter().filter_map(|(_, counts)| counts.get(name)).fold(0.0, |a, b| b.max(a));
    let is_call = |name: &str| name.ends_with("(2)");
    let mut names: Vec<(&str, f64)> = rows
        .iter()
        .flat_map(|(_, counts)| counts.keys().map(String::as_str))
        .filter(|name| is_call(name) || [Count::Segments, Count::Datagrams].map(count_name).contains(name))
        .map(|name| (name, most(name)))
        .filter(|(_, most)| *most >= LEAST)
        .collect();
    // Packets first, then the calls that are made most.
    names.sort_by(|(a, n), (b, m)| is_call(a).cmp(&is_call(b)).then(m.total_cmp(n)).then(a.cmp(b)));
    names.dedup();
    let packets = names.iter().filter(|(name, _)| !is_call(name)).count();
    names.truncate(packets + CALLS);
    let headers = ["row"].into_iter().chain(names.iter().map(|(name, _)| *name));
    let cells = |(id, counts): &(&str, BTreeMap<String, f64>)| {
        let number =
            |(name, _): &(&str, f64)| counts.get(*name).map_or("0".to_owned(), |n| format!("{n:.2}"));
        [(*id).to_owned()].into_iter().chain(names.iter().map(number)).collect()
    };
    let table = TextTable::new("System calls and packets for an operation", headers);
    (!names.is_empty()).then(|| table.with_rows(rows.iter().map(cells)))
}

/// Counts and calls by name, for an operation of these windows.
fn per_operation<'a>(windows: impl Iterator<Item = &'a CallWindow> + Clone) -> BTreeMap<String, f64> {
    let operations: u64 = windows.clone().map(|window| window.operations).sum();
    let mut all = BTreeMap::<String, f64>::new();
    for window in windows {
        let counts = window.counts.iter().map(|(count, n)| (count_name(*count).to_owned(), *n));
        for (name, n) in window.calls.iter().map(|(name, n)| (name.clone(), *n)).chain(counts) {
            *all.entry(name).or_default() += n as f64 / operations.max(1) as f64;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_for_an_operation_over_all_windows() {
        let window = |operations, calls: &[(&str, u64)]| CallWindow {
            operations,
            calls: calls.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            counts: BTreeMap::from([(Count::Segments, 2 * operations)]),
        };
        let windows = [window(10, &[("write(2)", 10)]), window(30, &[("write(2)", 40), ("read(2)", 10)])];
        let found = per_operation(windows.iter());
        assert_eq!(found["write(2)"], 1.25);
        assert_eq!([found["read(2)"], found["TCP segments"]], [0.25, 2.0]);
    }
}
