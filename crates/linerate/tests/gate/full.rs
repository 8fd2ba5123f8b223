//! A disk that is full in the middle of a run.

use crate::common::{Folder, skip};
use crate::script::Script;
use std::fs;
use std::process::Command;

/// Mounts so many KiB of memory on a folder, seen by itself alone, and becomes the command behind.
const ON_A_SMALL_DISK: &str = "mount -t tmpfs -o size=$1k none \"$2\" && shift 2 && exec \"$@\"";

#[test]
fn a_disk_that_is_full_hides_no_verdict() {
    if !nix::unistd::geteuid().is_root() {
        return skip("a file system is mounted by root alone");
    }
    let script = Script::new("full");
    let folder = Folder::new("gate-full");
    fs::create_dir_all(folder.path()).unwrap();
    let out = folder.path().join("out");
    let run = |kib: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "-m",
            "--propagation",
            "private",
            "sh",
            "-c",
            ON_A_SMALL_DISK,
            "sh",
            kib,
            folder.str(),
        ]);
        command.arg(env!("CARGO_BIN_EXE_linerate")).args([
            "gate",
            "mini",
            "--only",
            "fast/pipe",
            "--seed",
            "7",
        ]);
        command.args(["--base", "set:buffer=16384", "--head", "set:buffer=4096", "--out"]).arg(&out);
        script.run_by(&mut command)
    };
    // The units that were made have their answer, and the error is the last line.
    let during = run("24");
    assert!(
        during.stdout.starts_with("undecided whether pipe is slower"),
        "{}{}",
        during.stdout,
        during.stderr
    );
    assert!(during.stdout.contains("fast/pipe") && during.stdout.contains("fresh processes in each of"));
    let error = during.stderr.lines().last().unwrap();
    assert!(during.status == 3 && error.contains("journal.jsonl: No space left on device"), "{error}");
    // All were made, and there is no room for a report.
    let after = run("64");
    assert_eq!(after.status, 0, "{}", after.stderr);
    assert!(after.stdout.starts_with("no slowdown of pipe with this change"), "{}", after.stdout);
    let warning = after.stderr.lines().find(|line| line.starts_with("warning: ")).unwrap();
    assert!(warning.contains("report.html") && warning.contains("No space left on device"), "{warning}");
}
