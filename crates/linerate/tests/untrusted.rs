//! Folders of runs of someone else: nothing in them is executed or followed, and no terminal obeys them.

#[path = "untrusted/action.rs"]
mod action;
mod common;

use common::{Folder, Output, linerate, tests};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A finished run of a small suite.
fn run(name: &str) -> Folder {
    let folder = Folder::new(name);
    let out = linerate("good", &["run", "mini", "--quick", "--rounds", "1", "--out", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    folder
}

/// Edits run.json.
fn edit(folder: &Folder, change: impl FnOnce(&mut serde_json::Value)) {
    let mut run = serde_json::from_str(&folder.read("run.json")).unwrap();
    change(&mut run);
    fs::write(folder.path().join("run.json"), run.to_string()).unwrap();
}

#[test]
fn a_report_replaces_a_link_of_its_name_and_does_not_follow_it() {
    let folder = run("untrusted-link");
    let files = Folder::new("untrusted-link-files");
    fs::create_dir_all(files.path()).unwrap();
    let victim = files.path().join("victim");
    fs::write(&victim, "own").unwrap();
    for name in ["report.md", ".report.md.new", ".run.json.new"] {
        let _ = fs::remove_file(folder.path().join(name));
        std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
    }
    assert_eq!(linerate("good", &["report", folder.str(), "--out", folder.str()]).status, 0);
    assert_eq!(linerate("good", &["run", "--resume", folder.str()]).status, 0);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "own");
    assert!(folder.read("report.md").contains("mini"));
}

#[test]
fn a_journal_that_is_a_pipe_or_a_link_is_refused() {
    let folder = run("untrusted-pipe");
    let journal = folder.path().join("journal.jsonl");
    let victim = folder.path().join("victim");
    fs::rename(&journal, &victim).unwrap();
    let before = fs::read(&victim).unwrap();
    std::os::unix::fs::symlink(&victim, &journal).unwrap();
    assert_eq!(linerate("good", &["run", "--resume", folder.str()]).status, 2);
    assert_eq!(fs::read(&victim).unwrap(), before);
    fs::remove_file(&journal).unwrap();
    assert!(Command::new("mkfifo").arg(&journal).status().unwrap().success());
    for arguments in [&["report", folder.str()][..], &["run", "--resume", folder.str()]] {
        let mut command = Command::new("timeout");
        command.arg("20").arg(env!("CARGO_BIN_EXE_linerate")).args(arguments);
        command.env("LINERATE_HOME", tests().join("lab"));
        command.env("LINERATE_LAB_SCRIPT", tests().join("lab/good.toml"));
        let out = Output::run(&mut command);
        assert_eq!(out.status, 2, "{}", out.stderr);
        assert!(out.stderr.contains("journal.jsonl: it is no file but a pipe"), "{}", out.stderr);
    }
}

#[test]
fn what_a_terminal_obeys_in_a_stored_run_is_shown_as_an_escape() {
    let folder = run("untrusted-escapes");
    edit(&folder, |run| {
        for cell in run["suites"][0]["cells"].as_array_mut().unwrap() {
            cell["systems"][0]["version"] = "1\u{1b}]0;title\u{7}\u{9b}2J\u{202e}".into();
        }
        run["suites"][0]["question"] = "who\u{1b}[2J?".into();
    });
    let obeyed = |text: &str| text.contains(['\u{7}', '\u{9b}', '\u{202e}']);
    for format in ["terminal", "md", "html", "json", "csv"] {
        let out =
            linerate("good", &["report", folder.str(), "--format", format, "--long", "--color", "always"]);
        assert_eq!(out.status, 0, "{}", out.stderr);
        for text in [&out.stdout, &out.stderr] {
            assert!(
                !obeyed(text) && !text.contains("\u{1b}[2J") && !text.contains("\u{1b}]"),
                "{format}: {text}"
            );
        }
        // CSV has neither versions nor questions.
        assert!(format == "csv" || out.stdout.contains("\\u001b"), "{format}: {}", out.stdout);
    }
    for file in ["report.md", "report.html", "report.json", "report.csv"] {
        let text = folder.read(file);
        assert!(!obeyed(&text) && !text.contains('\u{1b}'), "{file}");
    }
}

#[test]
fn hosts_of_a_stored_run_are_given_again() {
    let folder = run("untrusted-hosts");
    edit(&folder, |run| {
        let host = run["host"].clone();
        let option = "-oProxyCommand=touch /nowhere";
        run["hosts"] = serde_json::json!([
            { "place": "local", "roles": ["client"], "host": host },
            { "place": "ssh:box2", "roles": ["relay", "server"], "ssh_options": [option], "host": host },
        ]);
    });
    let other = ["--host", "server=ssh:box2", "--host", "relay=ssh:box2", "--host-network"];
    for given in [&[][..], &other] {
        let out = linerate("good", &[&["run", "--resume", folder.str()], given].concat());
        assert_eq!(out.status, 2, "{}", out.stderr);
        for part in ["again: linerate run --resume", "hosts"] {
            assert!(out.stderr.contains(part), "{part}: {}", out.stderr);
        }
    }
}

#[test]
fn a_stored_plan_has_the_bounds_of_the_flags() {
    for (name, change) in [
        ("rounds", (|run| run["suites"][0]["rounds"] = u32::MAX.into()) as fn(&mut serde_json::Value)),
        ("budget", |run| run["budget"] = u64::MAX.into()),
        ("capacity", |run| run["suites"][0]["cells"][0]["capacity"] = 1e308.into()),
    ] {
        let folder = run(&format!("untrusted-{name}"));
        edit(&folder, change);
        for arguments in [&["report", folder.str()][..], &["run", "--resume", folder.str()]] {
            let out = linerate("good", arguments);
            assert_eq!(out.status, 2, "{name}: {}", out.stderr);
            assert!(out.stderr.contains("run.json: ") && out.stderr.contains(name), "{}", out.stderr);
        }
    }
}

#[test]
fn a_suite_of_a_stored_run_is_a_name_and_no_file() {
    let folder = run("untrusted-suite");
    edit(&folder, |run| run["suites"][0]["name"] = "/tmp/evil.toml".into());
    let out = linerate("good", &["run", "--resume", folder.str()]);
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("`/tmp/evil.toml` is no name of a suite"), "{}", out.stderr);
}

