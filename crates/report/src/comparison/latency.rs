//! Latencies of open loops: what changed, and at which load.

use super::made::{rough, signed, verdict};
use super::model::{ChangeReport, ComparedCell, ComparisonReport, LatencyChange, OfferedLoad};
use crate::layout::TextTable;
use crate::numbers::{Digits, Ends, count, difference};
use linerate_analysis::comparison::LatencyReading;
use linerate_analysis::stats::verdict::Verdict;
use linerate_model::{DecidingPercentile, Duet, LatencyMargin, Metric, PlannedCell, PlannedRate};
use std::collections::BTreeSet;

impl ComparedCell {
    /// The change of the rate, or of p50.
    pub fn main(&self) -> Option<&ChangeReport> {
        self.rate.as_ref().or(self.latency.first().map(|latency| &latency.change))
    }
}

impl LatencyChange {
    pub(super) fn from_reading(latency: &LatencyReading, change: ChangeReport) -> Self {
        let name = match latency.metric {
            Metric::P50Latency => "p50",
            Metric::P90Latency => "p90",
            Metric::P99Latency => "p99",
            Metric::P999Latency => "p99.9",
            _ => "mean",
        };
        let [head_us, base_us] = latency.us;
        Self { name: name.into(), base_us, head_us, change, difference: latency.difference }
    }

    /// Such as `+0.9 % (0.2 to 1.6), +0.5 µs (0.1 to 0.9)`.
    fn words(&self) -> String {
        let micros = self.difference.map_or_else(String::new, |found| format!(", {}", difference(&found)));
        signed(&self.change) + &micros
    }
}

/// A build that did less than this share of what was due has a queue that grows, and its latencies with it.
const KEEPS_UP: f64 = 0.95;

/// The load of an open loop, and what its units did of it; `None` of a closed one.
pub(super) fn load(cell: &PlannedCell, rate: Option<PlannedRate>, units: &[&Duet]) -> Option<OfferedLoad> {
    let share = match rate {
        Some(PlannedRate::Share(share)) => Some(share),
        _ => None,
    };
    let per_second = cell.parameters.rate.filter(|_| cell.is_paced_in_turns())?;
    let mut done = [0.0; 2];
    let mut keeps_up = [true; 2];
    // Sides are head and base.
    for (build, side) in [1, 0].into_iter().enumerate() {
        let windows = units.iter().filter_map(|unit| Some(&unit.sides.as_ref()?[side]));
        let (operations, seconds) = windows.fold((0.0, 0.0), |(operations, seconds), window| {
            let ended = window.operations + window.errors.total();
            (operations + ended as f64, seconds + window.elapsed.as_secs_f64())
        });
        let due = per_second as f64 * seconds;
        done[build] = if seconds > 0.0 { operations / seconds } else { 0.0 };
        // The number of Poisson arrivals has a standard deviation of its square root.
        keeps_up[build] = operations >= KEEPS_UP * due - 4.0 * due.sqrt();
    }
    Some(OfferedLoad { per_second, share, capacity: cell.capacity, done, keeps_up })
}

/// What to add to a sentence, such as `; v2 does not keep up: 30,700/s of the 37,171/s that are due, so its
/// latencies are those of a queue that grows`. Empty where both builds keep up.
pub(super) fn overload(cell: &ComparedCell, comparison: &ComparisonReport) -> String {
    let Some(load) = &cell.load else { return String::new() };
    let names = match comparison.commands.first() {
        Some(base) => [base.name.as_str(), cell.id.as_str()],
        None => ["base", "head"],
    };
    let slow = names.into_iter().zip(load.done).zip(load.keeps_up).filter(|(_, keeps_up)| !keeps_up);
    let each = slow.map(|((name, done), _)| {
        let [done, due] = [done.round() as u64, load.per_second].map(count);
        format!(
            "; {name} does not keep up: {done}/s of the {due}/s that are due, so its latencies are those of \
             a queue that grows"
        )
    });
    each.collect()
}

