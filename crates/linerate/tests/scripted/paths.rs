//! Paths as data, from the suite to the report.

use crate::assert_golden;
use crate::common::{linerate, run};

#[test]
fn a_path_is_in_plan_journal_and_report() {
    let plan = linerate("paths", &["plan", "paths", "--seed", "7"]);
    assert_golden("paths-plan.txt", &plan.stdout);
    let (folder, out) = run("paths", &["paths"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("paths.md", &folder.read("report.md"));
    let json: serde_json::Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    let path = &json["suites"][0]["cells"][1]["path"];
    let (description, means) = (path["description"].as_str().unwrap(), path["means"].as_str());
    assert!(description.starts_with("veth, 2 routers; up 20 ms, 1 Mbit/s"), "{description}");
    assert_eq!(means, Some("scripted"));
    let trials = folder.trials();
    assert!(trials.iter().all(|trial| trial.measurement().unwrap().wires[0].link == 1));
    assert!(folder.read("journal.jsonl").lines().all(|line| !line.contains("duet")), "no pair is in duet");
}
