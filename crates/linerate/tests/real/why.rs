//! Where a difference comes from: planted causes in a server in C are found by name, and equal servers name
//! nothing.

use crate::commands::{compare, compare_within};
use crate::common::{Folder, Output};
use crate::{command, machine};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A file of the experiment with planted causes (`scripts/experiments/why-table`).
macro_rules! source {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../scripts/experiments/why-servers/", $name)))
    };
}

/// A folder with the server; `None`, with a message, without a compiler.
fn workplace(name: &str) -> Option<Folder> {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.path()).unwrap();
    let (file, text) = source!("server.c");
    fs::write(folder.path().join(file), text).unwrap();
    let built = Command::new("cc")
        .args(["-O2", "-fomit-frame-pointer", "-pthread", "-o", "server", "server.c"])
        .current_dir(folder.path())
        .status();
    match built {
        Ok(status) if status.success() => Some(folder),
        other => {
            crate::common::skip(&format!("no compiler of C: {other:?}"));
            None
        }
    }
}

fn why(folder: &Folder) -> Value {
    let report: Value = serde_json::from_str(&folder.read("out/report.json")).unwrap();
    report["comparison"]["cells"][0]["why"].clone()
}

fn first(why: &Value) -> (String, f64) {
    let function = &why["functions"][0];
    (
        function["name"].as_str().unwrap_or_default().to_owned(),
        function["difference_us"].as_f64().unwrap_or(0.0),
    )
}

/// The answer of a comparison of which one side has a planted function, with the name of the first function
/// and its cost. A profile of four seconds names none at times where the machine does other things, so the
/// comparison is made again, at most twice.
fn until_named(compared: impl Fn(u32) -> (Folder, Output)) -> (Folder, Output, String, f64) {
    let mut all = (1..=3).map(|number| {
        let (folder, out) = compared(number);
        assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
        let (name, difference) = first(&why(&folder));
        (folder, out, name, difference)
    });
    let mut last = all.next().unwrap();
    while last.2.is_empty() {
        let Some(next) = all.next() else { break };
        last = next;
    }
    last
}

/// True where no function is named since others used the CPUs.
fn is_disturbed(out: &Output, name: &str) -> bool {
    name.is_empty() && out.stdout.contains("disturbed")
}

#[test]
fn a_planted_function_is_the_first_line_and_is_shown_again_from_the_stored_run() {
    let Some(_machine) = machine() else { return };
    if workplace("why-function-1").is_none() {
        return;
    }
    let (folder, out, name, difference) = until_named(|number| {
        let folder = workplace(&format!("why-function-{number}")).unwrap();
        let words = ["./server", "env PLANT_US=6 ./server", "-n", "v1", "-n", "v2", "--why"];
        let out = compare(&folder, &words);
        (folder, out)
    });
    if is_disturbed(&out, &name) {
        return crate::common::skip("others used the CPUs");
    }
    assert!(name == "audit_request" && difference > 0.0, "{}", out.stdout);
    let line = out.stdout.lines().find(|line| line.trim_start().starts_with("why ")).unwrap_or_default();
    assert!(line.contains("audit_request") && line.contains("0.0 -> "), "{}", out.stdout);
    let is_of_answer = |line: &&str| !line.trim_start().starts_with("warning: ");
    assert!(out.stdout.lines().take_while(is_of_answer).count() <= 14, "{}", out.stdout);
    let again = Output::run(command(&["report", "out"]).current_dir(folder.path()));
    assert!(again.stdout.contains(line), "{}", again.stdout);
    let page = folder.read("out/report.html");
    assert!(
        page.matches("data:image/svg+xml;base64,").count() == 3 && page.len() < 1_500_000,
        "{}",
        page.len()
    );
}

#[test]
fn one_more_write_for_each_response_is_told_as_a_segment_and_a_system_call() {
    let Some(_machine) = machine() else { return };
    let Some(folder) = workplace("why-write") else { return };
    let words = ["./server", "env WRITES=2 ./server", "-n", "v1", "-n", "v2", "--why"];
    let out = compare_within("20s", &folder, &words);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    // Where the machine is too noisy for a certain cost, no function is named; the count is certain.
    let (name, why) = (first(&why(&folder)).0, why(&folder));
    assert!(name.is_empty() || name.starts_with("write(2)"), "{why}");
    assert!(out.stdout.contains("write(2) 1.0"), "{}", out.stdout);
    assert!(out.stdout.contains("TCP segments 2.0"), "{}", out.stdout);
    assert!(!out.stdout.contains("such as a log"), "they are packets: {}", out.stdout);
}

