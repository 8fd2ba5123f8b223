//! The files of runs against each other: `report.json` against its schema, the page and the table for
//! spreadsheets against `report.json`. Runs of the scripted lab, and all that are published.

mod common;
#[path = "report/drawing.rs"]
mod drawing;
#[path = "report/element.rs"]
mod element;
#[path = "report/json.rs"]
mod json;
#[path = "report/numbers.rs"]
mod numbers;
#[path = "report/page.rs"]
mod page;
#[path = "report/schema.rs"]
mod schema;
#[allow(dead_code, reason = "gates use the rest of it")]
#[path = "gate/script.rs"]
mod script;

use common::{Folder, complete, linerate, published, run};
use element::Element;
use page::number;
use script::Script;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::{fs, iter, thread};

fn report(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("report.json")).unwrap()).unwrap()
}

fn html(folder: &Path) -> Element {
    Element::page(&fs::read_to_string(folder.join("report.html")).unwrap())
}

fn check(folder: &Path) {
    let (report, page) = (report(folder), html(folder));
    json::check_schema("report.schema.json", &report);
    json::check_numbers(&report);
    json::check_csv(&fs::read_to_string(folder.join("report.csv")).unwrap(), &report);
    page::check_structure(&page);
    page::check_numbers(&page, &report);
    let (status, text) = printed("rows.py", &[], folder);
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn the_files_of_a_scripted_run_agree() {
    for script in ["good", "fails", "loops", "leaks", "truth", "paths", "again", "interrupted"] {
        let suite = if ["good", "fails", "interrupted"].contains(&script) { "mini" } else { script };
        let (folder, out) = run(script, &[suite]);
        assert_eq!(out.status, if script == "interrupted" { 130 } else { 0 }, "{}", out.stderr);
        check(folder.path());
    }
    check(complete("good", &["mini", "--quick", "--rounds", "2"]).path());
    check(complete("good", &["mini", "--only", "fast/pipe", "--probe"]).path());
}

#[test]
fn the_files_of_a_published_run_agree() {
    let runs = Mutex::new(published::runs().into_iter());
    let next = || runs.lock().unwrap().next();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| iter::from_fn(next).for_each(|run| check_published(&run)));
        }
    });
}

fn check_published(run: &Path) {
    let folder = Folder::new(&format!("report-{}", run.file_name().unwrap().to_string_lossy()));
    common::copy(run, folder.path());
    let out = linerate("good", &["report", folder.str(), "--out", folder.str()]);
    // Each line of the journal is one that today's program reads.
    let made = format!("report: {}/report.md (also .html, .json, .csv)\n", folder.str());
    assert_eq!((out.status, out.stderr), (0, made), "{}", run.display());
    let report = report(folder.path());
    assert_eq!(report["run"]["flags"], json!([]), "{}", run.display());
    check(folder.path());
    // No verdict is denied by the journal, and few pairs have data that deny each other.
    let name = run.file_name().unwrap().to_str().unwrap();
    let percent = MORE.iter().find(|(run, _)| *run == name).map_or("5", |(_, percent)| percent);
    let (status, text) = recomputed(folder.path(), percent);
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn a_run_is_published_if_the_readme_lists_it_and_then_it_has_all_its_files() {
    let results = Folder::new("report-results");
    let of_user = results.path().join("2126-01-01T000000");
    fs::create_dir_all(&of_user).unwrap();
    fs::write(of_user.join("run.json"), "{").unwrap();
    let listed = results.path().join("2126-01-01-epyc");
    common::copy(complete("good", &["mini", "--quick"]).path(), &listed);
    fs::write(results.path().join("README.md"), "| [a run](2126-01-01-epyc/report.md) | quick |\n").unwrap();
    assert_eq!(published::runs_in(results.path()), Ok(vec![listed.clone()]));
    for file in ["journal.jsonl", "run.json"] {
        fs::remove_file(listed.join(file)).unwrap();
        let fault = published::runs_in(results.path()).unwrap_err();
        assert!(fault.contains("2126-01-01-epyc") && fault.ends_with(&format!("has no {file}")), "{fault}");
    }
}

/// The table between the marks has the rows of the run that it links to, and the values of the first example
/// divide to its ratio.
#[test]
fn the_readme_has_the_rows_of_its_run_and_an_example_that_divides() {
    let root = common::tests().join("../../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (block, _) = readme.split_once("<!-- linerate:end -->").unwrap();
    let (before, block) = block.split_once("<!-- linerate:table ").unwrap();
    let run = regex::Regex::new(r"\((results/[^/)]+)/").unwrap().captures(block).unwrap()[1].to_owned();
    let folder = Folder::new("report-readme");
    common::copy(&root.join(run), folder.path());
    let out = linerate("good", &["report", folder.str(), "--format", "md"]);
    let rows: Vec<&str> = block.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 3 && out.stdout.contains(&rows.join("\n")), "`make reports` writes it: {rows:#?}");

    let line = before.lines().find(|line| line.trim_start().starts_with("requests/s")).unwrap();
    let words: Vec<f64> =
        line.split_whitespace().filter_map(|word| word.replace(',', "").parse().ok()).collect();
    let [plain, dev, change, ..] = words[..] else { panic!("{line}") };
    let quotient = (dev / plain - 1.0) * 100.0;
    assert!((quotient - change).abs() < 0.6, "{quotient} %: {line}");
}

/// Reports name suites, commands and scripts of this repository as their repetition.
#[test]
fn the_command_of_each_published_run_works() {
    let root = common::tests().join("../../..");
    for folder in published::runs() {
        let run: Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
        let command = run["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        match words[..] {
            ["linerate", "compare", ..] => {}
            ["linerate", "run", ref rest @ ..] => {
                let suites = rest.iter().take_while(|word| !word.starts_with('-'));
                let is_there =
                    |name: &&str| *name == "all" || root.join(format!("suites/{name}.toml")).exists();
                assert!(suites.clone().count() > 0 && suites.clone().all(is_there), "{command}");
            }
            _ => assert!(root.join(words[0]).is_file(), "{command}"),
        }
    }
}

/// The picture of README.md is what `--export-svg` writes of the published example.
#[test]
fn the_picture_in_the_readme_is_that_of_its_run() {
    let root = common::tests().join("../../..");
    let folder = Folder::new("report-picture");
    common::copy(&root.join("results/2026-11-29-xeon-2cpu-example"), folder.path());
    let out = linerate("good", &["report", folder.str(), "--format", "svg"]);
    let picture = root.join("docs/answer.svg");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&picture, &out.stdout).unwrap();
    }
    assert!(out.stdout.starts_with("<svg") && out.stdout.contains("dev is 41 % slower than plain"));
    assert!(fs::read_to_string(&picture).unwrap_or_default() == out.stdout, "UPDATE_GOLDEN=1 writes it");
}

