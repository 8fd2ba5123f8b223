//! What a terminal of 50 columns shows; `script` (util-linux) gives the command one.

use crate::common::{Folder, run_scripted, tests};
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
