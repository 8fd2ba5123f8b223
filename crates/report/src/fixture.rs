//! A run for the tests. Its cells cover each case: success, dropped requests, some or all trials failed,
//! missing, not reached, too few rounds, an outlier, steal, an A/A control, a limit.

use linerate_contract::Counts;
use linerate_model::journal::{self, Journal, read_journal};
use linerate_model::{Found, Histogram, Measurement, Run, Sides, Unit};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::{Value, json};

pub(super) const ROUNDS: u32 = 7;

/// Seconds for 2,000 requests, and CPU shares of client, relay and server; `None` where the system is
/// missing.
type Truth = Option<(f64, [f64; 3])>;

const CELLS: [(&str, &str, Truth); 12] = [
    ("nginx", "direct", Some((0.136, [0.52, 0.0, 0.31]))),
    ("nginx", "iptables", Some((0.164, [0.45, 0.0, 0.26]))),
    ("nginx", "haproxy-http", Some((0.221, [0.35, 0.66, 0.22]))),
    ("nginx", "sslh-select", Some((0.242, [0.33, 0.70, 0.20]))),
    ("nginx", "sslh-ev", None),
    ("nginx", "limit", Some((0.120, [0.93, 0.0, 0.21]))),
    ("apache", "direct", Some((0.240, [0.30, 0.0, 0.90]))),
    ("apache", "iptables", Some((0.241, [0.31, 0.0, 0.90]))),
    ("apache", "haproxy-http", Some((0.310, [0.30, 0.52, 0.41]))),
    ("apache", "sslh-select", Some((0.300, [0.30, 0.50, 0.41]))),
    ("apache", "sslh-ev", None),
    ("apache", "limit", Some((0.210, [0.40, 0.0, 0.80]))),
];

pub(super) fn run() -> Run {
    serde_json::from_value(json!({
        "schema": "linerate.run/2",
        "id": "2026-11-21T20-53-14Z-002a",
        "command": "linerate run proxy transport --quick --seed 42",
        "seed": 42,
        "rounds": ROUNDS,
        "quick": true,
        "started": "2026-11-21T20:53:14Z",
        "linerate": "0.1.0",
        "host": {
            "kernel": "Linux 6.18.0", "cpu_model": "An <Example> CPU @ 2.5 GHz",
            "cpus": 2, "memory_bytes": 8_u64 << 30,
            "privileges": "user namespace", "facts": {"mtu": "1500", "mitigations": "on | spectre_v2"},
        },
        "suites": [proxy(), transport()],
    }))
    .expect("the fixture follows the model")
}

fn proxy() -> Value {
    let cells: Vec<Value> = CELLS.iter().map(|(server, path, _)| proxy_cell(server, path)).collect();
    let ids: Vec<&Value> = cells.iter().map(|cell| &cell["id"]).collect();
    let of_nginx: Vec<&&Value> =
        ids.iter().filter(|id| id.as_str().is_some_and(|id| id.starts_with("nginx"))).collect();
    let paths = ["direct", "iptables", "haproxy-http", "sslh-select", "sslh-ev", "limit"];
    json!({
        "name": "proxy", "question": "What does each way of forwarding HTTP cost?",
        "rounds": ROUNDS, "warmup_rounds": 1,
        "aa": "nginx/direct", "cells": cells,
        "tables": [
            {
                "name": "forwarding", "title": "Seconds for 2000 requests, 5 at a time", "metric": "seconds",
                "rows": "path", "columns": "server",
                "row_values": paths, "column_values": ["nginx", "apache"],
                "cells": ids, "baseline": {"path": "direct"},
                "limit": {"path": "limit"}, "notes": ["A note of the suite."],
            },
            {
                "name": "latency", "title": "Mean latency of the same requests", "metric": "mean-latency",
                "rows": "path", "columns": "server",
                "row_values": paths, "column_values": ["nginx", "apache"],
                "cells": of_nginx, "baseline": {"path": "direct"}, "limit": null,
                "reference": {"path": "iptables"}, "notes": [],
            },
        ],
    })
}

fn proxy_cell(server: &str, path: &str) -> Value {
    let absent = match (server, path) {
        ("nginx", "sslh-ev") | ("apache", "sslh-ev") => {
            json!({
                "outcome": "missing", "reason": "sslh-ev is not on PATH",
                "install": "sudo apt-get install sslh"
            })
        }
        _ => Value::Null,
    };
    let mut systems = vec![
        json!({"role": "client", "name": "native", "version": "0.1.0"}),
        json!({
            "role": "server", "name": server,
            "version": if server == "nginx" { "1.22.1" } else { "2.4.62" },
        }),
    ];
    if path == "haproxy-http" {
        systems.push(json!({"role": "relay", "name": path, "version": "2.6.12"}));
    }
    json!({
        "is_limit": path == "limit",
        "id": format!("{server}/{path}"), "axes": {"server": server, "path": path},
        "layer": "http", "workload": "crr",
        "path": {"device": "veth", "links": [{"mtu": 1500}, {"mtu": 1500}]},
        "parameters": {"operations": 2000, "connections": 5, "size": 4096},
        "systems": systems, "absent": absent,
    })
}

