//! Where a difference comes from: planted causes are found by name, and equal servers name nothing.

mod planted;

use crate::commands::compare_within;
use crate::common::{Folder, Output};
use crate::{command, machine};
use planted::C;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The beginning of an answer, or words in it.
enum First {
    /// A function or a system call, with one of these parts of a name.
    Function(&'static [&'static str]),
    /// A hint or a note, with these words.
    Text(&'static str),
}

impl First {
    fn is_in(&self, name: &str, out: &Output) -> bool {
        match self {
            Self::Function(parts) => parts.iter().any(|part| name.contains(part)),
            Self::Text(words) => out.stdout.contains(words),
        }
    }
}

/// Seconds of a comparison before its profile, which has five more: two pairs of runs.
const BUDGET: u32 = 6;
/// A profile that knows the servers' difference no better than this share of it is too noisy for functions.
/// On a quiet machine planted causes have 0.1 to 0.16; where nothing was stolen and a debug build measured,
/// up to 1.2.
const NOISY: f64 = 0.25;

/// A program with planted causes (`scripts/experiments/why-table`).
struct Server {
    /// Its file and the text of it.
    source: (&'static str, &'static str),
    /// Programs that build or run it: the first for which `build` succeeds.
    programs: &'static [&'static str],
    build: &'static [&'static str],
    /// Its command line; that of nginx has the file of its settings after it.
    command: &'static str,
    /// [`BUDGET`], or more for a compiler that works meanwhile: warm-ups are a part of it.
    budget: u32,
}

impl Server {
    /// A folder with the server, and its command; `None`, with a message, where it cannot be built.
    fn ready(&self, name: &str) -> Option<(Folder, String)> {
        let folder = Folder::new(name);
        fs::create_dir_all(folder.path()).unwrap();
        let (file, text) = self.source;
        fs::write(folder.path().join(file), text).unwrap();
        let mut tried = Vec::new();
        for program in self.programs {
            let built = Command::new(program).args(self.build).current_dir(folder.path()).output();
            if built.as_ref().is_ok_and(|built| built.status.success()) {
                return Some((folder, self.command.replace("{program}", program)));
            }
            tried.push((program, built));
        }
        crate::common::skip(&format!("no program for {file}: {tried:?}"));
        None
    }

    /// The command of the server with settings: variables, or lines of a location of nginx.
    fn with(&self, settings: &str, command: &str, folder: &Folder, side: &str) -> String {
        let (file, text) = self.source;
        if file != "nginx.conf" {
            return format!("env SIDE={side} {settings} {command}");
        }
        let own = text.replace("{ SETTINGS }", &format!("{{ {settings} }}"));
        fs::write(folder.path().join(format!("{side}.conf")), own).unwrap();
        format!("{command} {side}.conf")
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

/// The answer of a comparison of which one side has a planted cause, with the name of the first function and
/// its cost. A profile of five seconds names none or an effect at times where the machine does other things,
/// so the comparison is made again, at most twice, each time with twice the seconds.
fn until_named(folder: &Folder, budget: u32, words: &[&str], expected: &First) -> (Output, String, f64) {
    let mut all = [1, 2, 4].into_iter().map(|times| {
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let budget = format!("{}s", budget * times);
        let out = compare_within(&budget, folder, &[words, &["-n", "v1", "-n", "v2", "--why"]].concat());
        assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
        let (name, difference) = first(&why(folder));
        (out, name, difference)
    });
    let mut last = all.next().unwrap();
    while !expected.is_in(&last.1, &last.0) {
        let Some(next) = all.next() else { break };
        last = next;
    }
    last
}

/// True where no function is named since others used the CPUs, or a hypervisor took them: the answer has a
/// warning, or the profile does not know the whole difference either.
fn is_disturbed(folder: &Folder, out: &Output, name: &str) -> bool {
    let cpu = &why(folder)["cpu"];
    let ends = [0, 1].map(|at| cpu["ci95"][at].as_f64().unwrap_or(0.0));
    let is_noisy = (ends[1] - ends[0]) / 2.0 > NOISY * cpu["difference_us"].as_f64().unwrap_or(0.0).abs();
    name.is_empty() && (is_noisy || out.stdout.contains("disturbed"))
}

#[test]
fn a_planted_function_is_the_first_line_and_is_shown_again_from_the_stored_run() {
    let Some(_machine) = machine() else { return };
    let Some((folder, _)) = C.ready("why-function") else { return };
    let expected = First::Function(&["audit_request"]);
    let (out, name, difference) =
        until_named(&folder, C.budget, &["./server", "env PLANT_US=6 ./server"], &expected);
    if is_disturbed(&folder, &out, &name) {
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
    let Some((folder, _)) = C.ready("why-write") else { return };
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
    let Some((folder, _)) = C.ready("why-equal") else { return };
    let words = ["./server", "env ./server", "-n", "v1", "-n", "v2"];
    let out = compare_within(&format!("{BUDGET}s"), &folder, &[&words[..], &["--why"]].concat());
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

/// Compares a server of other settings with itself: the answer has `expected` first.
fn is_first(name: &str, server: &Server, settings: [&str; 2], more: &[&str], expected: &First) {
    let Some(_machine) = machine() else { return };
    let Some((folder, command)) = server.ready(name) else { return };
    fs::create_dir_all(folder.path().join("www")).unwrap();
    for (file, lines) in [("page", 200), ("text", 9000)] {
        let text: Vec<String> =
            (0..lines).map(|at| format!("line {at} of {}\n", at * 7919 % 1_000_003)).collect();
        fs::write(folder.path().join("www").join(file), text.concat()).unwrap();
    }
    let [base, head] = [("base", settings[0]), ("head", settings[1])]
        .map(|(side, settings)| server.with(settings, &command, &folder, side));
    let words = [&[&*base, &*head, "--no-latency"][..], more].concat();
    let (out, name, _) = until_named(&folder, server.budget, &words, expected);
    if is_disturbed(&folder, &out, &name) && !expected.is_in(&name, &out) {
        return crate::common::skip("the machine is too noisy for a profile");
    }
    assert!(expected.is_in(&name, &out), "{name}\n{}", out.stdout);
}
