//! Where runs are kept, and that reading commands write nothing but what they are asked for.

use crate::common::{Folder, Output, linerate, run, run_scripted, tests};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository of the user's own with a file.
fn repository(name: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.path()).unwrap();
    git(&folder, &["init", "--quiet"]);
    folder
}

fn git(folder: &Folder, words: &[&str]) -> String {
    let out = Output::run(Command::new("git").arg("-C").arg(folder.path()).args(words));
    assert_eq!(out.status, 0, "git {words:?}: {}", out.stderr);
    out.stdout
}

/// linerate on a script, in this folder.
fn linerate_in(folder: &Folder, script: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    run_scripted(command.args(args).current_dir(folder.path()), &tests().join("lab"), script)
}

const QUICK: [&str; 4] = ["run", "mini", "--quick", "--rounds"];

/// The folders of runs in `.linerate`.
fn runs(folder: &Folder) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.path().join(".linerate")).into_iter().flatten();
    let mut runs: Vec<PathBuf> =
        all.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    runs.sort();
    runs
}

/// The content of each file, and when it was written.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            (path.clone(), (fs::read(&path).unwrap(), written))
        })
        .collect()
}

#[test]
fn a_run_is_kept_in_a_folder_that_git_does_not_see() {
    let folder = repository("place");
    let out = linerate_in(&folder, "good", &[&QUICK[..], &["1"]].concat());
    assert_eq!(out.status, 0, "{}", out.stderr);
    let runs = runs(&folder);
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert!(runs[0].join("journal.jsonl").exists() && runs[0].join("report.html").exists());
    let name = runs[0].file_name().unwrap().to_str().unwrap();
    assert!(out.stderr.contains(&format!("report: .linerate/{name}/report.md")), "{}", out.stderr);
    assert_eq!(git(&folder, &["status", "--porcelain", "--untracked-files=all"]), "");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "beside .git");
}

#[test]
fn runs_that_start_at_once_have_a_folder_each() {
    let folder = repository("at-once");
    let line = format!("{} {} 1 & ", env!("CARGO_BIN_EXE_linerate"), QUICK.join(" "));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{}wait", line.repeat(6))]).current_dir(folder.path());
    let out = run_scripted(&mut shell, &tests().join("lab"), "good");
    let runs = runs(&folder);
    assert_eq!(runs.len(), 6, "{}", out.stderr);
    assert!(runs.iter().all(|run| run.join("report.md").exists()), "{}", out.stderr);
}

#[test]
fn a_run_that_measures_nothing_leaves_nothing() {
    let folder = repository("nothing");
    let out = linerate_in(&folder, "empty", &["run", "mini"]);
    assert_eq!(out.status, 3, "{}", out.stderr);
    assert!(out.stdout.contains("missing") && out.stderr.contains("nothing is kept"), "{}", out.stderr);
    // Ctrl-C before the first trial has ended.
    let script = fs::read_to_string(tests().join("lab/interrupted.toml")).unwrap();
    let early = Folder::new("early");
    fs::create_dir_all(early.path()).unwrap();
    let early = early.path().join("early.toml");
    fs::write(&early, script.replace("interrupt_at = 12", "interrupt_at = 1")).unwrap();
    let early = early.with_extension("");
    let out = linerate_in(&folder, early.to_str().unwrap(), &["run", "mini", "--out", "some/where"]);
    assert_eq!(out.status, 130, "{}", out.stderr);
    assert!(out.stderr.ends_with("linerate: interrupted\n"), "{}", out.stderr);
    // Without anything that could be started.
    let out = linerate_in(&folder, "good", &["compare", "./no-server", "./none-either"]);
    assert_ne!(out.status, 0, "{}", out.stderr);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".git"]);
}

#[test]
fn a_report_without_a_folder_is_of_the_newest_run() {
    let folder = repository("newest");
    let out = linerate_in(&folder, "good", &["report"]);
    assert_eq!(out.status, 2, "{}", out.stderr);
    for part in [".linerate: there is no run in it", "linerate report DIR"] {
        assert!(out.stderr.contains(part), "{part}: {}", out.stderr);
    }
    let made = |rounds: &str| linerate_in(&folder, "good", &[&QUICK[..], &[rounds]].concat());
    let first = made("2");
    let second = made("1");
    assert_ne!(first.stdout, second.stdout);
    let newest = linerate_in(&folder, "good", &["report"]);
    assert_eq!((newest.status, newest.stdout), (0, second.stdout), "{}", newest.stderr);
    assert!(newest.stderr.starts_with("run: .linerate/"), "{}", newest.stderr);
    // Which is the one that went on last.
    let resumed = runs(&folder).remove(0);
    let journal = fs::read_to_string(resumed.join("journal.jsonl")).unwrap();
    let cut = journal.trim_end().rsplit_once('\n').unwrap().0;
    fs::write(resumed.join("journal.jsonl"), format!("{cut}\n")).unwrap();
    let out = linerate_in(&folder, "good", &["run", "--resume", resumed.to_str().unwrap()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(linerate_in(&folder, "good", &["report"]).stdout, first.stdout);
}

#[test]
fn a_report_writes_nothing_but_what_it_is_asked_for() {
    let ((made, _), (other, _)) = (run("good", &["mini", "--quick"]), run("good", &["mini", "--quick"]));
    // As if an earlier version had made it.
    fs::write(made.path().join("report.md"), "of an earlier version").unwrap();
    let before = files(made.path());
    for format in ["terminal", "md", "html", "json", "csv"] {
        let out = linerate("good", &["report", made.str(), "--format", format]);
        assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{format}");
        assert_eq!(files(made.path()), before, "{format}");
    }
    let elsewhere = Folder::new("elsewhere");
    let out = linerate("good", &["report", made.str(), "--out", elsewhere.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(files(made.path()), before);
    assert!(elsewhere.read("report.md").starts_with("# ") && elsewhere.read("report.html").contains("mini"));
    let refused = linerate("good", &["report", made.str(), "--out", other.str()]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("contains another run"), "{}", refused.stderr);
    assert_eq!(linerate("good", &["report", made.str(), "--out", made.str()]).status, 0);
    assert_eq!(made.read("report.md"), elsewhere.read("report.md"));
}
