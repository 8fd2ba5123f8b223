//! The real lab with real systems, in quick form. These tests assert structure and correctness, never speed.
//!
//! A system that is not installed is a `missing` row, as it is for a user; a machine that allows no namespaces
//! skips with a line that says so.

#[path = "../common/mod.rs"]
mod common;
mod failures;
mod host;
mod kills;
mod tun;

use common::{Folder, Output, skip};
use host::{assert_all_gone, host_state, lab_processes};
use linerate::measurement::{Entry, Outcome, Trial};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// One after the other: every test here loads the machine and looks at all its processes.
#[test]
fn the_real_lab() {
    if !lab_is_there() {
        return;
    }
    every_way_of_forwarding_works_in_front_of_every_server();
    kills::a_killed_run_leaves_nothing_and_can_be_resumed();
    failures::a_server_that_does_not_start_is_a_row_with_its_own_words();
    failures::a_server_that_dies_answers_wrongly_or_hangs_is_a_failed_row();
    nobody_in_particular_can_measure();
    if tun::the_kernel_answers_behind_tun_devices_or_the_row_says_who_can_open_them() {
        tun::a_run_killed_behind_tun_devices_leaves_nothing();
    }
}

fn every_way_of_forwarding_works_in_front_of_every_server() {
    let (state, processes) = (host_state(), lab_processes());
    let folder = Folder::new("every");
    let out = linerate(&["run", "proxy", "--quick", "--rounds", "1", "--out", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host is not as it was");
    for trial in folder.journal() {
        // sslh-select drops requests when connections overlap, now more, now fewer (systems/sslh/NOTES.md).
        if trial.cell.contains("sslh-select") {
            continue;
        }
        assert!(is_ok(&trial), "{}: {:?}", trial.cell, trial.outcome);
        let measurement = trial.measurement.unwrap();
        assert_eq!(measurement.operations + measurement.errors.total(), 2000, "{}", trial.cell);
        assert!(
            measurement.elapsed.0 > 0 && measurement.cpu.values().all(|nanos| nanos.0 > 0),
            "{}",
            trial.cell
        );
        if !trial.cell.ends_with("/ab") {
            let latency = measurement.latency.unwrap();
            assert_eq!(latency.total(), measurement.operations, "{}", trial.cell);
            assert!(measurement.verified > 0, "{}", trial.cell);
        }
    }
}

/// As root, the road of a normal user is tried as well: a user namespace, own uid, no rights on the host.
fn nobody_in_particular_can_measure() {
    if !nix::unistd::geteuid().is_root() {
        return; // then every test above was that
    }
    let folder = Folder::new("nobody");
    fs::create_dir_all(folder.path()).unwrap();
    let nobody = Some(nix::unistd::Uid::from_raw(65_534));
    nix::unistd::chown(folder.path(), nobody, None).unwrap();
    // Programs under a closed home folder cannot be reached by other users: copies can.
    let bin = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
    for program in ["linerate", "linerate-load"] {
        fs::copy(bin.join(program), folder.path().join(program)).unwrap();
    }
    let home = folder.path().join("home");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["suites", "systems"] {
        common::copy(&root.join(part), &home.join(part));
    }
    let out = folder.path().join("out");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(folder.path().join("linerate"));
    command.args([
        "run",
        "proxy",
        "--quick",
        "--rounds",
        "1",
        "--only",
        "nginx/{iptables,nftables,haproxy-http,sslh-fork}",
    ]);
    command.arg("--out").arg(&out).env("LINERATE_HOME", &home).env("XDG_CACHE_HOME", folder.path());
    let result = Output::of(command.current_dir(folder.path()));
    if result.status == 3 && result.stderr.contains("the kernel refuses namespaces") {
        return skip(&result.stderr);
    }
    assert_eq!(result.status, 0, "{}", result.stderr);
    assert!(folder.read("out/run.json").contains("user namespace"));
    let journal = folder.read("out/journal.jsonl");
    let (entries, _) = linerate::journal::parse_journal("journal", journal.as_bytes());
    let is_ok = |entry: &Entry| matches!(entry, Entry::Trial(trial) if is_ok(trial));
    assert!(!entries.is_empty() && entries.iter().all(is_ok), "{journal}");
}

/// linerate with the project's own suites and systems.
fn command(args: &[&str]) -> Command {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(args).env("LINERATE_HOME", home).stdin(Stdio::null());
    command.env(
        "XDG_CACHE_HOME",
        std::env::temp_dir().join(format!("linerate-test-{}-cache", std::process::id())),
    );
    command
}

fn linerate(args: &[&str]) -> Output {
    Output::of(&mut command(args))
}

/// The lab can be raised here, and the load engine is built beside linerate.
fn lab_is_there() -> bool {
    let doctor = linerate(&["doctor"]);
    let engine = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-load").exists();
    if doctor.status != 0 || !engine {
        skip(&format!("no lab here (engine built: {engine})\n{}{}", doctor.stdout, doctor.stderr));
    }
    doctor.status == 0 && engine
}

fn is_ok(trial: &Trial) -> bool {
    trial.outcome == Outcome::Ok
}
