//! `linerate compare` and `gate` on the scripted lab: verdicts, exit statuses, files.

#[path = "../common/mod.rs"]
mod common;
mod disturbed;
mod full;
mod latency;
mod revisions;
mod script;
mod written;

use common::{Folder, Output};
use linerate::judge::pairs::Confirmation;
use linerate::measurement::{Outcome, Stage};
use linerate::stats::verdict::Verdict;
use script::Script;
use std::fs;

const ARMS: [&str; 4] = ["--base", "set:buffer=16384", "--head", "set:buffer=4096"];

/// A gate of both cells with a pipe.
fn gate(script: &Script, folder: &Folder, more: &[&str]) -> Output {
    let mut args = vec!["gate", "mini", "--only", "*/pipe", "--seed", "7", "--out", folder.str()];
    args.extend(ARMS);
    args.extend(more);
    script.run(&args)
}

/// Beside a relay that forks for each connection, nginx had no operation for 0.2 to 0.5 s.
#[test]
fn a_side_without_operations_fails_no_warm_up_unit_but_all_others() {
    let (folder, mut seconds) = (Folder::new("gate-starves"), vec![0.2; 211]);
    seconds[0] = 1_000_000.0;
    let out = gate(&Script::new("starves").seconds("fast/pipe@head", &seconds, 0.2), &folder, &[]);
    let (warm, measured): (Vec<_>, Vec<_>) = folder.duets().into_iter().partition(|duet| duet.warmup);
    assert!(!warm.is_empty() && warm.iter().all(|duet| duet.outcome == Outcome::Ok), "{}", out.stderr);
    assert!(measured.iter().any(|duet| duet.outcome != Outcome::Ok), "{measured:?}");
}

#[test]
fn a_slowdown_is_status_1_and_the_first_sentence_has_its_size() {
    let (folder, files) = (Folder::new("gate-slower"), Folder::new("gate-slower-files"));
    fs::create_dir_all(files.path()).unwrap();
    let [comment, history] = ["comment.md", "history.jsonl"].map(|name| files.path().join(name));
    let script = Script::new("slower").cell("fast/pipe@head", 0.208, 0.003);
    let more = ["--comment", comment.to_str().unwrap(), "--history", history.to_str().unwrap()];
    let out = gate(&script, &folder, &more);
    assert_eq!(out.status, 1, "{}\n{}", out.stdout, out.stderr);
    let sentence = out.stdout.lines().next().unwrap();
    for part in [
        // The relay has no time left, so its CPU time is first.
        "pipe needs 4.0 % more CPU time per operation with this change (3.5 to 4.4 %, 24 pairs, ",
        "in 1 of 2 cells, fast/pipe; rate -3.8 % (-4.2 to -3.4); 1 within 1 %",
    ] {
        assert!(sentence.contains(part), "{part}: {}", out.stdout);
    }
    let found = folder.report().comparison.unwrap();
    assert_eq!(found.conclusion, Verdict::Slower);
    let rate = found.cells[0].findings.rate().unwrap();
    let [low, high] = rate.percent_ci95().unwrap();
    // 0.200 / 0.208
    assert!(low < -3.85 && -3.85 < high && high < 0.0, "{rate:?}");
    assert_eq!(rate.second_series, Some(Confirmation::Confirmed));
    assert_eq!(found.cells[1].verdict, Verdict::WithinMargin);
    // Before it starts, and after the first units.
    assert!(out.stderr.matches("find a slowdown of").count() == 2, "{}", out.stderr);

    let comment = fs::read_to_string(&comment).unwrap();
    assert!(comment.starts_with(&format!("**{sentence}")), "{comment}");
    assert!(comment.lines().count() < 60 && comment.contains("<details>"), "{comment}");
    assert!(comment.contains("linerate gate mini --only '*/pipe' --seed 7 --base set:buffer=16384"));
    assert!(folder.read("report.html").contains(sentence) && folder.read("report.md").contains(sentence));

    // A column for each build, by which both readings have a sign.
    let head =
        r"\| fast/pipe \| [45],\d{3}.* \| 4,[78]\d\d.*<br>CPU \+\d.\d+ % \(.*\) ▼<br>96.\d+ % \(.*\) ▼ \|";
    let row = regex::Regex::new(head).unwrap();
    assert!(row.is_match(&comment) && row.is_match(&folder.read("report.md")), "{comment}");
    let csv = folder.read("report.csv");
    let line = csv.lines().find(|line| line.contains("fast/pipe@head")).unwrap();
    assert!(line.contains(",fast/pipe@base,0.96") && line.contains(",slower,"), "{line}");

    // The journal has all of it.
    let again = script.run(&["report", folder.str()]);
    assert_eq!(again.stdout, out.stdout);
    let table = script.run(&["history", more[3]]);
    assert!(
        table.status == 0 && table.stdout.contains("fast/pipe") && table.stdout.contains('●'),
        "{}",
        table.stdout
    );
    assert_eq!(gate(&script, &Folder::new("gate-advisory"), &["--advisory"]).status, 0);
    assert_eq!(gate(&script, &Folder::new("gate-bad"), &["--bisect"]).status, 1);
}

