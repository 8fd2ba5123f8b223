//! The load of an open loop, and what its units did of it.

use super::pair::OfferedLoad;
use linerate_model::{PlannedCell, PlannedRate, Unit};

/// A build that did less than this share of what was due has a queue that grows, and its latencies with it.
const KEEPS_UP: f64 = 0.95;

/// The load of a cell, and what the units of its pair did of it; `None` of a closed loop.
pub(super) fn offered(cell: &PlannedCell, rate: Option<PlannedRate>, units: &[&Unit]) -> Option<OfferedLoad> {
    let share = match rate {
        Some(PlannedRate::Share(share)) => Some(share),
        _ => None,
    };
    let per_second = cell.parameters.rate.filter(|_| cell.is_paced_in_turns())?;
    let mut done = [0.0; 2];
    let mut keeps_up = [true; 2];
    // Sides are head and base.
    for (build, side) in [1, 0].into_iter().enumerate() {
        let windows = units.iter().filter_map(|unit| Some(&unit.both()?[side]));
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
