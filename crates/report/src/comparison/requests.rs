//! A row for each of several requests, below the answer of a comparison of servers.

use super::answer::{change_words, interval_words};
use super::latency::{load_of, rate_words};
use super::model::{ComparedCell, ComparisonReport};
use crate::layout::TextTable;
use crate::numbers::{Digits, Ends, TimeUnit, count};
use linerate_analysis::judge::pairs::RequestFinding;

/// Requests that the terminal and a comment show.
pub(super) const FEW: usize = 10;
/// Requests in a sentence about failures.
const IN_SENTENCE: usize = 3;

/// A table for each server beside the baseline; without rows where there is but one request. Of each pair of
/// values the first is the baseline's.
pub(super) fn tables(comparison: &ComparisonReport) -> Vec<TextTable> {
    let several = comparison.cells.len() > 1;
    let with_rows = comparison.cells.iter().filter(|cell| !cell.by_request.is_empty());
    with_rows.map(|cell| table(cell, several)).collect()
}

fn table(cell: &ComparedCell, several: bool) -> TextTable {
    let load = load_of(cell).map_or_else(String::new, |load| format!(" at {}", rate_words(load)));
    let of = if several { format!(", {}", cell.id) } else { String::new() };
    let is_timed = cell.by_request.iter().any(|request| request.p50.is_some());
    let fails = cell.by_request.iter().any(|request| request.failed() != [0, 0]);
    let both = |values: [String; 2]| values.join(" -> ");
    let requests = || cell.by_request.iter();
    let p50 = TimeUnit::fitting(requests().filter_map(|request| request.p50.as_ref()?.values).flatten());
    let p99 = TimeUnit::fitting(requests().flat_map(|request| request.p99_us).flatten());
    let number = |us: f64, unit: TimeUnit| Digits::OF_FACTORS.text(unit.of_micros(us), Ends::Unknown);
    let row = |request: &RequestFinding| {
        let mut row = vec![name(request), both(request.operations.map(count))];
        row.extend(fails.then(|| both(request.failed().map(count))));
        if is_timed {
            let found = request.p50.as_ref();
            let values = found.and_then(|found| found.values);
            row.extend([
                values.map_or_else(String::new, |us| both(us.map(|us| number(us, p50)))),
                found.map_or_else(String::new, change_words),
                found.map_or_else(String::new, interval_words),
                both(request.p99_us.map(|us| us.map_or_else(|| "-".to_owned(), |us| number(us, p99)))),
            ]);
        }
        row
    };
    let title = format!("by request{of}{load}");
    let mut headers = vec![&*title, "responses"];
    headers.extend(fails.then_some("failed"));
    let [p50, p99] = [("p50", p50), ("p99", p99)].map(|(name, unit)| format!("{name} {}", unit.name()));
    let timed = [&*p50, "change", "95 % interval", &*p99];
    headers.extend(timed.into_iter().filter(|_| is_timed));
    TextTable::new(&title, headers).with_rows(cell.by_request.iter().map(row))
}

/// Sentences about requests that one side alone fails.
pub(super) fn one_sided(cell: &ComparedCell, base: &str) -> Vec<String> {
    let of_side = |(side, by): (usize, &str)| {
        let is_meant = |request: &&RequestFinding| {
            let failed = request.failed();
            failed[side] > 0 && failed[1 - side] == 0
        };
        let all: Vec<&RequestFinding> = cell.by_request.iter().filter(is_meant).collect();
        let shown = all.iter().take(IN_SENTENCE).map(|request| failures(request, side));
        let more = all.len().saturating_sub(IN_SENTENCE);
        let more = (more > 0).then(|| format!("{more} more"));
        let parts: Vec<String> = shown.chain(more).collect();
        (!parts.is_empty()).then(|| format!("warning: {by} alone fails {}", parts.join(", ")))
    };
    [base, cell.id.as_str()].into_iter().enumerate().filter_map(of_side).collect()
}

/// Such as `GET /order (12 of 400: status)`.
fn failures(request: &RequestFinding, side: usize) -> String {
    let failed = request.failed()[side];
    let kinds: Vec<String> = request.errors[side].0.keys().map(|kind| kind.name()).collect();
    let all = failed + request.operations[side];
    format!("{} ({} of {}: {})", name(request), count(failed), count(all), kinds.join(", "))
}

/// Such as `GET /items`.
fn name(request: &RequestFinding) -> String {
    format!("{} {}", request.method, request.path)
}
