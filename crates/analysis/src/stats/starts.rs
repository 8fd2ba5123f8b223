//! How servers of the user's own start.

use super::estimate::median;
use linerate_model::{ColdStart, Duet};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

/// The starts of a server in the units of a run: medians.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StartReport {
    /// The server's name.
    pub name: String,
    /// From the start of its process until it listens.
    pub listens_ms: f64,
    /// From there until the end of its first expected response.
    pub responds_ms: f64,
    /// Starts that succeeded.
    pub starts: usize,
    /// Starts that failed, after which it was started again.
    pub failed: usize,
    /// Why the first of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// By server, in the order of these names; without those that no unit has started.
pub fn starts<'a>(names: impl Iterator<Item = &'a str>, units: &[&Duet]) -> Vec<StartReport> {
    let of = |name: &'a str| {
        let sides = units.iter().filter_map(|unit| Some(unit.cells.iter().zip(unit.sides.as_ref()?)));
        let own = sides.flatten().filter(|(cell, _)| *cell == name);
        let all: Vec<&ColdStart> = own.filter_map(|(_, side)| side.cold_start.as_ref()).collect();
        let milliseconds = |time: fn(&ColdStart) -> f64| median(all.iter().map(|start| time(start) * 1e3));
        Some(StartReport {
            name: name.to_owned(),
            listens_ms: milliseconds(|start| start.listens.as_secs_f64())?,
            responds_ms: milliseconds(|start| start.responds.as_secs_f64())?,
            starts: all.len(),
            failed: all.iter().map(|start| start.failed.len()).sum(),
            reason: all.iter().find_map(|start| start.failed.first().cloned()),
        })
    };
    names.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;
    use linerate_model::SideWindow;

    #[test]
    fn starts_of_both_sides_have_medians_and_failures() {
        let side = |listens: u64, failed: &[&str]| SideWindow {
            cold_start: Some(ColdStart {
                listens: Nanos(listens * 1_000_000),
                responds: Nanos(2_000_000),
                failed: failed.iter().map(|reason| (*reason).to_owned()).collect(),
            }),
            ..SideWindow::default()
        };
        let unit = |sides: [SideWindow; 2]| {
            let json = serde_json::json!({
                "suite": "commands", "cells": ["b", "a"], "unit": 1, "sharing": "together", "at": 0,
                "outcome": "ok", "sides": sides, "stages": {},
            });
            serde_json::from_value::<Duet>(json).unwrap()
        };
        let units = [
            unit([side(10, &["no port"]), side(1, &[])]),
            unit([side(30, &[]), side(3, &[])]),
            unit([side(20, &[]), side(2, &[])]),
        ];
        let found = starts(["a", "b", "c"].into_iter(), &units.iter().collect::<Vec<_>>());
        let [a, b] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*a.name, a.listens_ms, a.failed, a.starts), ("a", 2.0, 0, 3));
        assert_eq!((b.listens_ms, b.responds_ms, b.failed), (20.0, 2.0, 1));
        assert_eq!(b.reason.as_deref(), Some("no port"));
    }
}
