//! Doubts about a cell's numbers.

use super::cell::{CellSummary, OutcomeWord};
use crate::stats::ByRound;
use crate::stats::bound::disturbance;
use crate::stats::check::littles_law;
use crate::stats::estimate::FEWEST_ROUNDS;
use crate::stats::outliers::{drift, much_stolen, outliers};
use crate::stats::usage::leak;
use linerate_contract::Workload;
use linerate_model::{LabFlag, Measurement};
use std::collections::BTreeSet;

/// A note on a cell's numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Flag {
    /// Planned, not run.
    NotMeasured,
    /// Too few for an interval or a verdict.
    FewRounds(u32),
    BoundByGenerator,
    /// Better than a part of its own work.
    AboveLimit {
        ratio: f64,
        limit: String,
    },
    /// Operations under way by rate and mean latency, and those that a closed loop has.
    LittlesLaw {
        in_flight: f64,
        expected: u64,
    },
    /// Their rounds.
    Outliers(Vec<u32>),
    /// Round and share of the CPU time that the hypervisor gave to others.
    Steal(Vec<(u32, f64)>),
    /// Share of the lab's CPU time that went to processes outside of the trials.
    Disturbed(f64),
    /// Share of the median by which the values moved over the run.
    Drift(f64),
    /// The rank correlation of each unit of its comparison with the next.
    Autocorrelated(f64),
    /// Growth of the server's open descriptors after this number of connections.
    Leak {
        descriptors: u64,
        connections: u64,
    },
    Lab(LabFlag),
}

/// Everything to doubt in a cell with these values, but what its tables show.
pub fn flags(cell: &CellSummary<'_>, values: &ByRound) -> Vec<Flag> {
    let n = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let mut flags = Vec::new();
    if cell.measured.is_empty() && cell.outcome == OutcomeWord::Failed {
        flags.push(Flag::NotMeasured);
    }
    if cell.outcome == OutcomeWord::Ok && n < FEWEST_ROUNDS {
        flags.push(Flag::FewRounds(n));
    }
    if cell.is_bound_by_generator() {
        flags.push(Flag::BoundByGenerator);
    }
    if let Some(expected) = in_closed_loop(cell) {
        let in_flight = littles_law(cell.good.iter().map(|(_, m)| *m), expected);
        flags.extend(in_flight.map(|in_flight| Flag::LittlesLaw { in_flight, expected }));
    }
    let apart = outliers(values);
    if !apart.is_empty() {
        flags.push(Flag::Outliers(apart));
    }
    let stolen: Vec<(u32, f64)> = cell.good.iter().filter_map(|(r, m)| Some((*r, much_stolen(m)?))).collect();
    if !stolen.is_empty() {
        flags.push(Flag::Steal(stolen));
    }
    flags.extend(disturbance(cell.good.iter().map(|(_, m)| *m)).map(Flag::Disturbed));
    flags.extend(drift(values).map(Flag::Drift));
    let leaks =
        cell.good.iter().filter_map(|(_, m)| leak(m, connections_of(cell, m)).map(|grown| (grown, *m)));
    if let Some((descriptors, m)) = leaks.max_by_key(|(grown, _)| *grown) {
        flags.push(Flag::Leak { descriptors, connections: connections_of(cell, m) });
    }
    let of_lab: BTreeSet<LabFlag> = cell.good.iter().flat_map(|(_, m)| m.flags.iter().copied()).collect();
    flags.extend(of_lab.into_iter().map(Flag::Lab));
    flags
}

/// Operations under way all the time: one for each connection, or for each of its streams. `None` with a
/// rate, where connections are idle between operations.
fn in_closed_loop(cell: &CellSummary<'_>) -> Option<u64> {
    let planned = cell.planned;
    let is_closed = planned.parameters.rate.is_none() && planned.workload.is_of_round_trips();
    let streams = planned.options.get("streams").and_then(|text| text.parse().ok()).unwrap_or(1);
    planned
        .parameters
        .connections
        .filter(|_| is_closed)
        .map(|connections| connections.saturating_mul(streams))
}

/// Connections that the trial opened: one for each operation in `crr`.
fn connections_of(cell: &CellSummary<'_>, measurement: &Measurement) -> u64 {
    if cell.planned.workload == Workload::Crr {
        // Saturating, because a damaged journal may contain any number.
        measurement.errors.0.values().fold(measurement.operations, |sum, n| sum.saturating_add(*n))
    } else {
        cell.planned.parameters.connections.unwrap_or(1)
    }
}
