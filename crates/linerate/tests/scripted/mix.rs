//! A stored comparison of two servers under a mix of requests: the answer has a row for each request.

use crate::common::{Folder, assert_golden, linerate};
use linerate::measurement::{
    Histogram, Measurement, RequestWindow, Run, SecondLoadRate, Sharing, SideWindow, Sides, Stage, Together,
    Unit, journal,
};
use linerate_contract::{Counts, ErrorKind, Errors, Nanos, Role};
use serde_json::{Value, json};
use std::fs;

const NAMES: [&str; 2] = ["v1", "v2"];
/// Requests of the mix: more than the terminal shows.
const REQUESTS: usize = 12;
/// The request that is slower in v2 and the one that fails there.
const SLOWER: usize = 1;
const FAILING: usize = 2;
const UNITS: u32 = 12;

fn run() -> Run {
    let cell = |name: &str| {
        let system = |role: &str, name: &str| json!({"role": role, "name": name, "version": null});
        json!({
            "id": name, "axes": {"command": name, "load": "mix"}, "layer": "http", "workload": "rr",
            "path": {"device": "loopback", "links": [{"mtu": 65_536}]},
            "parameters": {"seconds": 1, "connections": 16, "threads": 1},
            "systems": [system("client", "native"), system("server", name)], "absent": null,
        })
    };
    let request = |index: usize| {
        let path = format!("/request/number-{index}/with-a-long-name");
        json!({"method": "GET", "path": path, "weight": 20 - index})
    };
    let subjects = NAMES.map(|name| json!({"command": {"name": name, "line": format!("./{name}")}}));
    serde_json::from_value(json!({
        "schema": "linerate.run/2", "id": "r", "command": "linerate compare ./v1 ./v2 --requests mix.jsonl",
        "seed": 7, "rounds": 1, "quick": false, "budget": 30_000_000_000_u64,
        "started": "2026-11-29T08:10:36Z", "linerate": "0.1.0",
        "host": {"kernel": "", "cpu_model": "", "cpus": 2, "memory_bytes": 0, "privileges": "", "facts": {}},
        "comparison": {
            "kind": "compare", "subjects": subjects, "margin": 0.01,
            "load": {
                "folder": "/shop", "port": 8080, "connections": 16, "threads": 1,
                "requests": (0..REQUESTS).map(request).collect::<Vec<Value>>(),
            },
        },
        "suites": [{
            "name": "commands", "question": "Which of these servers is faster?", "rounds": 1,
            "warmup_rounds": 0, "cells": NAMES.map(cell), "pairs": [{"cells": ["v2", "v1"]}],
            "tables": [{
                "name": "commands", "title": "12 different requests", "metric": "operations-per-second",
                "rows": "command", "columns": "load", "row_values": NAMES, "column_values": ["mix"],
                "cells": NAMES, "baseline": {"command": "v1"}, "limit": null, "notes": [],
            }],
        }],
    }))
    .expect("it follows the model")
}

/// One side of the unit of this number; without latencies it is a closed loop.
fn side(number: u32, is_head: bool, is_paced: bool) -> SideWindow {
    let request = |index: usize| {
        let noise = f64::from((7 * number + 5 * index as u32 + u32::from(is_head)) % 11) - 5.0;
        let slower = if is_head && index == SLOWER { 1.25 } else { 1.0 };
        let us = (100.0 + 10.0 * index as f64) * slower * (1.0 + 0.003 * noise);
        let operations = 2_000 / (index as u64 + 1);
        let pairs = vec![((us * 1e3) as u64, operations - 30), ((us * 3e3) as u64, 30)];
        let latency = is_paced.then(|| Histogram::from(Counts { pairs, min: 1, max: (us * 3e3) as u64 }));
        let mut errors = Errors::default();
        errors.add(ErrorKind::WrongStatus, u64::from(is_head && index == FAILING && number == 3));
        RequestWindow { operations, errors, latency }
    };
    let requests: Vec<RequestWindow> = (0..REQUESTS).map(request).collect();
    let whole = requests.iter().filter_map(|request| Some(request.latency.as_ref()?.counts()));
    SideWindow {
        elapsed: Nanos(500_000_000),
        operations: requests.iter().map(|request| request.operations).sum(),
        latency: is_paced.then(|| Counts::sum(whole).into()),
        cpu: [(Role::Server, Nanos(300_000_000))].into(),
        requests,
        ..SideWindow::default()
    }
}

