//! Open loops at shares of each row's own capacity.

use crate::common::{linerate, run};
use linerate::measurement::{PlannedCell, Run};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn rates_are_shares_of_a_capacity_that_is_measured_once_for_each_row() {
    let (folder, out) = run("loops", &["loads"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let cells = || serde_json::from_str::<Run>(&folder.read("run.json")).unwrap().suites.remove(0).cells;
    let capacities = |cells: Vec<PlannedCell>| {
        cells.iter().filter_map(|cell| cell.capacity).map(f64::to_bits).collect::<BTreeSet<_>>()
    };
    let measured = capacities(cells());
    assert!(!measured.is_empty(), "{}", out.stderr);
    for cell in &cells() {
        let (capacity, load) = (cell.capacity.unwrap(), cell.parameters.load.unwrap());
        let rate = (capacity * load as f64 / 100.0).round() as u64;
        assert_eq!(cell.parameters.rate, Some(rate), "{}", cell.id);
        assert!(rate > 0, "{}", cell.id);
    }
    assert!(folder.read("report.html").contains("p99 latency by offered load"));
    // Rows of different rates have no rank in any form.
    let report: serde_json::Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    let entries = report["suites"][0]["tables"][0]["cells"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["vs_baseline"].is_null() && !entry["value"].is_null()));
    for text in [out.stdout, folder.read("report.md").split("How to read it").next().unwrap().to_owned()] {
        assert!(text.contains("Not ranked: ") && !text.contains(['▲', '▼', '△', '▽']), "{text}");
    }
    let journal = folder.read("journal.jsonl");
    let cut: Vec<&str> = journal.lines().take(10).collect();
    fs::write(folder.path().join("journal.jsonl"), cut.join("\n") + "\n").unwrap();
    let resumed = linerate("loops", &["run", "--resume", folder.str()]);
    assert_eq!((resumed.status, capacities(cells())), (0, measured), "{}", resumed.stderr);
    assert_eq!(folder.read("journal.jsonl").lines().count(), journal.lines().count());
}

#[test]
fn a_load_is_no_part_of_a_comparison_of_builds() {
    let arms = ["--base", "env:A=1", "--head", "env:A=2", "--budget", "1m"];
    let out = linerate("loops", &[&["compare", "loads", "--only", "load/50/tic"][..], &arms].concat());
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("its rate is a share of its own capacity"), "{}", out.stderr);
}
