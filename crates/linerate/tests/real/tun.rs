//! Behind TUN devices.

use crate::common::{Folder, Named, Output, skip};
use crate::host::{assert_all_gone, host_state, lab_processes};
use crate::kills::killed_and_resumed;
use crate::{command, is_ok, linerate, shared_machine};
use linerate::measurement::Outcome;
use std::fs;
use std::path::Path;

/// A suite with only the kernel's stack behind TUN devices; other network stacks would have to be built.
const SUITE: &str = include_str!("tun.toml");

/// A home with that suite and the systems that it names.
fn tun_home() -> Folder {
    let home = Folder::new("tun-home");
    let systems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    fs::create_dir_all(home.path().join("suites")).unwrap();
    fs::create_dir_all(home.path().join("systems")).unwrap();
    fs::write(home.path().join("suites/tun.toml"), SUITE).unwrap();
    for name in ["kernel", "native"] {
        std::os::unix::fs::symlink(systems.join(name), home.path().join("systems").join(name)).unwrap();
    }
    home
}

fn is_ok_or_names_the_remedy(trial: &Named) -> bool {
    let has_remedy = |reason: &str| reason.contains("/dev/net/tun") && reason.contains("as root");
    is_ok(trial) || matches!(&trial.outcome, Outcome::Unsupported { reason } if has_remedy(reason))
}

#[test]
fn the_kernel_responds_behind_tun_devices_or_the_row_names_the_remedy() {
    let Some(_machine) = shared_machine() else { return };
    let (state, processes) = (host_state(), lab_processes());
    let (home, folder) = (tun_home(), Folder::new("tun"));
    let out = Output::run(command(&["run", "tun", "--out", folder.str()]).env("LINERATE_HOME", home.path()));
    let trials = folder.trials();
    let lossy = trials.iter().filter(|trial| trial.id.starts_with("lossy/")).count();
    assert_eq!((lossy, trials.len() - lossy), (4, 8), "{}{}", out.stdout, out.stderr);
    for trial in &trials {
        assert!(is_ok_or_names_the_remedy(trial), "{}: {:?}", trial.id, trial.outcome);
        if let Some(measurement) = trial.measurement().filter(|_| trial.id.starts_with("usage/")) {
            let usage = measurement.usage.expect("the table measures it");
            assert!(usage.before.descriptors > 2 && usage.before.memory.0 > 0, "{usage:?}");
            assert!(usage.after.descriptors <= usage.before.descriptors + 8, "{usage:?}");
        }
    }
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host has changed");
}

/// TUN devices end with their namespaces, also in the middle of trials.
#[test]
fn a_run_killed_behind_tun_devices_leaves_nothing_behind() {
    let Some(_machine) = shared_machine() else { return };
    if linerate(&["doctor"]).stdout.contains("note TUN devices") {
        return skip("no TUN devices on this machine");
    }
    let (home, folder) = (tun_home(), Folder::new("killed-tun"));
    let run = || {
        let mut command =
            command(&["run", "tun", "--rounds", "2", "--only", "client-*/*", "--resume", folder.str()]);
        command.env("LINERATE_HOME", home.path());
        command
    };
    let trials = killed_and_resumed(&folder, run);
    assert_eq!(trials.len(), 8);
    assert!(trials.iter().all(is_ok));
}
