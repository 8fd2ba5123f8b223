//! One line of a journal, and how it becomes a unit.

use crate::unit::AT_RATE;
use crate::{
    Found, Measurement, Outcome, PlannedSuite, Probe, Run, SecondLoadRate, Sharing, SideWindow, Sides, Stage,
    Together, Unit, pair_id, probe_id,
};
use linerate_contract::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The names of a plan, to find the cells of a line by.
pub(super) struct Names<'a>(BTreeMap<&'a str, (usize, BTreeMap<String, Sides>)>);

impl<'a> Names<'a> {
    pub(super) fn new(run: &'a Run) -> Self {
        let of_suite = |(index, suite): (usize, &'a PlannedSuite)| {
            let cells = (0..suite.cells.len()).map(Sides::One);
            let places = || suite.pairs.iter().filter_map(|pair| suite.places(pair));
            let pairs = places().map(Sides::Two).chain(places().map(Sides::AtRate));
            let probes = suite.probes.iter();
            let probes =
                probes.filter_map(|probe| Some(Sides::Probed(suite.place(&probe.cell)?, probe.role)));
            let all = cells.chain(pairs).chain(probes).map(|sides| (sides.id(suite), sides));
            (suite.name.as_str(), (index, all.collect()))
        };
        Self(run.suites.iter().enumerate().map(of_suite).collect())
    }

    /// `None` for cells that are not in the plan.
    pub(super) fn unit(&self, line: Line) -> Option<Unit> {
        let (suite, names) = self.0.get(line.suite.as_str())?;
        let id = match (line.cell, line.cells, line.probe) {
            (Some(cell), _, _) => cell,
            (None, Some([cell, other]), None) => {
                pair_id([&cell, &other]) + line.second_load.map_or("", |_| AT_RATE)
            }
            (None, Some([cell, _]), Some(probe)) => probe_id(&cell, probe.role),
            (None, None, _) => return None,
        };
        let found = match line.sharing {
            None => Found::Alone(line.measurement),
            Some(sharing) => Found::Together(Together {
                sharing,
                second_load: line.second_load,
                probe: line.probe,
                sides: line.sides,
                windows: line.windows,
                strangers: line.strangers,
                stolen: line.stolen,
            }),
        };
        Some(Unit {
            suite: *suite,
            sides: *names.get(&id)?,
            number: line.round.or(line.unit)?,
            warmup: line.warmup,
            at: line.at,
            outcome: line.outcome,
            found,
            stages: line.stages,
        })
        .filter(|unit| unit.sides.is_one() == matches!(unit.found, Found::Alone(_)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A cell by itself: `cell`, `round`, `measurement`.
    Trial,
    /// Two cells: `cells`, `unit` and what follows `sharing`.
    Duet,
}

/// A unit as the journal has it, with names in place of indices.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    kind: Kind,
    suite: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cell: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cells: Option<[String; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    warmup: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second_load: Option<SecondLoadRate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    at: Nanos,
    #[serde(flatten)]
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measurement: Option<Measurement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sides: Option<[SideWindow; 2]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<[SideWindow; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strangers: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stolen: Option<f64>,
    stages: BTreeMap<Stage, Nanos>,
}

impl Line {
    pub(super) fn new(run: &Run, unit: &Unit) -> Self {
        let suite = &run.suites[unit.suite];
        let id = |cell: usize| suite.cells[cell].id.clone();
        let together = unit.together();
        let cell = unit.sides.cell();
        let beside = unit.sides.beside();
        Self {
            kind: if beside.is_none() { Kind::Trial } else { Kind::Duet },
            suite: suite.name.clone(),
            cell: beside.is_none().then(|| id(cell)),
            cells: beside.map(|other| [id(cell), id(other)]),
            round: beside.is_none().then_some(unit.number),
            unit: beside.map(|_| unit.number),
            warmup: unit.warmup,
            sharing: together.map(|both| both.sharing),
            second_load: together.and_then(|both| both.second_load),
            probe: together.and_then(|both| both.probe),
            at: unit.at,
            outcome: unit.outcome.clone(),
            measurement: unit.measurement().cloned(),
            sides: together.and_then(|both| both.sides.clone()),
            windows: together.map(|both| both.windows.clone()).unwrap_or_default(),
            strangers: together.and_then(|both| both.strangers),
            stolen: together.and_then(|both| both.stolen),
            stages: unit.stages.clone(),
        }
    }
}
