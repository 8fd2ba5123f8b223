//! Text on a terminal of 50 columns; `script` (util-linux) gives the command one.

use crate::common::{Folder, Output, run_scripted, tests};
use std::process::Command;

#[test]
fn progress_is_one_line_and_what_is_printed_does_not_share_it() {
    let folder = Folder::new("terminal");
    let program = env!("CARGO_BIN_EXE_linerate");
    let line = format!("stty rows 24 cols 50 && {program} run mini --quick --seed 7 --out {}", folder.str());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
    let out = run_scripted(&mut command, &tests().join("lab"), "good");
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let shown = out.stdout.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    let (progress, printed) = shown.split_once("mini: What").unwrap();
    assert!(progress.contains("mini: round 1"), "{shown:?}");
    assert!(progress.ends_with("\u{1b}[2K"), "{progress:?}");
    let lines = progress.split(['\r', '\n']).map(|line| line.replace("\u{1b}[2K", ""));
    let mut bars = lines.filter(|line| line.contains(['█', '░']));
    assert!(bars.all(|bar| bar.chars().count() <= 50), "{progress:?}");
    assert!(!printed.contains("\u{1b}[1A"), "{printed:?}");
}

/// A command of a shell, with linerate as `$0` and the folder of its run as `$1`.
fn shell(name: &str, line: &str) -> (Folder, Output) {
    let folder = Folder::new(name);
    let mut command = Command::new("sh");
    command.args(["-c", line, env!("CARGO_BIN_EXE_linerate"), folder.str()]);
    let out = run_scripted(&mut command, &tests().join("lab"), "good");
    (folder, out)
}

#[test]
fn what_cannot_be_written_to_a_stream_ends_no_run() {
    let run = "\"$0\" run mini --quick --rounds 1 --seed 7 --out \"$1\"";
    for (name, line) in [
        ("stderr-full", format!("{run} 2>/dev/full")),
        ("stderr-closed", format!("{run} 2>&-")),
        ("stdout-full", format!("{run} >/dev/full")),
        // The reader of both is gone before anything is written.
        ("pipe", format!("{{ {run}; echo $? >\"$1.status\"; }} 2>&1 | true; exit $(cat \"$1.status\")")),
    ] {
        let (folder, out) = shell(name, &line);
        assert_eq!(out.status, 0, "{name}: {}", out.stderr);
        assert!(folder.read("report.md").contains("mini"), "{name}");
        let _ = std::fs::remove_file(folder.path().with_extension("status"));
    }
    let (_folder, out) = shell("said", &format!("{run} >/dev/full"));
    assert!(out.stderr.contains("warning: standard output: No space left on device"), "{}", out.stderr);
}