#[test]
fn compare_exits_with_1_for_a_slowdown_where_it_is_asked_to() {
    let compare = |script: &Script, name: &str, more: &[&str]| {
        let folder = Folder::new(name);
        let mut args = vec!["compare", "mini", "--only", "*/pipe", "--seed", "7", "--out", folder.str()];
        args.extend(ARMS);
        args.extend(more);
        script.run(&args).status
    };
    let slower = Script::new("fail-on").cell("fast/pipe@head", 0.208, 0.003);
    assert_eq!(compare(&slower, "fail-on-slower", &["--fail-on", "slower"]), 1);
    assert_eq!(compare(&slower, "fail-on-nothing", &[]), 0);
    assert_eq!(compare(&Script::new("fail-on-equal"), "fail-on-equal", &["--fail-on", "slower"]), 0);
    assert_eq!(compare(&slower, "fail-on-faster", &["--fail-on", "faster"]), 2);
}

#[test]
fn the_page_of_a_gate_has_the_history_of_its_cells() {
    let files = Folder::new("gate-history-files");
    fs::create_dir_all(files.path()).unwrap();
    let history = files.path().join("history.jsonl");
    let script = Script::new("history");
    let [first, second] = ["gate-history-1", "gate-history-2"].map(Folder::new);
    for folder in [&first, &second] {
        assert_eq!(gate(&script, folder, &["--history", history.to_str().unwrap()]).status, 0);
    }
    assert!(!first.read("report.html").contains("Gates so far"), "it was the first");
    let page = second.read("report.html");
    assert!(page.contains("Gates so far") && page.matches("<svg class=\"forest history\"").count() == 2);
    // What the folder has is enough.
    fs::remove_file(&history).unwrap();
    script.run(&["report", second.str(), "--out", second.str()]);
    assert_eq!(second.read("report.html"), page);
    assert_eq!(second.read("report.json").matches("\"conclusion\"").count(), 3);
}

#[test]
fn equal_builds_are_status_0_long_before_the_budget_is_used() {
    let folder = Folder::new("gate-equal");
    let out = gate(&Script::new("equal"), &folder, &["--bisect"]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.starts_with("no slowdown of pipe with this change: 2 within 1 %"), "{}", out.stdout);
    assert!(folder.report().comparison.unwrap().seconds < 60.0);
}