#[test]
fn damaged_lines_of_a_journal_fill_neither_memory_nor_terminal() {
    let folder = run("untrusted-damaged");
    let journal = folder.read("journal.jsonl") + &"x\n".repeat(100_000);
    fs::write(folder.path().join("journal.jsonl"), journal).unwrap();
    let out = linerate("good", &["report", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stderr.lines().count() < 20 && out.stderr.contains("and 99990 more lines"), "{}", out.stderr);
}

#[test]
fn a_history_that_is_a_pipe_is_refused() {
    let folder = Folder::new("untrusted-history");
    fs::create_dir_all(folder.path()).unwrap();
    let pipe = folder.path().join("history");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let out = linerate("good", &["history", pipe.to_str().unwrap()]);
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("it is no file but a pipe"), "{}", out.stderr);
}

/// linerate in this folder.
fn at(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    common::run_scripted(command.args(arguments).current_dir(folder), &tests().join("lab"), "good")
}

#[test]
fn a_first_file_is_not_written_through_a_link() {
    let folder = Folder::new("untrusted-init");
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("go.mod"), "module shop\n").unwrap();
    let victim = folder.path().join("victim");
    std::os::unix::fs::symlink(&victim, folder.path().join("linerate.toml")).unwrap();
    let out = at(folder.path(), &["init"]);
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("linerate.toml exists") && !victim.exists(), "{}", out.stderr);
}

#[test]
fn a_project_above_that_belongs_to_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        return common::skip("the owner of a file is changed by root alone");
    }
    let folder = Folder::new("untrusted-project");
    let below = folder.path().join("below");
    fs::create_dir_all(&below).unwrap();
    let file = folder.path().join("linerate.toml");
    fs::write(&file, "start = 'true'\n").unwrap();
    std::os::unix::fs::chown(&file, Some(4_321), None).unwrap();
    let out = at(&below, &["gate"]);
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("it belongs to user 4321"), "{}", out.stderr);
    let out = at(folder.path(), &["gate"]);
    assert!(!out.stderr.contains("belongs to user"), "{}", out.stderr);
}

#[test]
fn a_site_replaces_links_and_its_addresses_are_plain() {
    let runs = Folder::new("untrusted-site");
    let (one, site) = (run("untrusted-site-run"), runs.path().join("site"));
    common::copy(one.path(), &runs.path().join("a#b?c"));
    fs::create_dir_all(&site).unwrap();
    let victim = runs.path().join("victim");
    fs::write(&victim, "own").unwrap();
    std::os::unix::fs::symlink(&victim, site.join("index.html")).unwrap();
    let out = linerate("good", &["site", runs.str(), "--out", site.to_str().unwrap()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "own");
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(index.contains("href=\"run-a_23_b_3f_c.html\""), "{index}");
    assert!(site.join("run-a_23_b_3f_c.html").exists());
}