/// Percent of the pairs that contradict themselves: in a run beside other guests of the hypervisor, and in a
/// quick one that results/README.md describes. None of these pairs has a verdict.
const MORE: [(&str, &str); 2] =
    [("2026-11-26-epyc-2cpu-published", "10"), ("2026-11-28-epyc-2cpu-quick", "25")];

/// The exit status of `scripts/recompute` and what it prints.
fn recomputed(folder: &Path, percent: &str) -> (Option<i32>, String) {
    printed("recompute", &["--at-most", percent], folder)
}

/// The exit status of a script and what it prints.
fn printed(script: &str, options: &[&str], folder: &Path) -> (Option<i32>, String) {
    let script = common::tests().join("../../../scripts").join(script);
    let mut python = Command::new("python3");
    // No compiled module is left in the repository.
    let out = python.arg("-B").arg(script).args(options).arg(folder).output().expect("python3 is installed");
    (out.status.code(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

#[test]
fn experiments_count_how_often_runs_agree_and_how_often_equal_cells_differ() {
    let folders = ["repeat-1", "repeat-2"].map(Folder::new);
    for (folder, seed) in folders.iter().zip(["7", "8"]) {
        linerate("good", &["run", "mini", "--seed", seed, "--out", folder.str()]);
    }
    let [one, two] = &folders;
    let json = one.path().join("pairs.json").display().to_string();
    let (status, text) = printed("experiments/repeat", &["--json", &json, one.str()], two.path());
    let pair = "| mini:fast/pipe, fast/none | in turns | ";
    assert!(status == Some(0) && text.contains(pair) && text.contains("| 2 of 2 |"), "{text}");
    let pairs: Value = serde_json::from_str(&one.read("pairs.json")).unwrap();
    assert_eq!((&pairs[0]["cell"], &pairs[0]["rate"]["runs"]), (&json!("fast/pipe"), &json!(2)));
    let (status, text) = printed("experiments/repeat", &[], two.path());
    assert_eq!(status, Some(2), "{text}");
    let (status, text) = printed("experiments/calibrate", &[one.str()], two.path());
    let alarms = "| nothing | 6 units | 4 | 0 | 0 | 4 | 0.0% (0.0% to 60.2%) |";
    assert!(status == Some(0) && text.contains(alarms), "{text}");
}

#[test]
fn a_ratio_that_is_not_that_of_the_journal_is_found() {
    let folder = complete("good", &["mini"]);
    let (status, text) = recomputed(folder.path(), "5");
    assert_eq!(status, Some(0), "{text}");
    let mut report = report(folder.path());
    report["suites"][0]["tables"][0]["cells"][1]["vs_baseline"]["ratio"] = json!(0.75);
    fs::write(folder.path().join("report.json"), report.to_string()).unwrap();
    let (status, text) = recomputed(folder.path(), "5");
    assert!(status == Some(1) && text.contains("the report has 0.7500"), "{text}");
}

#[test]
fn a_row_whose_values_do_not_divide_to_its_ratio_is_found_in_each_format_and_so_is_its_bar() {
    let folder = complete("good", &["mini"]);
    let changed = |file: &str, from: &str, to: &str, fault: &str| {
        let path = folder.path().join(file);
        let whole = fs::read_to_string(&path).unwrap();
        let text = regex::Regex::new(from).unwrap().replace(&whole, to).into_owned();
        assert!(text != whole, "{from} is not in {file}");
        fs::write(&path, &text).unwrap();
        let (status, printed) = recomputed(folder.path(), "5");
        assert!(status == Some(1) && printed.contains(fault), "{fault}: {printed}");
        fs::write(&path, whole).unwrap();
    };
    // Half of the performance of fast/none, which has 9,950 requests a second.
    changed("report.html", r"4,983 \(", "4,783 (", "it shows 4,783");
    changed("report.html", r"--v:49\.3%", "--v:30.5%", "its bar has 30.5 %");
    changed("report.html", r">5\.4(\d*)x \(", ">4.4${1}x (", "it shows a CPU time of ");
    changed("report.csv", r"4983\.", "4783.", "its values in report.csv divide to 0.4806");
    changed("report.json", r#""value": 4983\."#, r#""value": 4783."#, "its value is 4783");
    assert_eq!(recomputed(folder.path(), "5").0, Some(0));
}

#[test]
fn a_page_of_a_gate_and_of_several_hosts_is_whole_without_a_script() {
    let folder = Folder::new("report-gate");
    let script = Script::new("report").cell("fast/pipe@head", 0.208, 0.003);
    let arms = ["--base", "set:buffer=16384", "--head", "set:buffer=4096"];
    let args = ["gate", "mini", "--only", "*/pipe", "--seed", "7", "--out", folder.str()];
    assert_eq!(script.run(&[&args[..], &arms].concat()).status, 1);
    check(folder.path());

    let [a, b] = ["host-a", "host-b"].map(|host| complete(host, &["mini"]));
    let merged = Folder::new("report-merged");
    let out = linerate("good", &["merge", a.str(), b.str(), "--out", merged.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    json::check_schema("merge.schema.json", &report(merged.path()));
    page::check_structure(&html(merged.path()));
}

#[test]
fn the_numbers_of_a_scripted_run_are_those_of_its_script() {
    let folder = complete("good", &["mini"]);
    let report = report(folder.path());
    let suite = &report["suites"][0];
    let cell = |id: &str| {
        let cells = page::array(suite, "cells").iter();
        cells.clone().find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("{id}"))
    };
    let none = cell("fast/none");
    // The script has seconds for 1000 requests.
    assert_eq!(none["values"], json!([0.1, 0.102, 0.101, 0.099, 0.1, 0.103].map(|seconds| 1e3 / seconds)));
    assert_eq!(none["ci95"], json!([1e3 / 0.103, 1e3 / 0.099]));
    assert!((number(&none["value"]) / (1e3 / 0.1005) - 1.0).abs() < 1e-4, "{none}");
    assert_eq!((&none["vs_baseline"], &none["operations"]), (&Value::Null, &json!(6000)));
    for (role, cost) in [("client", 50.0), ("server", 60.0), ("machine", 110.0)] {
        assert_eq!(none["cpu"][role], json!({"us_per_op": cost, "ci95": [cost, cost]}));
    }
    // 0.1005 s for 1000 requests by five connections.
    assert!((number(&none["latency_us"]["mean"]) / 502.5 - 1.0).abs() < 0.01);
    let pipe = cell("fast/pipe");
    let compared = &pipe["vs_baseline"];
    assert_eq!((&compared["with"], &compared["verdict"]), (&json!("fast/none"), &json!("slower")));
    assert_eq!((&compared["n"], &compared["duet"]["sharing"]), (&json!(12), &json!("turns")));
    assert!((number(&compared["ratio"]) / 0.5 - 1.0).abs() < 0.005, "{compared}");
    let [low, high] = page::interval(&compared["ci95"]);
    assert!(low > 0.495 && high < 0.505, "{compared}");
    // Of 300 us in all, instead of 110, for 997 of 1000 requests; both by turns.
    assert!((number(&compared["duet"]["cpu_ratio"]) / 5.45 - 1.0).abs() < 0.01, "{compared}");
    assert_eq!((&pipe["bound_by"], &pipe["errors"]), (&json!("relay"), &json!({"empty_reply": 18})));
    assert_eq!(pipe["vs_limit"]["with"], "fast/none");
    let hose = cell("slow/hose");
    assert_eq!((&hose["outcome"], &hose["n"], &hose["value"]), (&json!("missing"), &json!(0), &Value::Null));
    assert!(page::text(hose, "detail").contains("install"), "{hose}");
    let aa = &suite["tables"][0]["aa"];
    assert_eq!((&aa["with"], &aa["ratio"]), (&json!("fast/none"), &json!(1.0)));
    let run = &report["run"];
    assert_eq!((&run["rounds"], &run["complete"], &run["seed"]), (&json!(6), &json!(true), &json!(7)));
    assert_eq!(run["command"], "linerate run --seed 7 mini");
    let spent: f64 = run["stage_seconds"].as_object().unwrap().values().map(number).sum();
    assert!((spent + number(&run["measuring_seconds"]) - number(&run["wall_seconds"])).abs() < 1e-9);
}
