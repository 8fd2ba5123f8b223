//! The suite of a comparison of servers: one table, a cell for each, each compared with the first.

use crate::arm::{BASE, HEAD};
use crate::axes::Axes;
use crate::measurement::{
    DEFAULT_BUILD, Metric, PlannedCell, PlannedLoad, PlannedPair, PlannedRate, PlannedSuite, PlannedSystem,
    PlannedTable, Sharing, Subject, default_verify, default_warmup,
};
use crate::parameters::Parameters;
use crate::path::Shape;
use crate::system::VERIFIER;
use linerate_contract::{Role, Workload};
use std::collections::BTreeSet;

/// The name of the suite and of its table.
const NAME: &str = "commands";
const AXIS: &str = "command";
const COLUMN: &str = "load";

/// The suite of these servers.
pub(crate) fn suite((subjects, load): (&[Subject], &PlannedLoad)) -> PlannedSuite {
    let builds = std::iter::once(BASE).chain(std::iter::repeat(HEAD));
    let words = described(subjects, load);
    let cells: Vec<PlannedCell> =
        subjects.iter().zip(builds).map(|(subject, build)| cell(subject, build, load, &words)).collect();
    let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    // The first pair is the control: the baseline with itself.
    let pairs = ids.iter().map(|id| PlannedPair { cells: [id.clone(), ids[0].clone()], no_duet: None });
    PlannedSuite {
        name: NAME.into(),
        question: "Which of these servers is faster?".into(),
        // As many as its budget has time for.
        rounds: 1,
        // The first units decide how a pair shares the CPUs; they are the warm-up.
        warmup_rounds: 0,
        tables: vec![PlannedTable {
            name: NAME.into(),
            title: match load.rate {
                None => format!("{words}: requests per second"),
                Some(_) => format!("{words}: half of the requests end within"),
            },
            metric: load.rate.map_or(Metric::OperationsPerSecond, |_| Metric::P50Latency),
            rows: AXIS.into(),
            columns: COLUMN.into(),
            row_values: ids.clone(),
            column_values: vec![words],
            cells: ids.clone(),
            baseline: Axes(vec![(AXIS.into(), ids[0].clone())]),
            notes: notes(subjects, load),
            ..PlannedTable::default()
        }],
        pairs: pairs.collect(),
        cells,
        ..PlannedSuite::default()
    }
}

fn notes(subjects: &[Subject], load: &PlannedLoad) -> Vec<String> {
    let mut notes = Vec::new();
    let elsewhere = || subjects.iter().filter_map(Subject::address);
    let hosts = elsewhere().filter_map(|address| Some(address.watched_on.as_ref()?.to_string()));
    let hosts: BTreeSet<String> = hosts.collect();
    if !hosts.is_empty() {
        let hosts = Vec::from_iter(hosts).join(", ");
        notes.push(format!(
            "the servers' CPU time is that of the processes that listen on their ports ({hosts}), read \
             before and after each client; their memory is not known"
        ));
    } else if elsewhere().next().is_some() {
        notes.push("the servers' CPU time and memory are not known: linerate did not start them".to_owned());
    }
    for address in elsewhere().filter(|address| !address.further.is_empty()) {
        let all = std::iter::once(&address.address).chain(&address.further);
        let all = all.map(ToString::to_string).collect::<Vec<_>>().join(", ");
        notes.push(format!("{}: connections go in turn to {all}", address.name));
    }
    // The client compares every byte of an echo.
    let note = match (load.has_tls(), load.size.is_some()) {
        (true, true) => Some("certificates are not verified"),
        (true, false) => Some("certificates are not verified, and responses are not compared"),
        (false, _) => load.streams.map(|_| "responses are not compared"),
    };
    notes.extend(note.map(str::to_owned));
    notes
}

/// The load in words, such as `GET /, 16 connections`.
fn described(subjects: &[Subject], load: &PlannedLoad) -> String {
    let have_own_paths = subjects.iter().any(|subject| subject.address().is_some());
    let asked = match (load.size, &load.requests[..]) {
        (Some(size), _) => format!("{} echo of {size} bytes", load.layer),
        (None, [one]) if load.are_calls => format!("gRPC {}", one.path.trim_start_matches('/')),
        (None, [one]) if have_own_paths => one.method.clone(),
        (None, [one]) => format!("{} {}", one.method, one.path),
        (None, several) => format!("{} different requests", several.len()),
    };
    let rate = match load.rate {
        None => String::new(),
        Some(PlannedRate::PerSecond(rate)) => format!(", {rate}/s"),
        Some(PlannedRate::Share(share)) => format!(", {} % of its capacity", share * 100.0),
    };
    let streams = load.streams.map_or_else(String::new, |streams| format!(" x {streams} streams"));
    format!("{asked}, {} connections{streams}{rate}", load.connections)
}

fn cell(subject: &Subject, build: &str, load: &PlannedLoad, words: &str) -> PlannedCell {
    let system = |role, name: &str, build: &str| PlannedSystem {
        role,
        name: name.into(),
        build: build.into(),
        ..PlannedSystem::default()
    };
    let server = subject.is_started_here().then(|| system(Role::Server, subject.name(), build));
    let client = system(Role::Client, VERIFIER, DEFAULT_BUILD);
    PlannedCell {
        id: subject.name().to_owned(),
        axes: Axes(vec![(AXIS.into(), subject.name().to_owned()), (COLUMN.into(), words.to_owned())]),
        layer: load.layer,
        workload: Workload::Rr,
        path: Shape::Loopback.into(),
        parameters: Parameters {
            seconds: Some(1),
            size: load.size,
            connections: Some(load.connections.into()),
            threads: Some(load.threads.into()),
            rate: load.rate.map(|rate| rate.per_second(None).unwrap_or(0)),
            ..Parameters::default()
        },
        verify: default_verify(),
        warmup: default_warmup(),
        pairs: load.rate.map(|_| Sharing::Alternating),
        systems: std::iter::once(client).chain(server).collect(),
        ..PlannedCell::default()
    }
}