#[test]
fn a_slowdown_that_is_certain_to_be_smaller_than_the_margin_is_status_0() {
    let script = Script::new("small").cell("fast/pipe@base", 0.2, 0.0005);
    let script = script.cell("fast/pipe@head", 0.201, 0.0005);
    let folder = Folder::new("gate-small");
    let out = gate(&script, &folder, &[]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    let sentence = "no slowdown of pipe with this change: 1 differs by less than 1 %, 1 within 1 % (";
    assert!(out.stdout.starts_with(sentence), "{}", out.stdout);
    let found = folder.report().comparison.unwrap();
    assert_eq!(
        (found.cells[0].verdict, found.conclusion),
        (Verdict::SmallDifference, Verdict::SmallDifference)
    );
}

#[test]
fn a_faster_build_is_status_0() {
    let script = Script::new("faster").cell("fast/pipe@head", 0.19, 0.003);
    let out = gate(&script, &Folder::new("gate-faster"), &[]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(
        out.stdout.starts_with("pipe needs ") && out.stdout.contains("% less CPU time"),
        "{}",
        out.stdout
    );
    assert!(out.stdout.contains("; rate +5."), "{}", out.stdout);
}

#[test]
fn more_cpu_time_at_the_same_rate_is_a_slowdown() {
    let script = Script::new("cpu").cpu("fast/pipe@head", 0.2, 0.003, 0.21);
    let out = gate(&script, &Folder::new("gate-cpu"), &[]);
    assert_eq!(out.status, 1, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("% more CPU time per operation with this change"), "{}", out.stdout);
}

#[test]
fn what_noise_hides_is_status_4_and_125_for_git_bisect() {
    let script = Script::new("noise").cell("fast/pipe@head", 0.201, 0.1);
    let folder = Folder::new("gate-noise");
    let out = gate(&script, &folder, &["--budget", "40s"]);
    assert_eq!(out.status, 4, "{}\n{}", out.stdout, out.stderr);
    assert!(
        out.stdout.starts_with("undecided whether pipe is slower with this change: 1 of 2"),
        "{}",
        out.stdout
    );
    let seconds = folder.report().comparison.unwrap().seconds;
    assert!(seconds <= 42.0, "{seconds} {}", out.stdout);
    let skipped = gate(&script, &Folder::new("gate-skip"), &["--budget", "40s", "--bisect"]);
    assert_eq!(skipped.status, 125, "{}", skipped.stdout);
}

/// Ranks of six units show nothing yet.
#[test]
fn a_large_difference_is_found_in_three_units_and_a_gate_confirms_it_in_three_more() {
    let script = Script::new("large").cell("fast/pipe@head", 0.3, 0.003);
    for (command, status, units) in [("compare", 0, 3), ("gate", 1, 6)] {
        let folder = Folder::new("gate-large");
        let mut args = vec![command, "mini", "--only", "fast/pipe", "--out", folder.str(), "--budget", "40s"];
        args.extend(ARMS);
        let out = script.run(&args);
        assert_eq!(out.status, status, "{}\n{}", out.stdout, out.stderr);
        let found = folder.report().comparison.unwrap();
        assert_eq!((found.conclusion, found.cells[0].units), (Verdict::Slower, units), "{}", out.stdout);
        let rate = found.cells[0].findings.rate().unwrap();
        let [low, high] = rate.percent_ci95().unwrap();
        // 0.200 / 0.300
        assert!(low < -33.3 && -33.3 < high && high < -25.0, "{rate:?}");
    }
}

#[test]
fn a_slowdown_that_a_second_series_does_not_confirm_is_open() {
    let mut seconds = vec![0.22; 5];
    seconds.extend([0.2; 300]);
    let script = Script::new("unconfirmed").seconds("fast/pipe@head", &seconds, 0.2);
    let out = gate(&script, &Folder::new("gate-unconfirmed"), &["--budget", "30s"]);
    assert_eq!(out.status, 4, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("confirm the slowdown"), "{}", out.stdout);
    // With more time the margin decides.
    let out = gate(&script, &Folder::new("gate-resolved"), &["--budget", "3m"]);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.starts_with("no slowdown of pipe with this change: 2 within 1 %"), "{}", out.stdout);
}

#[test]
fn a_build_that_fails_in_one_cell_is_never_green() {
    let script = Script::new("crash").fails("slow/pipe@head", "the pipe burst");
    let out = gate(&script, &Folder::new("gate-crash"), &[]);
    assert_eq!(out.status, 4, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("the pipe burst") && out.stdout.contains("failed"), "{}", out.stdout);
}

#[test]
fn the_time_of_a_unit_that_fails_before_its_window_counts() {
    let folder = Folder::new("gate-verify");
    gate(&Script::new("verify").fails_in("slow/pipe@head", &[4, 5, 6]), &folder, &[]);
    let mut failed = folder.duets();
    failed.retain(|duet| duet.outcome != Outcome::Ok);
    assert!(!failed.is_empty());
    let stages = [Stage::Raise, Stage::Start, Stage::Verify];
    assert!(failed.iter().all(|duet| stages.iter().all(|stage| duet.stages[stage].0 > 0)), "{failed:?}");
}

#[test]
fn without_a_unit_the_status_is_3_and_125_for_git_bisect() {
    let script = Script::new("nothing").fails("*/pipe@*", "no pipe at all");
    let out = gate(&script, &Folder::new("gate-nothing"), &[]);
    assert_eq!(out.status, 3, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.starts_with("nothing could be measured: ") && out.stdout.contains("no pipe at all"));
    assert_eq!(gate(&script, &Folder::new("gate-nothing-2"), &["--bisect"]).status, 125);
    let absent = Script::new("absent").without("pipe@head");
    let out = gate(&absent, &Folder::new("gate-absent"), &[]);
    assert_eq!(out.status, 3, "{}\n{}", out.stdout, out.stderr);
}

#[test]
fn arms_that_are_the_same_build_are_refused() {
    let script = Script::new("same").with_one_build();
    let folder = Folder::new("gate-same");
    let out = script.run(&["gate", "mini", "--only", "fast/pipe", "--out", folder.str()]);
    assert_eq!(out.status, 2, "{}", out.stdout);
    assert!(out.stderr.contains("both arms are the same build"), "{}", out.stderr);
    assert!(!folder.path().exists());
}

#[test]
fn an_arm_that_does_not_fit_names_the_place_and_the_nearest_key() {
    let script = Script::new("misfits");
    for (more, status, part) in [
        (&["--head", "set:bufer=1"][..], 2, "nearest: \"buffer\""),
        (&["--head", "set:connections=many"], 2, "expected a whole number"),
        (&["--head", "progam=/bin/x"], 2, "nearest: \"program=\""),
        (&["--head", "env:CXX=clang"], 2, "pipe has none"),
        (&["--head", "program=/nowhere/pipe"], 3, "there is no program `/nowhere/pipe`"),
        (&["--head", "git=main"], 2, "--checkout"),
        (&["--head", "set:buffer=1", "--system", "fast"], 2, "`buffer`"),
        (&["--head", "set:buffer=1", "--system", "nobody"], 2, "it has no process in the chosen cells"),
        (&["--head", "set:buffer=1", "--margin", "70%"], 2, "below 50%"),
    ] {
        let folder = Folder::new("gate-misfit");
        let mut args = vec!["gate", "mini", "--only", "fast/pipe", "--out", folder.str()];
        args.extend(more);
        let out = script.run(&args);
        assert_eq!(out.status, status, "{more:?}: {}{}", out.stdout, out.stderr);
        assert!(out.stderr.contains(part), "{more:?}: {}", out.stderr);
        // git bisect must not take a typing error for a bad commit.
        let again = Folder::new("gate-misfit-again");
        args[5] = again.str();
        args.push("--bisect");
        assert_eq!(script.run(&args).status, if status == 2 { 128 } else { 125 }, "{more:?}");
    }
}

#[test]
fn an_interrupted_gate_has_no_verdict_and_goes_on() {
    let (cut, whole) = (Folder::new("gate-cut"), Folder::new("gate-whole"));
    let slower = || Script::new("cut").cell("fast/pipe@head", 0.208, 0.003);
    let out = gate(&slower().interrupted_at(30), &cut, &[]);
    assert_eq!(out.status, 130, "{}", out.stderr);
    let again = format!("go on with: linerate gate --resume '{}' mini --only '*/pipe' --seed 7", cut.str());
    assert!(out.stderr.contains(&again), "{}", out.stderr);
    let out = slower().run(&["gate", "--resume", cut.str()]);
    assert_eq!(out.status, 1, "{}\n{}", out.stdout, out.stderr);
    assert_eq!(gate(&slower(), &whole, &[]).status, 1);
    let [cut, whole] =
        [cut, whole].map(|folder| folder.report().comparison.unwrap().cells[0].findings.clone());
    assert_eq!(cut, whole);
}

#[test]
fn a_budget_too_small_for_any_difference_is_announced_and_never_green() {
    let out = gate(&Script::new("short"), &Folder::new("gate-short"), &["--budget", "6s"]);
    assert_eq!(out.status, 4, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stderr.contains("; smaller ones need --budget 16s"), "{}", out.stderr);
    assert!(out.stdout.contains("6s is too short for any difference: --budget 1"), "{}", out.stdout);
}

#[test]
fn compare_is_status_0_whatever_it_finds() {
    let script = Script::new("compare").cell("fast/pipe@head", 0.208, 0.003);
    let folder = Folder::new("compare");
    let mut args = vec!["compare", "mini", "--only", "fast/pipe", "--seed", "7", "--out", folder.str()];
    args.extend(ARMS);
    let out = script.run(&args);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.starts_with("pipe needs ") && out.stdout.contains("; rate -3."), "{}", out.stdout);
    let rate = folder.report().comparison.unwrap().cells[0].findings.rate().copied().unwrap();
    assert_eq!((rate.verdict, rate.second_series), (Verdict::Slower, None));
}

