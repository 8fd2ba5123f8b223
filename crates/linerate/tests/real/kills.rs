//! Killed runs leave nothing behind and can be resumed.

use crate::common::{Folder, Named, Output};
use crate::host::{assert_all_gone, host_state, lab_processes};
use crate::{command, is_ok, machine};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// SIGKILL at ten moments of a run, or at `LINERATE_TEST_KILLS` moments.
#[test]
fn a_killed_run_leaves_nothing_behind_and_can_be_resumed() {
    let Some(_machine) = machine() else { return };
    let folder = Folder::new("killed");
    let args =
        ["run", "proxy", "--quick", "--rounds", "2", "--only", "nginx/haproxy-tcp", "--resume", folder.str()];
    let trials = killed_and_resumed(&folder, || command(&args));
    assert_eq!(trials.len(), 4);
    let failed: Vec<&Named> = trials.iter().filter(|trial| !is_ok(trial)).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Kills the run repeatedly, completes it, and checks that nothing is left behind and every trial occurs
/// once.
pub(crate) fn killed_and_resumed(folder: &Folder, run: impl Fn() -> Command) -> Vec<Named> {
    let kills = std::env::var("LINERATE_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_u64);
    let (state, processes) = (host_state(), lab_processes());
    // A separate folder, because other programs write to the machine's.
    let temporary = Folder::new("temporary");
    fs::create_dir_all(temporary.path()).unwrap();
    let run = || {
        let mut command = run();
        command.env("TMPDIR", temporary.path());
        command
    };
    let mut killed = 0;
    for kill in 1..=kills {
        let mut child = run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // No multiple of a trial's stages, so that every stage is hit.
        std::thread::sleep(Duration::from_millis(kill * 97 % 1400));
        if child.try_wait().unwrap().is_none() {
            killed += 1;
        }
        end(&mut child);
        assert_all_gone(&processes);
    }
    assert!(killed > 0, "every run ended before it could be killed");
    let out = Output::run(&mut run());
    assert_eq!(out.status, 0, "{}", out.stderr);
    let trials = folder.trials();
    let distinct: BTreeSet<_> = trials.iter().map(|t| (t.id.clone(), t.number, t.warmup)).collect();
    assert_eq!(trials.len(), distinct.len(), "each trial occurs once");
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host has changed");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "the run wrote outside its own folder");
    trials
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
