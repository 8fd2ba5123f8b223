//! Latencies of open loops: what changed, and at which load.

use super::model::{ComparedCell, ComparisonReport};
use crate::layout::TextTable;
use crate::numbers::{count, difference, share, signed, times_of};
use crate::words;
use linerate_analysis::judge::pairs::{Finding, OfferedLoad};
use linerate_model::{DecidingPercentile, LatencyMargin};
use std::collections::BTreeSet;

/// An addition to a sentence, such as `; v2 does not keep up: 30,700/s of the 37,171/s that are due, so its
/// latencies are those of a queue that grows`. Empty where both builds keep up.
pub(super) fn overload(cell: &ComparedCell, comparison: &ComparisonReport) -> String {
    let each = cell.load.iter().flat_map(|load| queues(load, cell, comparison));
    each.map(|text| format!("; {text}")).collect()
}

/// The sentences about builds that do not keep up with a load.
pub(super) fn queues(load: &OfferedLoad, cell: &ComparedCell, comparison: &ComparisonReport) -> Vec<String> {
    let names = match comparison.commands.first() {
        Some(base) => [base.name.as_str(), cell.id.as_str()],
        None => ["base", "head"],
    };
    let slow = names.into_iter().zip(load.done).zip(load.keeps_up).filter(|(_, keeps_up)| !keeps_up);
    let each = slow.map(|((name, done), _)| {
        let [done, due] = [done.round() as u64, load.per_second].map(count);
        format!(
            "{name} does not keep up: {done}/s of the {due}/s that are due, so its latencies are those of a \
             queue that grows"
        )
    });
    each.collect()
}

/// Such as `5,000/s, 50 % of v1's capacity, 84 % of v2's`.
pub(super) fn load_words(load: &OfferedLoad, base: &str, head: &str) -> String {
    let rate = rate_words(load);
    let [of_base, of_head] = load.of_capacities.map_or([load.share, None], |parts| parts.map(Some));
    let of_base = of_base.map_or_else(String::new, |part| format!(", {} of {base}'s capacity", share(part)));
    let of_head = of_head.map_or_else(String::new, |part| format!(", {} of {head}'s", share(part)));
    rate + &of_base + &of_head
}

/// Such as `5,000/s`.
pub(super) fn rate_words(load: &OfferedLoad) -> String {
    format!("{}/s", count(load.per_second))
}

/// Such as `; 9,800/s is 50 % of v1's capacity, 84 % of v2's`: what each open loop is for each subject.
pub(super) fn loads(comparison: &ComparisonReport) -> String {
    let base = comparison.commands.first().map_or("", |one| one.name.as_str());
    let mut parts: Vec<String> = Vec::new();
    for cell in &comparison.cells {
        let Some(load) = load_of(cell) else { continue };
        let words = load_words(load, base, &cell.id).replacen(", ", " is ", 1);
        if words == rate_words(load) {
            continue;
        }
        // What all have in common is told once.
        let begin = words.split_once("capacity").map_or(words.as_str(), |(begin, _)| begin);
        match parts.iter_mut().find(|part| part.starts_with(begin)) {
            Some(known) => known.push_str(&words[begin.len() + "capacity".len()..]),
            None => parts.push(words),
        }
    }
    parts.iter().map(|part| format!("; {part}")).collect()
}

/// The load of its open loop.
pub(super) fn load_of(cell: &ComparedCell) -> Option<&OfferedLoad> {
    cell.load.as_ref().or(cell.second_load.as_ref().map(|second| &second.load))
}

/// The difference that matters in this cell: `1 %` or `5 µs`.
pub(super) fn margin(cell: &ComparedCell, comparison: &ComparisonReport) -> String {
    if cell.load.is_some() { latency_margin(comparison) } else { share(comparison.margin) }
}

/// The difference of latencies that matters.
pub(super) fn latency_margin(comparison: &ComparisonReport) -> String {
    match comparison.latency_margin {
        LatencyMargin::Share(margin) => share(margin),
        LatencyMargin::Microseconds(us) => format!("{us} µs"),
    }
}

/// The differences that matter in the cells: `1 %`, or `1 % or 5 µs` where there are open loops, too.
pub(crate) fn margins(comparison: &ComparisonReport) -> String {
    let all: BTreeSet<String> = comparison.cells.iter().map(|cell| margin(cell, comparison)).collect();
    match all.is_empty() {
        true => share(comparison.margin),
        false => Vec::from_iter(all).join(" or "),
    }
}

/// A row for each latency of each cell; `None` where there are none.
pub(crate) fn table(comparison: &ComparisonReport) -> Option<TextTable> {
    let of_cell = |cell: &ComparedCell| {
        let margin = margin(cell, comparison);
        let row = |latency: &Finding| {
            let [base, head] = latency.values.map_or_else(Default::default, times_of);
            vec![
                cell.id.clone(),
                latency.measure.name().to_owned(),
                base,
                head,
                signed(latency),
                latency.difference.as_ref().map(difference).unwrap_or_default(),
                words::verdict(latency.verdict, &margin),
            ]
        };
        cell.findings.latencies().map(row).collect::<Vec<_>>()
    };
    let headers = ["cell", "latency", "base", "head", "change (95 %)", "difference (95 %)", "verdict"];
    let table = TextTable::new("Latencies", headers).with_rows(comparison.cells.iter().flat_map(of_cell));
    Some(table).filter(|table| !table.rows.is_empty())
}

/// The loads, and what the latencies mean.
pub(super) fn made(comparison: &ComparisonReport) -> Vec<String> {
    let line = |cell: &ComparedCell| {
        let OfferedLoad { per_second, share, capacity, .. } = cell.load.as_ref()?;
        let of = share.zip(*capacity).map_or_else(String::new, |(share, capacity)| {
            let capacity = count(capacity.round() as u64);
            format!(", {} of the {capacity}/s that the baseline did in a closed loop", self::share(share))
        });
        let overload = overload(cell, comparison);
        Some(format!("{}: an open loop of {}/s{of}{overload}", cell.id, count(*per_second)))
    };
    let mut lines: Vec<String> = comparison.cells.iter().filter_map(line).collect();
    if !lines.is_empty() {
        lines.push(
            "latencies count from the time at which a request was due; both builds get the same Poisson \
             arrivals, in turns of 30 ms whose order is drawn"
                .into(),
        );
        let deciding = match comparison.percentile {
            DecidingPercentile::P50 => "p50 decides",
            DecidingPercentile::P90 => "p50 and p90 decide",
        };
        lines.push(format!(
            "{deciding}: the other latencies and the CPU time count where they are certain to be worse, and \
             leave nothing open"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_rate_and_the_part_of_each_sides_capacity_that_it_is() {
        let both = OfferedLoad {
            per_second: 9_800,
            share: Some(0.5),
            capacity: Some(19_600.0),
            of_capacities: Some([0.5, 0.84]),
            done: [9_800.0; 2],
            keeps_up: [true; 2],
        };
        let words = |load: &OfferedLoad| load_words(load, "v1", "v2");
        assert_eq!(words(&both), "9,800/s, 50 % of v1's capacity, 84 % of v2's");
        let base = OfferedLoad { of_capacities: None, ..both };
        assert_eq!(words(&base), "9,800/s, 50 % of v1's capacity");
        assert_eq!(words(&OfferedLoad { share: None, ..base }), "9,800/s");
    }
}