#[test]
fn equal_servers_name_nothing() {
    let Some(_machine) = machine() else { return };
    let Some(folder) = workplace("why-equal") else { return };
    let words = ["./server", "env ./server", "-n", "v1", "-n", "v2"];
    let out = compare(&folder, &[&words[..], &["--why"]].concat());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let why = why(&folder);
    assert_eq!(why["functions"].as_array().map(Vec::len), Some(0), "{why}");
    assert!(out.stdout.contains("no function needs more or less CPU"), "{}", out.stdout);
}

#[test]
fn a_row_of_a_suite_is_explained_beside_its_baseline() {
    let Some(_machine) = machine() else { return };
    let folder = Folder::new("why-suite");
    let words = ["run", "proxy", "--only", "nginx/haproxy-tcp", "--quick", "--rounds", "1", "--why"];
    let out = Output::run(command(&words).args(["--out", folder.str()]));
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let report: Value = serde_json::from_str(&folder.read("report.json")).unwrap();
    let reason = &report["suites"][0]["reasons"][0];
    assert_eq!([&reason["id"], &reason["baseline"]], ["nginx/haproxy-tcp", "nginx/direct"]);
    // The proxy connects to the server once for each connection of a client.
    let calls = reason["calls"].as_array().unwrap();
    assert!(calls.iter().any(|call| call["name"] == "connect(2)"), "{calls:?}");
    assert!(out.stdout.contains("why nginx/haproxy-tcp beside nginx/direct: "), "{}", out.stdout);
    assert!(folder.read("report.md").contains("| nginx/direct | "), "the counts of both rows");
    let again = Output::run(command(&["report", folder.str()]).arg("--long"));
    assert!(again.stdout.contains("System calls and packets for an operation"), "{}", again.stdout);
    assert_eq!(folder.read("report.html").matches("data:image/svg+xml;base64,").count(), 3);
}

/// The first line of a server in Python or Node.js, with a planted function and without.
fn first_of(name: &str, (file, text): (&str, &str), command: &str) -> Option<(Output, String)> {
    let program = command.split(' ').next().unwrap_or_default();
    if !Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success()) {
        crate::common::skip(&format!("no {program}"));
        return None;
    }
    let (_folder, out, name, _) = until_named(|number| {
        let folder = Folder::new(&format!("{name}-{number}"));
        fs::create_dir_all(folder.path()).unwrap();
        fs::write(folder.path().join(file), text).unwrap();
        let planted = format!("env PLANT_US=12 {command}");
        let out = compare_within("20s", &folder, &[command, &planted, "-n", "v1", "-n", "v2", "--why"]);
        (folder, out)
    });
    Some((out, name))
}

#[test]
fn a_planted_function_of_python_is_the_first_line() {
    let Some(_machine) = machine() else { return };
    // Python has names of functions from 3.12 on.
    let all = ["python3.13", "python3.12", "python3"];
    let has_names = |program: &&str| {
        let check = "import sys; sys.exit(sys.version_info < (3, 12))";
        Command::new(program).args(["-c", check]).status().is_ok_and(|status| status.success())
    };
    let Some(python) = all.into_iter().find(has_names) else { return crate::common::skip("no Python 3.12") };
    let found = first_of("why-python", source!("server.py"), &format!("{python} server.py"));
    let Some((out, name)) = found else { return };
    assert!(is_disturbed(&out, &name) || name.starts_with("audit_request:"), "{name}\n{}", out.stdout);
}

#[test]
fn a_planted_function_of_node_is_the_first_line() {
    let Some(_machine) = machine() else { return };
    // One that does not wait for its clock, which is a function of Node's own.
    let server = r"
const plant = Number(process.env.PLANT_US || 0) * 2500;
function auditRequest() {
  let sum = 1;
  for (let i = 0; i < plant; i++) sum = (sum * 31 + i) | 0;
  return sum;
}
require('http').createServer((request, answer) => {
  if (plant) request.sum = auditRequest();
  answer.end('hello');
}).listen(Number(process.env.PORT), '127.0.0.1');
";
    let found = first_of("why-node", ("server.js", server), "node server.js");
    let Some((out, name)) = found else { return };
    // Its compiler may put the function into the one that calls it.
    assert!(is_disturbed(&out, &name) || name.contains("server.js:"), "{name}\n{}", out.stdout);
}
