//! Open loops at shares of each row's own capacity.

use crate::common::{linerate, run};
use linerate::measurement::Run;
use std::fs;

#[test]
fn rates_are_shares_of_a_capacity_that_is_measured_once_for_each_row() {
    let (folder, out) = run("loops", &["loads"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let capacities = |text: &str| text.matches("/s in a closed loop").count();
    assert_eq!(capacities(&out.stderr), 2, "{}", out.stderr);
    let run: Run = serde_json::from_str(&folder.read("run.json")).unwrap();
    for cell in &run.suites[0].cells {
        let (capacity, load) = (cell.capacity.unwrap(), cell.parameters.load.unwrap());
        let rate = (capacity * load as f64 / 100.0).round() as u64;
        assert_eq!(cell.parameters.rate, Some(rate), "{}", cell.id);
        assert!(rate > 0, "{}", cell.id);
    }
    assert!(folder.read("report.html").contains("p99 latency by offered load"));
    let journal = folder.read("journal.jsonl");
    let cut: Vec<&str> = journal.lines().take(10).collect();
    fs::write(folder.path().join("journal.jsonl"), cut.join("\n") + "\n").unwrap();
    let resumed = linerate("loops", &["run", "--resume", folder.str()]);
    assert_eq!((resumed.status, capacities(&resumed.stderr)), (0, 0), "{}", resumed.stderr);
    assert_eq!(folder.read("journal.jsonl").lines().count(), journal.lines().count());
}

#[test]
fn a_load_is_no_part_of_a_comparison_of_builds() {
    let arms = ["--base", "env:A=1", "--head", "env:A=2", "--budget", "1m"];
    let out = linerate("loops", &[&["compare", "loads", "--only", "load/50/tic"][..], &arms].concat());
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("its rate is a share of its own capacity"), "{}", out.stderr);
}
