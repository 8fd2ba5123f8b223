//! Runs that are killed: nothing is left of them, and they can be resumed.

use crate::common::{Folder, Output};
use crate::host::{assert_all_gone, host_state, lab_processes};
use crate::{command, is_ok};
use linerate::measurement::Trial;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// SIGKILL at ten moments spread over a run; the environment variable asks for more.
pub(crate) fn a_killed_run_leaves_nothing_and_can_be_resumed() {
    let folder = Folder::new("killed");
    let args = [
        "run",
        "proxy",
        "--quick",
        "--rounds",
        "2",
        "--only",
        "lighttpd/haproxy-tcp",
        "--resume",
        folder.str(),
    ];
    let trials = killed_and_resumed(&folder, || command(&args));
    assert_eq!(trials.len(), 6);
    assert!(trials.iter().all(is_ok));
}

/// Kills the run again and again, lets it end, and looks at what is left; every trial is there once.
pub(crate) fn killed_and_resumed(folder: &Folder, run: impl Fn() -> Command) -> Vec<Trial> {
    let kills = std::env::var("LINERATE_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_u64);
    let (state, processes) = (host_state(), lab_processes());
    // Of its own: others write into the machine's meanwhile.
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
        // Steps that share no factor with a trial's stages, so that every stage gets its turn.
        std::thread::sleep(Duration::from_millis(kill * 97 % 1400));
        if child.try_wait().unwrap().is_none() {
            killed += 1;
        }
        end(&mut child);
        assert_all_gone(&processes);
    }
    assert!(killed > 0, "every run was over before it could be killed");
    let out = Output::of(&mut run());
    assert_eq!(out.status, 0, "{}", out.stderr);
    let trials = folder.journal();
    let distinct: BTreeSet<_> = trials.iter().map(|t| (t.cell.clone(), t.round, t.warmup)).collect();
    assert_eq!(trials.len(), distinct.len(), "each trial is there once");
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host is not as it was");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "nothing is new but the run's own folder");
    trials
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