impl OfferedLoad {
    /// Such as `half of v1's capacity`, or `5,000/s`.
    fn words(&self, base: &str) -> String {
        match self.share {
            Some(0.5) => format!("half of {base}'s capacity"),
            Some(share) => format!("{} % of {base}'s capacity", rough(share)),
            None => format!("{}/s", count(self.per_second)),
        }
    }
}

/// Such as `p50 at half of v1's capacity +0.9 % (0.2 to 1.6), +0.5 µs (0.1 to 0.9); p90 +1.0 % (...), ...;
/// p99 +12 % (-20 to 44), not decided`.
pub(super) fn sentence(cell: &ComparedCell, base: &str) -> String {
    let at = cell.load.as_ref().map_or_else(String::new, |load| format!(" at {}", load.words(base)));
    let is_shown = |latency: &&LatencyChange| latency.name != "mean" && latency.name != "p99.9";
    let each = cell.latency.iter().filter(is_shown).enumerate().map(|(index, latency)| {
        let at = if index == 0 { at.as_str() } else { "" };
        let open = match latency.change.verdict {
            Verdict::CannotTell if latency.name != "p50" => ", not decided",
            _ => "",
        };
        let words = if index < 2 { latency.words() } else { signed(&latency.change) };
        format!("{}{at} {words}{open}", latency.name)
    });
    each.collect::<Vec<_>>().join("; ")
}

/// The difference that matters in this cell: `1 %` or `5 us`.
pub(super) fn margin(cell: &ComparedCell, comparison: &ComparisonReport) -> String {
    match comparison.latency_margin {
        _ if cell.latency.is_empty() => format!("{} %", rough(comparison.margin)),
        LatencyMargin::Share(share) => format!("{} %", rough(share)),
        LatencyMargin::Microseconds(us) => format!("{us} us"),
    }
}

/// The differences that matter in the cells: `1 %`, or `1 % or 5 us` where there are open loops, too.
pub(crate) fn margins(comparison: &ComparisonReport) -> String {
    let all: BTreeSet<String> = comparison.cells.iter().map(|cell| margin(cell, comparison)).collect();
    match all.is_empty() {
        true => format!("{} %", rough(comparison.margin)),
        false => Vec::from_iter(all).join(" or "),
    }
}

/// A row for each latency of each cell; `None` where there are none.
pub(crate) fn table(comparison: &ComparisonReport) -> Option<TextTable> {
    let of_cell = |cell: &ComparedCell| {
        let margin = margin(cell, comparison);
        let row = |latency: &LatencyChange| {
            vec![
                cell.id.clone(),
                latency.name.clone(),
                Digits::OF_VALUES.text(latency.base_us, Ends::Unknown),
                Digits::OF_VALUES.text(latency.head_us, Ends::Unknown),
                signed(&latency.change),
                latency.difference.as_ref().map(difference).unwrap_or_default(),
                verdict(latency.change.verdict, &margin),
            ]
        };
        cell.latency.iter().map(row).collect::<Vec<_>>()
    };
    let headers = ["cell", "latency", "base us", "head us", "change (95 %)", "difference (95 %)", "verdict"];
    let table = TextTable::new("Latencies", headers).with_rows(comparison.cells.iter().flat_map(of_cell));
    Some(table).filter(|table| !table.rows.is_empty())
}

/// The loads, and what the latencies mean.
pub(super) fn made(comparison: &ComparisonReport) -> Vec<String> {
    let line = |cell: &ComparedCell| {
        let OfferedLoad { per_second, share, capacity, .. } = cell.load.as_ref()?;
        let of = share.zip(*capacity).map_or_else(String::new, |(share, capacity)| {
            let capacity = count(capacity.round() as u64);
            format!(", {} % of the {capacity}/s that the baseline did in a closed loop", rough(share))
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
