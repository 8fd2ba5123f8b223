//! The whole tool on the scripted lab: no network, no root, the same output every time.

mod common;
#[path = "scripted/loads.rs"]
mod loads;
#[path = "scripted/mix.rs"]
mod mix;
#[path = "scripted/paths.rs"]
mod paths;
#[path = "scripted/place.rs"]
mod place;
#[path = "scripted/stopping.rs"]
mod stopping;
#[path = "scripted/terminal.rs"]
mod terminal;

use common::{Folder, Output, assert_golden, linerate, run, tests};
use flate2::write::GzEncoder;
use linerate_contract::Role;
use std::fs;
use std::io::Write;
use std::process::Command;

#[test]
fn a_run_makes_the_tables_and_the_files() {
    let (folder, out) = run("good", &["mini"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("run.txt", &out.stdout);
    assert_golden("long.txt", &linerate("good", &["report", folder.str(), "--long"]).stdout);
    assert_golden("report.md", &folder.read("report.md"));
    assert_golden("report.csv", &folder.read("report.csv"));
    assert!(folder.read("report.html").contains("fast/pipe"));
    // 4 cells x (1 + 6 rounds) and 3 pairs x 12 units
    assert_eq!(folder.read("journal.jsonl").lines().count(), 64);
    assert_eq!(folder.read("journal.jsonl").matches(r#""sharing":"turns""#).count(), 36);
}

#[test]
fn a_probe_finds_how_much_of_the_rate_each_role_decides() {
    let folder = Folder::new("probe");
    let args = ["run", "mini", "--seed", "7", "--only", "fast/pipe", "--probe", "--out", folder.str()];
    let out = linerate("good", &args);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("probe.txt", &out.stdout);
    let report = folder.report();
    let cell = report.suites[0].cells.iter().find(|cell| cell.id == "fast/pipe").unwrap();
    for (role, truth) in [(Role::Client, 0.06), (Role::Relay, 0.9), (Role::Server, 0.0)] {
        let found = &cell.sensitivity[&role];
        assert!(found.n == 12 && (found.value - truth).abs() < 0.03, "{role}: {found:?}");
    }
    // 3 roles and 2, each with 12 units
    let probes = |journal: &str| journal.lines().filter(|line| line.contains("\"probe\":{")).count();
    assert_eq!(probes(&folder.read("journal.jsonl")), 60);
    // A run that was cut off goes on with its probes.
    let cut: Vec<String> = folder.read("journal.jsonl").lines().take(40).map(str::to_owned).collect();
    fs::write(folder.path().join("journal.jsonl"), cut.join("\n") + "\n").unwrap();
    assert_eq!(linerate("good", &["run", "--resume", folder.str()]).status, 0);
    assert_eq!(probes(&folder.read("journal.jsonl")), 60);
    assert!(folder.read("run.json").contains("--probe"));
}

#[test]
fn loops_are_measured_by_themselves_in_bytes_and_on_threads() {
    let (_folder, out) = run("loops", &["loops"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("loops.txt", &out.stdout);
    let out = linerate("loops", &["plan", "loops", "--quick"]).stdout;
    assert!(out.contains("stream/65536/tic") && !out.contains("stream/1024/tic"), "{out}");
    assert!(!out.contains("dispatch"), "{out}");
}

#[test]
fn growth_of_the_servers_resource_usage_is_shown_and_a_leak_is_flagged() {
    let (folder, out) = run("leaks", &["leaks"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("leaks.txt", &out.stdout);
    let usage = |trial: &common::Named| trial.measurement().unwrap().usage.unwrap();
    let journal = folder.trials();
    let leaking = journal.iter().find(|trial| trial.id == "crr/8/tac").unwrap();
    assert_eq!((usage(leaking).before.descriptors, usage(leaking).after.descriptors), (9, 2010));
    assert!(folder.read("report.json").contains("\"leak (2001 more descriptors after 2000 connections)\""));
}

#[test]
fn a_wrong_report_is_an_error_and_neither_fast_nor_slow() {
    let (folder, out) = run("truth", &["truth"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("truth.txt", &out.stdout);
    assert_golden("truth.csv", &folder.read("report.csv"));
    let json = folder.read("report.json");
    assert!(json.contains("\"accuracy\": \"wrong\"") && json.contains("\"truth_tolerance\": 0.1"));
    assert!(!json.contains("\"faster\"") && !json.contains("\"q\"") && !json.contains("\"verdict\""));
    assert!(folder.read("report.md").contains("times the truth"));
    assert!(folder.read("report.html").contains("<td class=\"ratio wrong\""));
}

#[test]
fn a_report_needs_no_second_run() {
    let (folder, _) = run("good", &["mini"]);
    let first = folder.read("report.json");
    fs::remove_file(folder.path().join("report.json")).unwrap();
    let out = linerate("good", &["report", folder.str(), "--format", "json"]);
    assert_eq!((out.status, out.stdout.as_str()), (0, first.as_str()));
    linerate("good", &["report", folder.str(), "--out", folder.str()]);
    assert_eq!(folder.read("report.json"), first);
}

#[test]
fn the_plan_shows_the_order_that_the_run_takes() {
    let plan = linerate("good", &["plan", "mini", "--seed", "7"]);
    assert_eq!(plan.status, 0, "{}", plan.stderr);
    assert_golden("plan.txt", &plan.stdout);
    let (folder, _) = run("good", &["mini"]);
    let ran: Vec<String> = folder.trials().iter().map(|trial| trial.id.clone()).collect();
    let is_trial = |line: &&str| line.starts_with("    ") && !line.contains(" | ");
    let planned = plan.stdout.lines().filter(is_trial);
    let planned: Vec<&str> = planned.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ran, planned);
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    let order = |seed: &str| linerate("good", &["plan", "mini", "--seed", seed]).stdout;
    assert_eq!(order("1"), order("1"));
    assert_ne!(order("1"), order("2"));
}

#[test]
fn a_failure_is_a_row_with_stage_reason_and_log_and_the_run_goes_on() {
    let (folder, out) = run("fails", &["mini"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_golden("fails.txt", &out.stdout);
    // Three failures are enough for a cell that never succeeds: it is not tried a fourth time.
    let tries = |cell: &str| folder.trials().iter().filter(|t| t.id == cell).count();
    assert_eq!((tries("slow/none"), tries("fast/pipe")), (3, 7));
}

#[test]
fn ctrl_c_reports_what_there_is_and_resume_makes_the_rest() {
    let ((whole, _), (cut, out)) = (run("good", &["mini"]), run("interrupted", &["mini"]));
    assert_eq!(out.status, 130, "{}", out.stderr);
    assert!(out.stdout.contains(" none  10,000"), "{}", out.stdout);
    assert!(out.stderr.contains("--resume"), "{}", out.stderr);
    assert_eq!(cut.trials().len(), 7);
    let out = linerate("good", &["run", "--resume", cut.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let ids = |folder: &Folder| folder.trials().iter().map(|t| (t.id.clone(), t.number)).collect::<Vec<_>>();
    assert_eq!(ids(&cut), ids(&whole));
}

#[test]
fn a_lost_lab_ends_the_run_with_status_3_and_loses_nothing() {
    let (folder, out) = run("lost", &["mini"]);
    assert_eq!(out.status, 3, "{}", out.stderr);
    assert!(out.stderr.contains("the lab has ended"), "{}", out.stderr);
    assert_eq!(folder.trials().len(), 7);
    assert!(folder.read("report.json").contains("fast/none"));
    assert_eq!(linerate("good", &["run", "--resume", folder.str()]).status, 0);
}

#[test]
fn only_keeps_the_baselines_of_the_selected_cells() {
    let out = linerate("good", &["plan", "mini", "--only", "*/pipe", "--rounds", "1"]);
    for cell in ["fast/pipe", "slow/pipe", "fast/none", "slow/none"] {
        assert!(out.stdout.contains(cell), "{cell} is missing in {}", out.stdout);
    }
    assert!(!out.stdout.contains("hose"), "{}", out.stdout);
    let out = linerate("good", &["plan", "mini", "--only", "nothing/*"]);
    assert_eq!(out.status, 2);
    assert!(out.stderr.contains("--only nothing/*"), "{}", out.stderr);
}

#[test]
fn bad_usage_is_refused_with_the_nearest_name() {
    for (args, parts) in [
        (&["run", "prxy"][..], &["prxy", "mini"][..]),
        (&["run", "--fast"], &["--fast"]),
        (&["run", "mini", "--only", "slow/pip"], &["slow/pip", "nearest: \"slow/pipe\""]),
        // One pattern that fits does not excuse another.
        (&["run", "mini", "--only", "slow/pipe", "--only", "fast/hoes"], &["fast/hoes", "\"fast/hose\""]),
        (&["run", "mini", "--published"], &["--published: mini has no table"]),
        (&["run", "mini", "--rounds", "0"], &["--rounds", "0"]),
        (&["run", "mini", "--budget", "soon"], &["--budget", "soon"]),
        (&["report", "/nowhere"], &["/nowhere", "linerate run"]),
        (&["run", "--resume", "/nowhere"], &["/nowhere"]),
        (&["systems", "hse"], &["hse", "nearest: \"hose\""]),
        (&["report", ".", "--format", "pdf"], &["pdf", "html"]),
    ] {
        let out = linerate("good", args);
        assert_eq!(out.status, 2, "{args:?}: {}", out.stderr);
        for part in parts {
            assert!(out.stderr.contains(part), "{args:?} does not contain {part}: {}", out.stderr);
        }
    }
}

#[test]
fn an_occupied_folder_is_left_as_it_is() {
    let folder = Folder::new("occupied");
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("thesis.txt"), "dear").unwrap();
    let out = linerate("good", &["run", "mini", "--out", folder.str()]);
    assert_eq!(out.status, 2);
    assert!(out.stderr.contains("--out") && out.stderr.contains("not empty"), "{}", out.stderr);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let run = Folder::new("occupied-by-a-run");
    linerate("good", &["run", "mini", "--quick", "--out", run.str()]);
    let journal = run.read("journal.jsonl");
    let out = linerate("good", &["run", "mini", "--quick", "--out", run.str()]);
    assert_eq!(out.status, 2);
    assert!(out.stderr.contains("--resume"), "{}", out.stderr);
    assert_eq!(run.read("journal.jsonl"), journal);
}

#[test]
fn a_damaged_journal_names_the_line_and_resume_mends_it() {
    let (folder, _) = run("good", &["mini"]);
    let path = folder.path().join("journal.jsonl");
    let whole = folder.read("journal.jsonl");
    let mut lines: Vec<&str> = whole.lines().collect();
    lines[4] = "{\"suite\":\"mini\",garbage";
    let cut = lines.join("\n");
    fs::write(&path, &cut[..cut.len() - 40]).unwrap();
    let out = linerate("good", &["report", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    for place in ["journal.jsonl:5:", "journal.jsonl:64: cut off"] {
        assert!(out.stderr.contains(place), "{place} is missing in {}", out.stderr);
    }
    let out = linerate("good", &["run", "--resume", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(folder.trials().len(), 28);

    fs::write(folder.path().join("run.json"), "{\n  \"schema\": 1").unwrap();
    let out = linerate("good", &["report", folder.str()]);
    assert_eq!(out.status, 2);
    assert!(out.stderr.contains("run.json:2"), "{}", out.stderr);
}

#[test]
fn a_packed_journal_is_reported_with_the_command_that_unpacks_it() {
    let (folder, _) = run("good", &["mini"]);
    let report = || linerate("good", &["report", folder.str(), "--format", "md"]);
    let before = report();
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(folder.read("journal.jsonl").as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    fs::remove_file(folder.path().join("journal.jsonl")).unwrap();
    fs::write(folder.path().join("journal.jsonl.gz"), &packed).unwrap();
    assert_eq!((report().stdout, report().status), (before.stdout, 0));
    let out = linerate("good", &["run", "--resume", folder.str()]);
    assert!(out.status == 2 && out.stderr.contains("gunzip"), "{}", out.stderr);
    // Half of it is an error, not a panic.
    fs::write(folder.path().join("journal.jsonl.gz"), &packed[..packed.len() / 2]).unwrap();
    let out = report();
    assert!(out.status != 0 && out.stderr.contains("journal.jsonl.gz"), "{}", out.stderr);
}

#[test]
fn a_run_does_not_go_on_with_other_versions() {
    let folder = Folder::new("versions");
    linerate("interrupted", &["run", "mini", "--out", folder.str()]);
    let out = linerate("newer", &["run", "--resume", folder.str()]);
    assert_eq!(out.status, 2);
    assert!(out.stderr.contains("fast/none") && out.stderr.contains("start a new run"), "{}", out.stderr);
}

#[test]
fn a_run_without_a_measurement_has_status_3() {
    let (folder, out) = run("empty", &["mini"]);
    assert_eq!(out.status, 3, "{}", out.stderr);
    assert!(out.stdout.contains("missing"), "{}", out.stdout);
    assert!(!folder.path().exists());
}

#[test]
fn colours_are_used_if_the_terminal_shows_them() {
    let folder = Folder::new("colours");
    let plain = linerate("good", &["run", "mini", "--quick", "--out", folder.str()]).stdout;
    assert!(!plain.contains('\u{1b}'));
    let forced = linerate("good", &["report", folder.str(), "--color", "always"]).stdout;
    assert!(forced.contains('\u{1b}'));
}

#[test]
fn help_has_examples_and_completions_are_made_for_every_shell() {
    let help = linerate("good", &["run", "--help"]).stdout;
    for part in ["Examples:", "--quick", "--budget", "--resume"] {
        assert!(help.contains(part), "{part} is missing");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(linerate("good", &["completions", shell]).stdout.contains("linerate"));
    }
}

#[test]
fn a_suite_or_system_that_does_not_fit_names_file_and_key() {
    let home = Folder::new("home");
    common::copy(&common::tests().join("lab"), home.path());
    let suite = home.path().join("suites/mini.toml");
    let truth = home.path().join("suites/truth.toml");
    let system = home.path().join("systems/web/system.toml");
    let config = home.path().join("systems/web/web.conf");
    for (path, from, to, parts) in [
        (&suite, "rounds = 6", "rounds = \"six\"", &["mini.toml:2:", "u32"][..]),
        (&suite, "rounds = 6", "round = 6", &["mini.toml:2:", "`round`", "nearest: \"rounds\""]),
        (&suite, "rows = \"path\"", "rows = \"route\"", &["mini.toml", "rows", "route"]),
        (&suite, "path = [\"none\"", "path = [\"nada\"", &["mini.toml", "nada"]),
        (&suite, "\"{{ server }}/{{ path }}\"", "\"{{ servr }}\"", &["mini.toml", "id", "undefined"]),
        (&truth, "\"500us\"", "\"500\"", &["truth.toml", "truth.values", "`500`"]),
        (&truth, "p99-latency = \"", "seconds = \"", &["truth.toml", "truth.values", "latencies"]),
        (
            &truth,
            "truth = {",
            "baseline = { server = \"fast\" }\ntruth = {",
            &["truth.toml", "no other cell"],
        ),
        (&system, "roles = [\"server\"]", "roles = [\"waiter\"]", &["web/system.toml", "waiter"]),
        (&system, "web.conf\"]", "wob.conf\"]", &["web/system.toml", "wob.conf"]),
    ] {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
        let out = common::linerate_at(home.path(), "good", &["plan", "mini", "truth"]);
        assert_eq!(out.status, 2, "{to}: {}", out.stdout);
        for part in parts {
            assert!(out.stderr.contains(part), "{to} does not contain {part}: {}", out.stderr);
        }
        fs::write(path, text).unwrap();
    }
    fs::write(&config, "listen {{ lissen.address }};").unwrap();
    let out_folder = Folder::new("config");
    let args = ["run", "mini", "--quick", "--out", out_folder.str()];
    let out = common::linerate_at(home.path(), "good", &args);
    assert_eq!(out.status, 3, "{}", out.stderr);
    assert!(out.stdout.contains("systems/web/web.conf:1: undefined value"), "{}", out.stdout);
}

#[test]
fn suites_beside_linerate_toml_are_added_and_a_file_may_be_a_suite() {
    let folder = Folder::new("own-suites");
    fs::create_dir_all(folder.path().join("suites")).unwrap();
    let mini = tests().join("lab/suites/mini.toml");
    for name in ["suites/extra.toml", "mine.toml"] {
        fs::copy(&mini, folder.path().join(name)).unwrap();
    }
    let linerate = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(args).env("LINERATE_HOME", tests().join("lab")).current_dir(folder.path());
        command.env("LINERATE_LAB_SCRIPT", tests().join("lab/good.toml"));
        Output::run(command.env("XDG_CACHE_HOME", folder.path().join("cache")))
    };
    assert!(!linerate(&["list"]).stdout.contains("extra"));
    fs::write(folder.path().join("linerate.toml"), "start = './server'\n").unwrap();
    let listed = linerate(&["list"]).stdout;
    assert!(listed.contains("\nextra ") || listed.starts_with("extra "), "{listed}");
    assert!(listed.contains("mini "), "{listed}");
    let planned = linerate(&["plan", "./mine.toml"]);
    assert!(planned.status == 0 && planned.stdout.contains("mine: "), "{}{}", planned.stdout, planned.stderr);
    let run = linerate(&["run", "./mine.toml", "--rounds", "1", "--out", "out"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let resumed = linerate(&["run", "./mine.toml", "--resume", "out"]);
    assert_eq!((resumed.status, resumed.stdout), (0, run.stdout), "{}", resumed.stderr);
    fs::copy(&mini, folder.path().join("suites/mini.toml")).unwrap();
    let twice = linerate(&["list"]);
    assert!(twice.status == 2 && twice.stderr.contains("rename it"), "{}", twice.stderr);
}
