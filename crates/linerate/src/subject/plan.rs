//! The suite that is measured: one table, a cell for each command, each compared with the first.

use super::ready;
use crate::arm::{BASE, HEAD};
use crate::axes::Axes;
use crate::measurement::{
    DEFAULT_BUILD, Metric, PlannedCell, PlannedCommand, PlannedCommands, PlannedPair, PlannedRate,
    PlannedSuite, PlannedSystem, PlannedTable, Sharing, Warmup, default_verify, default_warmup,
};
use crate::parameters::Parameters;
use crate::path::Shape;
use crate::system::manifest::{Manifest, Start, Variant};
use crate::system::{Registry, System, VERIFIER};
use linerate_contract::{Nanos, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The name of the suite, of its table and of the system.
const NAME: &str = "commands";
const AXIS: &str = "command";
const COLUMN: &str = "load";
/// Responses that a unit verifies, one after the other: as many as this time has room for.
const TIME_TO_VERIFY: Nanos = Nanos(50_000_000);
const FEWEST_VERIFIED: u64 = 2;
const MOST_VERIFIED: u64 = 10;
/// Pools and caches are filled by then.
const SHORTEST_WARMUP: Nanos = Nanos(200_000_000);

/// The suite of these commands.
pub(crate) fn suite(planned: &PlannedCommands) -> PlannedSuite {
    let cells: Vec<PlannedCell> = planned
        .commands
        .iter()
        .enumerate()
        .map(|(index, command)| cell(planned, command, if index == 0 { BASE } else { HEAD }))
        .collect();
    let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    // The first pair is the control: the baseline with itself.
    let pairs = ids.iter().map(|id| PlannedPair { cells: [id.clone(), ids[0].clone()], no_duet: None });
    let load = cells[0].axes.get(COLUMN).unwrap_or_default().to_owned();
    PlannedSuite {
        name: NAME.into(),
        question: "Which of these servers is faster?".into(),
        // As many as its budget has time for.
        rounds: 1,
        // The first units decide how a pair shares the CPUs; they are the warm-up.
        warmup_rounds: 0,
        tables: vec![PlannedTable {
            name: NAME.into(),
            title: match planned.rate {
                None => format!("{load}: requests per second"),
                Some(_) => format!("{load}: half of the requests end within"),
            },
            metric: planned.rate.map_or(Metric::OperationsPerSecond, |_| Metric::P50Latency),
            rows: AXIS.into(),
            columns: COLUMN.into(),
            row_values: planned.commands.iter().map(|command| command.name.clone()).collect(),
            column_values: vec![load],
            cells: ids.clone(),
            baseline: Axes(vec![(AXIS.into(), planned.commands[0].name.clone())]),
            notes: notes(planned),
            ..PlannedTable::default()
        }],
        pairs: pairs.collect(),
        cells,
        ..PlannedSuite::default()
    }
}

/// Responses that a unit verifies before it measures.
fn verified(warmup: Warmup) -> u64 {
    (TIME_TO_VERIFY.0 / warmup.response.0.max(1)).clamp(FEWEST_VERIFIED, MOST_VERIFIED)
}

fn notes(planned: &PlannedCommands) -> Vec<String> {
    let mut notes = Vec::new();
    let hosts: BTreeSet<&str> =
        planned.commands.iter().filter_map(|command| command.host.as_deref()).collect();
    if !hosts.is_empty() {
        let hosts = Vec::from_iter(hosts).join(", ");
        notes.push(format!(
            "the servers' CPU time is that of the processes that listen on their ports ({hosts}), read \
             before and after each client; their memory is not known"
        ));
    } else if planned.are_elsewhere() {
        notes.push("the servers' CPU time and memory are not known: they run elsewhere".to_owned());
    }
    // The client compares every byte of an echo.
    let note = match (planned.has_tls(), planned.size.is_some()) {
        (true, true) => Some("certificates are not verified"),
        (true, false) => Some("certificates are not verified, and responses are not compared"),
        (false, _) => planned.streams.map(|_| "responses are not compared"),
    };
    notes.extend(note.map(str::to_owned));
    let is_steady = |command: &PlannedCommand| command.warmup.is_none_or(|warmup| warmup.is_steady);
    let is_steady = planned.commands.iter().all(is_steady);
    let note = "the rate still rose at the end of the longest warm-up: results may be of a server that is \
                not warm yet; a longer --budget warms up for longer, up to 5 s";
    notes.extend((!is_steady).then(|| note.to_owned()));
    notes
}

fn cell(planned: &PlannedCommands, command: &PlannedCommand, build: &str) -> PlannedCell {
    let PlannedCommands { requests, connections, threads, .. } = planned;
    let asked = match (planned.size, &requests[..]) {
        (Some(size), _) => format!("{} echo of {size} bytes", planned.layer),
        (None, [one]) if planned.are_calls => format!("gRPC {}", one.path.trim_start_matches('/')),
        (None, [one]) if planned.are_elsewhere() => one.method.clone(),
        (None, [one]) => format!("{} {}", one.method, one.path),
        (None, several) => format!("{} different requests", several.len()),
    };
    let rate = match planned.rate {
        None => String::new(),
        Some(PlannedRate::PerSecond(rate)) => format!(", {rate}/s"),
        Some(PlannedRate::Share(share)) => format!(", {} % of its capacity", share * 100.0),
    };
    let streams = planned.streams.map_or_else(String::new, |streams| format!(" x {streams} streams"));
    let load = format!("{asked}, {connections} connections{streams}{rate}");
    let axes = [(AXIS, command.name.clone()), (COLUMN, load)];
    let system = |role, name: &str, build: &str| PlannedSystem {
        role,
        name: name.into(),
        build: build.into(),
        ..PlannedSystem::default()
    };
    PlannedCell {
        id: command.name.clone(),
        axes: Axes(axes.map(|(name, value)| (name.to_owned(), value)).into()),
        layer: planned.layer.clone(),
        workload: "rr".into(),
        path: Shape::Loopback.into(),
        parameters: Parameters {
            seconds: Some(1),
            size: planned.size,
            connections: Some((*connections).into()),
            threads: Some((*threads).into()),
            rate: planned.rate.map(|rate| rate.per_second(planned.capacity).unwrap_or(0)),
            ..Parameters::default()
        },
        verify: Parameters {
            operations: Some(command.warmup.map_or(MOST_VERIFIED, verified)),
            ..default_verify()
        },
        warmup: default_warmup(),
        warm_for: command.warmup.map(|warmup| warmup.time.max(SHORTEST_WARMUP)),
        pairs: planned.rate.map(|_| Sharing::Alternating),
        capacity: planned.capacity,
        systems: [
            Some(system(Role::Client, VERIFIER, DEFAULT_BUILD)),
            command.target.is_none().then(|| system(Role::Server, &command.name, build)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        ..PlannedCell::default()
    }
}

/// linerate's own client, and a system with a variant for each command.
pub(crate) fn registry(all: Registry, planned: &PlannedCommands) -> Registry {
    let mut systems: BTreeMap<String, System> =
        all.systems.into_iter().filter(|(name, _)| name == VERIFIER).collect();
    let variants = planned.commands.iter().map(|command| {
        let variant = Variant {
            about: command.command.clone(),
            roles: vec![Role::Server],
            start: Some(Start::Same(Vec::new())),
            ready: ready(planned),
            ..Variant::default()
        };
        (command.name.clone(), variant)
    });
    let manifest = Manifest { variants: variants.collect(), ..Manifest::default() };
    systems.insert(NAME.into(), System { name: NAME.into(), folder: PathBuf::new(), manifest });
    Registry { systems }
}
