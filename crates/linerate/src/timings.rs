//! How long a trial takes: from earlier trials on this machine, kept in the cache folder.
//!
//! So does a unit of a pair. Used for the durations that `plan` prints and for the time left; never for a
//! result.

use crate::lab::program;
use crate::measurement::{Outcome, PlannedSuite, Sides, Stage, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Costs of cells and pairs, by suite and id.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Timings(BTreeMap<String, Cost>);

/// Time for all but the operations, and for one operation.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cost {
    fixed: f64,
    per_operation: f64,
}

/// Seconds of a unit of a pair, with the start of its systems, where none was made on this machine.
const UNIT: f64 = 1.0;
/// Seconds of a trial beside its window, where none was made: its start, its verification, its end.
const BESIDE: f64 = 0.6;
/// Seconds of a window that ends with its operations.
const WINDOW: f64 = 1.0;
/// The weight of a new trial: high enough to follow the machine, low enough to smooth single outliers.
const WEIGHT: f64 = 0.3;

impl Timings {
    /// The costs in the cache folder; empty if there are none, or if they cannot be read.
    pub fn load() -> Self {
        let text = path().and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Keeps the costs for later runs. A failure to write them is ignored: they are estimates only.
    pub fn save(&self) {
        if let (Some(path), Ok(text)) = (path(), serde_json::to_string(self))
            && path.parent().is_some_and(|folder| fs::create_dir_all(folder).is_ok())
        {
            let _ = fs::write(path, text);
        }
    }

    /// Updates the costs by a unit. Failed ones count too: the next one takes as long to fail.
    pub fn update(&mut self, suite: &PlannedSuite, unit: &Unit) {
        let total = unit.time();
        let (elapsed, operations) = match (&unit.outcome, unit.measurement()) {
            (Outcome::Ok, Some(m)) => (m.elapsed, m.operations + m.errors.total()),
            _ => (unit.time_of(Stage::Measure), 0),
        };
        let new = if operations == 0 {
            Cost { fixed: total.as_secs_f64(), per_operation: 0.0 }
        } else {
            Cost {
                fixed: total.since(elapsed).as_secs_f64(),
                per_operation: elapsed.as_secs_f64() / operations as f64,
            }
        };
        self.take(key(suite, unit.sides), new);
    }

    fn take(&mut self, key: String, new: Cost) {
        self.0
            .entry(key)
            .and_modify(|known| {
                known.fixed += WEIGHT * (new.fixed - known.fixed);
                known.per_operation += WEIGHT * (new.per_operation - known.per_operation);
            })
            .or_insert(new);
    }

    /// Seconds that a unit of a pair or probe takes; where none was ever made, what most take.
    pub fn seconds_of_pair(&self, suite: &PlannedSuite, sides: Sides) -> f64 {
        self.0.get(&key(suite, sides)).map_or(UNIT, |cost| cost.fixed)
    }

    /// Seconds that a trial of this cell takes, if one was ever made.
    pub fn seconds(&self, suite: &PlannedSuite, cell: usize) -> Option<f64> {
        let cost = self.0.get(&key(suite, Sides::One(cell)))?;
        let parameters = &suite.cells[cell].parameters;
        if let Some(window) = parameters.seconds {
            return Some(cost.fixed + window as f64);
        }
        // Work by bytes counts its writes.
        let writes = || Some(parameters.bytes? / parameters.size?.max(1));
        let operations = parameters.operations.or_else(writes).unwrap_or(0);
        let deadline = parameters.deadline.map_or(f64::INFINITY, |seconds| seconds as f64);
        Some(cost.fixed + (cost.per_operation * operations as f64).min(deadline))
    }
}

/// Seconds that a trial of this cell may take, where none was ever made.
pub fn guess(suite: &PlannedSuite, cell: usize) -> f64 {
    BESIDE + suite.cells[cell].parameters.seconds.map_or(WINDOW, |window| window as f64)
}

fn key(suite: &PlannedSuite, sides: Sides) -> String {
    format!("{}:{}", suite.name, sides.id(suite))
}

fn path() -> Option<PathBuf> {
    Some(program::cache()?.join("timings.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Measurement, Sharing, Together};
    use linerate_contract::Nanos;
    use serde_json::json;

    /// Cells of the same systems, one that lasts for its operations and one that lasts for a time.
    fn suite(operations: u64, seconds: u64) -> PlannedSuite {
        let cell = |id: &str, parameters: serde_json::Value| {
            json!({"id": id, "axes": {}, "layer": "http", "workload": "rr",
                "path": {"device": "loopback", "links": [{"mtu": 65_536}]}, "parameters": parameters,
                "systems": [], "absent": null})
        };
        let cells =
            [cell("counted", json!({"operations": operations})), cell("timed", json!({"seconds": seconds}))];
        serde_json::from_value(json!({"name": "s", "question": "?", "rounds": 1, "warmup_rounds": 0, 
            "cells": cells, "tables": []}))
        .unwrap()
    }

    fn trial(cell: usize) -> Unit {
        let measurement =
            Measurement { operations: 1_000, elapsed: Nanos(1_000_000_000), ..Measurement::default() };
        let stages = [(Stage::Raise, Nanos(250_000_000)), (Stage::Measure, Nanos(1_250_000_000))].into();
        Unit { stages, ..Unit::new(Sides::One(cell), measurement.into()) }
    }

    #[test]
    fn a_longer_trial_is_expected_to_take_longer() {
        let mut timings = Timings::default();
        assert_eq!(timings.seconds(&suite(1, 1), 0), None);
        assert_eq!([0, 1].map(|cell| guess(&suite(1, 3), cell)), [BESIDE + WINDOW, BESIDE + 3.0]);
        [0, 1].into_iter().for_each(|cell| timings.update(&suite(1, 1), &trial(cell)));
        let mut late = suite(4_000, 3);
        late.cells[0].parameters.deadline = Some(2);
        assert_eq!(timings.seconds(&late, 0), Some(2.5));
        let expected = |operations, seconds| {
            let suite = suite(operations, seconds);
            [0, 1].map(|cell| timings.seconds(&suite, cell).unwrap())
        };
        assert_eq!(expected(1_000, 1), [1.5, 1.5]);
        assert_eq!(expected(4_000, 3), [4.5, 3.5]);
    }

    #[test]
    fn a_unit_is_expected_to_take_as_long_as_those_before_it_of_its_pair() {
        let stages = [(Stage::Start, Nanos(250_000_000)), (Stage::Measure, Nanos(2_000_000_000))].into();
        let together = Together::new(Sharing::Turns);
        let unit = Unit { stages, ..Unit::new(Sides::Two([0, 1]), together.into()) };
        let (suite, mut timings) = (suite(1, 1), Timings::default());
        timings.update(&suite, &unit);
        assert_eq!(timings.seconds_of_pair(&suite, Sides::Two([0, 1])), 2.25);
        assert_eq!(timings.seconds_of_pair(&suite, Sides::Two([1, 0])), UNIT);
    }
}
