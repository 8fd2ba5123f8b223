//! The real lab with real systems, in quick form. These tests check structure and correctness, never speed.
//!
//! A system that is not installed is a `missing` row, as for users. On a machine without namespaces the tests
//! are skipped with the reason.

mod asked;
mod bound;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod confined;
mod failures;
mod fpm;
mod hangs;
mod host;
mod images;
mod kills;
mod latency;
mod launch;
mod own_paths;
mod paths;
mod project;
mod tun;
mod upgrades;
mod waiting;
mod why;

use common::{Folder, Named, Output, skip};
use host::{assert_all_gone, host_state, lab_processes};
use linerate::measurement::Outcome;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

/// Held alone by tests of what linerate measures, and together by those of what it does: most of their time
/// is windows and pauses. On Linux a test that waits for it alone comes before later ones.
static MACHINE: RwLock<()> = RwLock::new(());

type Alone = RwLockWriteGuard<'static, ()>;
type Shared = RwLockReadGuard<'static, ()>;

/// The whole machine, until the test ends; `None`, with a message, if the lab cannot be raised. A failed test
/// does not stop the others.
fn machine() -> Option<Alone> {
    let alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    lab_is_available().then_some(alone)
}

/// As [`machine`], but other tests measure or build at the same time.
fn shared_machine() -> Option<Shared> {
    let shared = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    lab_is_available().then_some(shared)
}

/// In the environment of all processes that a test starts: its name.
const MARK: &str = "LINERATE_TEST";

fn name_of_test() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn every_way_of_forwarding_works_with_every_server() {
    let Some(_machine) = machine() else { return };
    let (state, processes) = (host_state(), lab_processes());
    let folder = Folder::new("every");
    let out = linerate(&["run", "proxy", "--quick", "--rounds", "1", "--out", folder.str()]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host has changed");
    for trial in folder.trials() {
        // sslh-select drops a varying number of requests when connections overlap (systems/sslh/NOTES.md).
        if trial.id.contains("sslh-select") {
            continue;
        }
        assert!(is_ok(&trial), "{}: {:?}", trial.id, trial.outcome);
        let measurement = trial.measurement().unwrap();
        assert_eq!(measurement.operations + measurement.errors.total(), 5000, "{}", trial.id);
        assert!(
            measurement.elapsed.0 > 0 && measurement.cpu.values().all(|nanos| nanos.0 > 0),
            "{}",
            trial.id
        );
        if !trial.id.starts_with("published/") {
            let latency = measurement.latency.as_ref().unwrap();
            assert_eq!(latency.total(), Some(measurement.operations), "{}", trial.id);
            assert!(measurement.verified > 0, "{}", trial.id);
        }
    }
}

/// As root, also runs as an ordinary user: a user namespace, the user's uid, no rights on the host.
#[test]
fn an_unprivileged_user_can_measure() {
    let Some(_machine) = machine() else { return };
    if !nix::unistd::geteuid().is_root() {
        return; // the other tests have run without privileges
    }
    let folder = Folder::new("unprivileged");
    fs::create_dir_all(folder.path()).unwrap();
    let unprivileged = Some(nix::unistd::Uid::from_raw(65_534));
    nix::unistd::chown(folder.path(), unprivileged, None).unwrap();
    // Copies, because programs in a closed home folder are not accessible to other users.
    let bin = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().unwrap();
    for program in ["linerate", "linerate-load", "linerate-natives"] {
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
    let result = Output::run(command.current_dir(folder.path()));
    if result.status == 3 && result.stderr.contains("the kernel refuses namespaces") {
        return skip(&result.stderr);
    }
    assert_eq!(result.status, 0, "{}", result.stderr);
    let run = folder.read("out/run.json");
    assert!(
        run.contains("user namespace") && run.contains("net.ipv4.tcp_rmem = 4096 131072 6291456"),
        "{run}"
    );
    for units in [common::trials(&out), common::duets(&out)] {
        assert!(!units.is_empty() && units.iter().all(is_ok), "{units:?}");
    }
}

/// linerate with the project's own suites and systems.
fn command(args: &[&str]) -> Command {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(args).env("LINERATE_HOME", home).env(MARK, name_of_test()).stdin(Stdio::null());
    command.env(
        "XDG_CACHE_HOME",
        std::env::temp_dir().join(format!("linerate-test-{}-cache", std::process::id())),
    );
    command
}

fn linerate(args: &[&str]) -> Output {
    Output::run(&mut command(args))
}

/// True if the lab can be raised and the load engine is built.
fn lab_is_available() -> bool {
    let doctor = linerate(&["doctor"]);
    let engine = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-load").exists();
    if doctor.status != 0 || !engine {
        skip(&format!("no lab on this machine (engine built: {engine})\n{}{}", doctor.stdout, doctor.stderr));
    }
    doctor.status == 0 && engine
}

fn is_ok(trial: &Named) -> bool {
    trial.outcome == Outcome::Ok
}