/// The time of the comparison is simulated, so it ends before the first line, which comes after ten seconds.
#[test]
fn a_comparison_of_some_seconds_says_nothing_off_a_terminal_but_what_it_can_find() {
    let progress = |more: &[&str]| {
        let out = gate(&Script::new("progress"), &Folder::new("gate-progress"), more);
        assert_eq!(out.status, 0, "{}", out.stderr);
        let is_other = |line: &&str| line.contains("find a slowdown") || line.starts_with("report: ");
        out.stderr.lines().filter(|line| !is_other(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!([progress(&[]), progress(&["--quiet"])], [[""; 0]; 2]);
}

#[test]
fn two_stored_runs_are_compared_as_far_as_they_can_be() {
    let [one, two] = ["stored-1", "stored-2"].map(Folder::new);
    for (folder, name) in [(&one, "good"), (&two, "newer")] {
        common::linerate(name, &["run", "mini", "--seed", "7", "--out", folder.str()]);
    }
    let out = common::linerate("good", &["compare", one.str(), two.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    for part in ["cells in common", "indicative only: ", "compare both builds at the same time"] {
        assert!(out.stdout.contains(part), "{part}: {}", out.stdout);
    }
}

#[test]
fn json_is_printed_in_place_of_the_text_and_the_report_goes_where_the_user_asks_for_it() {
    let (folder, files) = (Folder::new("gate-exports"), Folder::new("gate-exports-files"));
    std::fs::create_dir_all(files.path()).unwrap();
    let markdown = files.path().join("gate.md");
    let more = ["--json", "-", "--export-markdown", markdown.to_str().unwrap()];
    let out = gate(&Script::new("exports"), &folder, &more);
    assert_eq!(out.status, 0, "{}\n{}", out.stdout, out.stderr);
    let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(json["comparison"]["conclusion"], "within the margin");
    assert_eq!(files.read("gate.md"), folder.read("report.md"));
    assert!(
        !folder.read("run.json").contains("--json"),
        "output is no part of the command that repeats a run"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_a_warning_below_the_verdict() {
    let folder = Folder::new("gate-unwritable");
    let script = Script::new("unwritable").cell("fast/pipe@head", 0.208, 0.003);
    let out = gate(&script, &folder, &["--comment", "/nowhere/comment.md", "--history", "/nowhere/history"]);
    assert_eq!(out.status, 1, "{}\n{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("with this change"), "{}", out.stdout);
    assert_eq!(out.stderr.matches("warning: /nowhere/").count(), 2, "{}", out.stderr);
}
