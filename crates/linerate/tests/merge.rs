//! `linerate merge`, over runs of the scripted lab.

mod common;

use common::{Folder, Output, assert_golden, complete as run, linerate};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn merge(arguments: &[&str]) -> Output {
    linerate("good", &[&["merge"], arguments].concat())
}

fn assert_refused(arguments: &[&str], parts: &[&str]) {
    let out = merge(arguments);
    assert_eq!((out.status, out.stdout.as_str()), (2, ""), "{arguments:?}: {}", out.stderr);
    for part in parts {
        assert!(out.stderr.contains(part), "{arguments:?} does not contain {part}: {}", out.stderr);
    }
}

fn all(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().unwrap().iter()
}

#[test]
fn three_hosts_make_one_report_with_median_range_and_disagreements() {
    let [a, b, c] = ["host-a", "host-b", "host-c"].map(|host| run(host, &["mini"]));
    // Another suite, on a host without a name.
    let loops = run("loops", &["loops", "--quick"]);
    let out = Folder::new("merge-out");
    let named = format!("loops={}", loops.str());
    let folders = [a.str(), b.str(), c.str(), &named];
    let merged = merge(&[&folders[..], &["--out", out.str()]].concat());
    assert_eq!(merged.status, 0, "{}", merged.stderr);
    assert_golden("merge.txt", &merged.stdout);
    assert_golden("merge-long.txt", &merge(&[&folders[..3], &["--long"]].concat()).stdout);
    assert_golden("merge.md", &out.read("report.md"));
    assert_golden("merge.csv", &out.read("report.csv"));
    assert!(out.read("report.html").contains("Hosts that disagree"));
    let report: Value = serde_json::from_str(&out.read("report.json")).unwrap();
    let hosts: Vec<&Value> = all(&report["hosts"]).map(|host| &host["name"]).collect();
    assert_eq!(hosts, ["host-a", "host-b", "host-c", "loops"]);
    let table = &report["suites"][0]["tables"][0];
    let pipe = all(&table["cells"]).find(|cell| cell["id"] == "fast/pipe").unwrap();
    // The rates of the hosts differ by four, their ratios do not: 0.5, 0.5 and, on host-c, 0.4.
    let over = &pipe["over_hosts"];
    let is_near = |value: &Value, truth: f64| (value.as_f64().unwrap() - truth).abs() < 0.01;
    assert!(is_near(&over["median"], 0.5) && is_near(&over["range"][0], 0.4), "{over}");
    assert_eq!(over["verdicts"]["slower"], 3);
    let apart: Vec<_> = all(&table["disagreements"]).map(|found| [&found["id"], &found["host"]]).collect();
    assert_eq!(apart, [["fast/pipe", "host-c"], ["slow/pipe", "host-b"]]);
}

#[test]
fn every_format_is_printed_and_equals_the_file() {
    let [a, b] = ["host-a", "host-b"].map(|host| run(host, &["mini", "--quick"]));
    let out = Folder::new("merge-formats");
    for format in ["md", "html", "json", "csv"] {
        let merged = merge(&[a.str(), b.str(), "--out", out.str(), "--format", format]);
        assert_eq!((merged.status, merged.stdout), (0, out.read(&format!("report.{format}"))), "{format}");
    }
}

#[test]
fn parts_of_a_suite_on_one_host_are_one_host() {
    let fast = run("host-a", &["mini", "--only", "fast/*"]);
    let slow = run("host-a", &["mini", "--only", "slow/*"]);
    let other = run("host-b", &["mini"]);
    let out = merge(&[fast.str(), other.str(), slow.str(), "--format", "json"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let report: Value = serde_json::from_str(&out.stdout).unwrap();
    let runs: Vec<_> = all(&report["hosts"])
        .map(|host| (host["name"].as_str().unwrap(), all(&host["runs"]).count()))
        .collect();
    assert_eq!(runs, [("host-a", 2), ("host-b", 1)]);
    let tables = &report["suites"][0]["tables"];
    assert_eq!((all(tables).count(), all(&tables[0]["cells"]).count()), (1, 6));
}

#[test]
fn a_packed_journal_is_merged() {
    let [a, b] = ["host-a", "host-b"].map(|host| run(host, &["mini", "--quick"]));
    let journal = fs::read(a.path().join("journal.jsonl")).unwrap();
    let packed = fs::File::create(a.path().join("journal.jsonl.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &journal).unwrap();
    packed.finish().unwrap();
    fs::remove_file(a.path().join("journal.jsonl")).unwrap();
    let out = merge(&[a.str(), b.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stdout.contains("host-a") && out.stdout.contains("host-b"), "{}", out.stdout);
}

#[test]
fn runs_that_do_not_fit_together_are_refused_with_the_next_step() {
    let a = run("host-a", &["mini"]);
    let again = Folder::new("merge-again");
    common::copy(a.path(), again.path());
    let quick = run("host-b", &["mini", "--quick"]);
    assert_refused(&["/nowhere"], &["/nowhere: there is no such folder"]);
    let tests = common::tests();
    assert_refused(&[tests.to_str().unwrap()], &["there is no run in it", "linerate run SUITE --out"]);
    let file = a.path().join("run.json");
    assert_refused(&[file.to_str().unwrap()], &["this is a file"]);
    let parent = Folder::new("merge-parent");
    common::copy(a.path(), &parent.path().join("one"));
    assert_refused(&[parent.str()], &["the runs are in its folders", "/*"]);
    assert_refused(&[a.str(), again.str()], &["both of the host `host-a`", "`fast/none`", "NAME="]);
    assert_eq!(merge(&[a.str(), &format!("other={}", again.str())]).status, 0);
    assert_refused(&[a.str(), quick.str()], &["suite `mini`", "parameters", "--quick"]);
    assert_refused(&[a.str(), "--out", quick.str()], &["contains a run"]);
    edit(again.path(), "6.1-scripted", "6.9-scripted");
    assert_refused(&[a.str(), again.str()], &["two machines or kernels", "host-a-2="]);
    edit(again.path(), "\"name\": \"host-a\"", "\"name\": \"host-d\"");
    edit(again.path(), "\"metric\": \"seconds\"", "\"metric\": \"p99-latency\"");
    assert_refused(&[a.str(), again.str()], &["the table `pipes` has other metric"]);
}

fn edit(folder: &Path, from: &str, to: &str) {
    let path = folder.join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replace(from, to)).unwrap();
}