/// Systems as columns, a parameter as rows, and a third axis.
fn transport() -> Value {
    let mut cells = Vec::new();
    for size in ["64", "1024"] {
        for direction in ["client-reads", "client-writes"] {
            for library in ["libuv", "yasio"] {
                cells.push(json!({
                    "id": format!("{library}/{direction}/{size}"),
                    "layer": "tcp", "workload": "stream",
                    "path": {"device": "veth", "links": [{"mtu": 1500}, {"mtu": 1500}]},
                    "axes": {"library": library, "direction": direction, "size": size},
                    "parameters": {"size": 64},
                    "systems": [{"role": "client", "name": library, "version": null}], "absent": null,
                }));
            }
        }
    }
    let ids: Vec<&Value> = cells.iter().map(|cell| &cell["id"]).collect();
    json!({
        "name": "transport", "question": "How fast is each library?",
        "rounds": 3, "warmup_rounds": 0,
        "cells": cells,
        "tables": [{
            "name": "tcp", "title": "TCP", "metric": "gbit-per-second", "rows": "size", "columns": "library",
            "row_values": ["64", "1024"], "column_values": ["libuv", "yasio"], "cells": ids,
            "baseline": {"library": "libuv"}, "limit": null, "notes": [],
        }],
    })
}

/// Seven rounds; Apache's `limit` never ran, and `apache/iptables` not in the last round.
pub(super) fn trials() -> Vec<Unit> {
    let mut random = Pcg64::seed_from_u64(42);
    let mut trials: Vec<Value> = Vec::new();
    for round in 0..=ROUNDS {
        for (server, path, truth) in CELLS {
            let Some((seconds, cpu)) = truth.filter(|_| (server, path) != ("apache", "limit")) else {
                continue;
            };
            let id = format!("{server}/{path}");
            if (round, id.as_str()) == (ROUNDS, "apache/iptables") {
                continue;
            }
            trials.push(trial("proxy", &id, round, result(&mut random, &id, round, seconds, cpu)));
        }
    }
    let run = run();
    for cell in &run.suites[1].cells {
        for round in 1..=3 {
            let gbit = if cell.axes.get("library") == Some("libuv") { 9.0 } else { 7.5 };
            trials.push(trial(
                "transport",
                &cell.id,
                round,
                with_transport(&cell.id, round, bulk(&mut random, gbit)),
            ));
        }
    }
    read(&run, &trials)
}

/// The units of a run by these lines of its journal.
pub(super) fn read(run: &Run, lines: &[Value]) -> Vec<Unit> {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let journal = read_journal(run, "fixture", lines.join("\n").as_bytes()).unwrap();
    assert!(journal.warnings.is_empty() && journal.unknown == 0, "{:?}", journal.warnings);
    journal.units
}

/// The journal of a run that is the fixture's or a part of it, from units of the fixture.
pub(super) fn journal(run: &Run, units: &[Unit]) -> Journal {
    let fixture = self::run();
    let lines = units.iter().flat_map(|unit| journal::line(&fixture, unit).expect("it follows the model"));
    read_journal(run, "fixture", &lines.collect::<Vec<u8>>()[..]).unwrap()
}

/// A cell of the fixture's first suite by itself.
pub(super) fn alone(id: &str) -> Sides {
    Sides::One(run().suites[0].place(id).expect("it is planned"))
}

fn result(random: &mut Pcg64, id: &str, round: u32, seconds: f64, cpu: [f64; 3]) -> Value {
    let noise: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let disturbed = if (id, round) == ("nginx/iptables", 3) { 1.6 } else { 1.0 };
    let measured =
        web(seconds * (1.0 + 0.012 * noise) * disturbed, cpu, (id, round) == ("nginx/haproxy-http", 4));
    let failed = |stage: &str, reason: &str, log: &str| {
        let outcome = "failed";
        json!({"outcome": outcome, "stage": stage, "reason": reason, "log": log})
    };
    match id {
        "nginx/sslh-select" => with(measured, "errors", json!({"empty_reply": 3 + round})),
        "apache/sslh-select" => failed(
            "start",
            "not ready after 5 s",
            "sslh: bind: <Address> already in use | 0.0.0.0\nexiting\n",
        ),
        "apache/haproxy-http" if round == 2 || round == 5 => failed("verify", "page 7: wrong bytes", ""),
        _ => measured,
    }
}

