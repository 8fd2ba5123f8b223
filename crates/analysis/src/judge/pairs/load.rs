//! The load of an open loop, and what its units did of it.

use super::finding::Finding;
use super::pair::OfferedLoad;
use linerate_contract::Counts;
use linerate_model::{PlannedRate, Unit};

/// A build that did less than this share of what was due may have a queue that grows, and its latencies with
/// it. A machine that stands still for milliseconds loses as much, and no queue is left.
const KEEPS_UP: f64 = 0.95;
/// Where a queue grows all the time, half of the operations wait for at least half of the work that is behind
/// at the end of a window; this is a part of that, since a unit may have several windows.
const OF_LAG: f64 = 0.125;

/// A load, and what the units of a pair did of it.
pub(super) fn offered(
    per_second: u64,
    planned: Option<PlannedRate>,
    capacity: Option<f64>,
    units: &[&Unit],
) -> OfferedLoad {
    let share = match planned {
        Some(PlannedRate::Share(share)) => Some(share),
        _ => None,
    };
    let mut done = [0.0; 2];
    let mut keeps_up = [true; 2];
    // Sides are head and base.
    for (build, side) in [1, 0].into_iter().enumerate() {
        let windows = || units.iter().filter_map(|unit| Some(&unit.both()?[side]));
        let (operations, seconds) = windows().fold((0.0, 0.0), |(operations, seconds), window| {
            let ended = window.operations + window.errors.total();
            (operations + ended as f64, seconds + window.elapsed.as_secs_f64())
        });
        let latencies = Counts::sum(windows().filter_map(|window| Some(window.latency.as_ref()?.counts())));
        let median = latencies.percentile(50.0).map_or(f64::INFINITY, |nanos| nanos as f64 / 1e9);
        let due = per_second as f64 * seconds;
        done[build] = if seconds > 0.0 { operations / seconds } else { 0.0 };
        let behind = (due - operations) / per_second as f64 / windows().count().max(1) as f64;
        // The number of Poisson arrivals has a standard deviation of its square root.
        keeps_up[build] = operations >= KEEPS_UP * due - 4.0 * due.sqrt() || median < OF_LAG * behind;
    }
    OfferedLoad { per_second, share, capacity, of_capacities: None, done, keeps_up }
}

impl OfferedLoad {
    /// The load beside the capacities of both sides, as the rate of a closed loop says.
    pub(super) fn beside(self, rate: Option<&Finding>) -> Self {
        let of_capacities = rate.and_then(|rate| {
            let of_base = self.share.or_else(|| Some(self.per_second as f64 / rate.values?[0]))?;
            Some([of_base, of_base / rate.ratio])
        });
        Self { of_capacities, ..self }
    }
}