fn duet(sides: Sides, number: u32) -> Unit {
    let is_paced = matches!(sides, Sides::AtRate(_));
    let second_load =
        is_paced.then_some(SecondLoadRate { per_second: 12_400, of_capacity: Some([0.5, 24_800.0]) });
    let windows = [true, false].map(|is_head| side(number, is_head, is_paced));
    let together = Together { second_load, sides: Some(windows), ..Together::new(Sharing::Alternating) };
    let stages = [(Stage::Measure, Nanos(1_200_000_000))].into();
    Unit { number, stages, ..Unit::new(sides, together.into()) }
}

/// The folder of a run with these pairs of runs.
fn stored(name: &str, of_pair: &[Sides]) -> Folder {
    let (folder, run) = (Folder::new(name), run());
    let alone = |cell| {
        let measurement = Measurement {
            elapsed: Nanos(1_000_000_000),
            operations: 12_400,
            cpu: [(Role::Server, Nanos(600_000_000))].into(),
            ..Measurement::default()
        };
        Unit::new(Sides::One(cell), measurement.into())
    };
    let duets = (1..=UNITS).flat_map(|number| of_pair.iter().map(move |sides| duet(*sides, number)));
    let units = [0, 1].map(alone).into_iter().chain(duets);
    let lines: Vec<u8> = units.flat_map(|unit| journal::line(&run, &unit).unwrap()).collect();
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("run.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    fs::write(folder.path().join("journal.jsonl"), lines).unwrap();
    folder
}

const PAIR: Sides = Sides::Two([1, 0]);
const AT_RATE: Sides = Sides::AtRate([1, 0]);

#[test]
fn each_request_of_a_mix_has_a_row_and_the_terminal_has_ten() {
    let folder = stored("mix", &[PAIR, AT_RATE]);
    let out = linerate("good", &["report", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("mix.txt", &out.stdout);
    let markdown = linerate("good", &["report", folder.str(), "--format", "md"]).stdout;
    let html = linerate("good", &["report", folder.str(), "--format", "html"]).stdout;
    for text in [&markdown, &html] {
        assert_eq!(text.matches("GET /request/number-").count(), REQUESTS + 1, "and a warning: {text}");
    }
    let comparison = folder.report().comparison.unwrap();
    let rows = &comparison.cells[0].by_request;
    let changed: Vec<usize> = (0..REQUESTS)
        .filter(|at| rows[*at].p50.is_some_and(|p50| p50.ci95.is_some_and(|[low, _]| low > 1.01)))
        .collect();
    assert_eq!(changed, [SLOWER], "{rows:?}");
    assert_eq!((rows[0].operations, rows[FAILING].failed()), ([24_000; 2], [0, 1]));
}

#[test]
fn without_latencies_each_request_is_counted_and_a_journal_without_requests_has_no_rows() {
    let folder = stored("mix-counts", &[PAIR]);
    let out = linerate("good", &["report", folder.str()]).stdout;
    assert!(out.contains("by request\n") && out.contains("24,000 -> 24,000"), "{out}");
    assert!(!out.contains("p50"), "{out}");
    let path = folder.path().join("journal.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let before = lines.lines().map(|line| {
        let mut unit: Value = serde_json::from_str(line).unwrap();
        for side in unit["sides"].as_array_mut().into_iter().flatten() {
            side.as_object_mut().unwrap().remove("requests");
        }
        unit.to_string()
    });
    fs::write(&path, before.collect::<Vec<_>>().join("\n")).unwrap();
    let out = linerate("good", &["report", folder.str()]).stdout;
    assert!(!out.contains("by request") && out.contains("requests/s"), "{out}");
}