fn web(seconds: f64, [client, relay, server]: [f64; 3], is_robbed: bool) -> Value {
    let nanos = |share: f64| (seconds * share * 1e9) as u64;
    let mean = nanos(1.0) * 5 / 2000;
    let mut cpu = json!({"client": nanos(client), "server": nanos(server)});
    if relay > 0.0 {
        cpu["relay"] = json!(nanos(relay));
    }
    let window = |number: u32, roles: Value, busy: f64, steal: f64| {
        json!({
            "cpu": number, "roles": roles, "total": nanos(1.0),
            "busy": nanos(busy.min(0.99)), "interrupts": nanos(0.09),
            "steal": nanos(steal),
        })
    };
    let [min, max] = [mean * 7 / 10, mean * 7 / 2];
    let latency = Histogram::from(Counts {
        pairs: vec![(min, 900), (mean, 900), (mean * 2, 180), (max, 20)],
        min,
        max,
    });
    json!({"outcome": "ok", "measurement": {
        "elapsed": nanos(1.0), "operations": 2000, "bytes": 2000 * 4096, "verified": 2000,
        "latency": latency, "cpu": cpu,
        "cpus": [
            window(0, json!(["client"]), client + 0.09, if is_robbed { 0.12 } else { 0.0 }),
            window(1, json!(["relay", "server"]), relay + server + 0.09, 0.0),
        ],
    }})
}

fn bulk(random: &mut Pcg64, gbit: f64) -> Value {
    let bytes = (gbit * 1e9 / 8.0 * random.random_range(0.97..1.03)) as u64;
    let window = json!({
        "cpu": 0, "roles": ["client"], "total": 1_000_000_000, "busy": 600_000_000,
        "interrupts": 0, "steal": 0
    });
    json!({"outcome": "ok", "measurement": {
        "elapsed": 1_000_000_000, "operations": 1, "bytes": bytes,
        "cpu": {"client": 550_000_000}, "cpus": [window],
        "flags": ["cpu-shared"],
    }})
}

/// Adds datagrams to one cell and TCP information to another, both with a series.
fn with_transport(id: &str, round: u32, measured: Value) -> Value {
    let sample = |step: u64, more: Value| {
        let mut sample =
            json!({"at_ns": step * 100_000_000, "operations": 80 + step, "bytes": (10 + 5 * step) << 20});
        for (name, value) in more.as_object().into_iter().flatten() {
            sample[name] = value.clone();
        }
        sample
    };
    match id {
        "yasio/client-writes/64" => {
            let lost = 20 + round;
            let datagrams = json!({
                "sent": 1_000, "received": 1_000 - lost, "lost": lost, "reordered": 1, "duplicates": 2
            });
            let series: Vec<Value> = (1..=5).map(|step| sample(step, json!({"lost": step - 1}))).collect();
            with(with(measured, "datagrams", datagrams), "series", json!(series))
        }
        "libuv/client-writes/64" => {
            let info = json!({
                "retransmits": 3, "rtt_us": 90, "min_rtt_us": 40, "cwnd": 10,
                "bytes_sent": 1_000_000, "bytes_retransmitted": 1_000,
            });
            let series: Vec<Value> =
                (1..=5).map(|step| sample(step, json!({"rtt_us": 50 + 10 * step}))).collect();
            with(with(measured, "tcp", json!({"client": info})), "series", json!(series))
        }
        _ => measured,
    }
}

fn with(mut result: Value, field: &str, value: Value) -> Value {
    result["measurement"][field] = value;
    result
}

/// Round 0 is the warm-up.
fn trial(suite: &str, cell: &str, round: u32, mut result: Value) -> Value {
    let window = result["measurement"]["elapsed"].as_u64().unwrap_or(0);
    let fixed = json!({
        "kind": "trial", "suite": suite, "cell": cell, "round": round.max(1), "warmup": round == 0,
        "at": u64::from(round) * 1_000_000_000,
        "stages": {
            "raise": 20_000_000, "start": 40_000_000, "verify": 5_000_000, "measure": window + 2_000_000,
            "stop": 9_000_000,
        },
    });
    if let (Some(result), Value::Object(fixed)) = (result.as_object_mut(), fixed) {
        result.extend(fixed);
    }
    result
}

/// Measurements of a cell's measured rounds, mutable.
pub(super) fn measurements<'a>(
    units: &'a mut [Unit],
    cell: &str,
) -> impl Iterator<Item = &'a mut Measurement> {
    let sides = alone(cell);
    let of_cell = units.iter_mut().filter(move |unit| unit.suite == 0 && unit.sides == sides && !unit.warmup);
    of_cell.filter_map(measurement)
}

/// The measurement of a cell by itself, mutable.
pub(super) fn measurement(unit: &mut Unit) -> Option<&mut Measurement> {
    match &mut unit.found {
        Found::Alone(measurement) => measurement.as_mut(),
        Found::Together(_) => None,
    }
}
