//! A server that hangs in the middle of a window has no number, whatever the client; a healthy one has.

use crate::common::{self, Folder, Named, Output, skip};
use crate::host::{assert_all_gone, lab_processes};
use crate::{command, machine};
use linerate::measurement::Outcome;
use std::fs;
use std::path::Path;

const PYTHON: &str = "/usr/bin/python3";

/// An HTTP server that hangs, connections open, this long after it has had more requests than a verification
/// has. It sleeps and is not stopped: turns continue what is stopped.
const SERVER: &str = "
import selectors, socket, time
page = open('{{ docroot }}/index.html', 'rb').read()
answer = b'HTTP/1.1 200 OK\\r\\nContent-Length: ' + str(len(page)).encode() + b'\\r\\n\\r\\n' + page
listener = socket.create_server(('{{ listen.ip }}', {{ listen.port }}), backlog=511)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
served, busy_since = 0, None
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            selector.register(listener.accept()[0], selectors.EVENT_READ)
            continue
        try:
            count = key.fileobj.recv(65536).count(b'\\r\\n\\r\\n')
            key.fileobj.sendall(answer * count)
        except OSError:
            count = 0
        if count == 0:
            selector.unregister(key.fileobj)
            key.fileobj.close()
        served += count
        if served >= 500 and busy_since is None:
            busy_since = time.monotonic()
        if busy_since is not None and time.monotonic() - busy_since > HANGS_AFTER:
            time.sleep(1000)
";

fn home_with_server(hangs_after: &str) -> Folder {
    let home = Folder::new("hang-home");
    fs::create_dir_all(home.path().join("suites")).unwrap();
    fs::create_dir_all(home.path().join("systems/python-hang")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    for system in ["native", "direct", "wrk"] {
        common::copy(&root.join(system), &home.path().join("systems").join(system));
    }
    let suite = "question = '?'\nrounds = 1\nwarmup-rounds = 0\nquick = { rounds = 1 }\n\
        [[tables]]\nname = 't'\ntitle = 't'\nmetric = 'operations-per-second'\nlayer = 'http'\n\
        workload = 'rr'\nrows = 'path'\ncolumns = 'client'\nid = '{{ client }}/{{ path }}'\n\
        baseline = { path = 'direct' }\n\
        roles = { client = '{{ client }}', relay = '{{ path }}', server = 'python-hang' }\n\
        parameters = { seconds = 1, connections = 4, size = 128, timeout_ms = 500 }\n\
        [tables.axes]\nclient = ['native', 'wrk']\npath = ['direct', 'native-splice']\n\
        [[tables]]\nname = 'servers'\ntitle = 't'\nmetric = 'operations-per-second'\nlayer = 'http'\n\
        workload = 'rr'\nrows = 'server'\ncolumns = 'client'\nid = 'servers/{{ server }}/{{ client }}'\n\
        baseline = { server = 'python-healthy' }\n\
        roles = { client = '{{ client }}', server = '{{ server }}' }\n\
        parameters = { operations = 200, connections = 4, size = 128, timeout_ms = 500 }\n\
        [tables.axes]\nclient = ['native']\nserver = ['python-healthy', 'python-hang']\n";
    fs::write(home.path().join("suites/one.toml"), suite).unwrap();
    let mut system = format!("about = 'hangs'\nprogram = '{PYTHON}'\n");
    for (variant, hangs_after) in [("python-hang", hangs_after), ("python-healthy", "1000")] {
        let script = SERVER.replace("HANGS_AFTER", hangs_after);
        system += &format!(
            "[variants.{variant}]\nabout = 'hangs'\nroles = ['server']\nstart = ['-c', '''{script}''']\n"
        );
    }
    fs::write(home.path().join("systems/python-hang/system.toml"), system).unwrap();
    home
}

/// Reasons of trials and duets without progress for a while: the server hung, or the machine stood still.
const STALLED: [&str; 3] = ["no progress", "hung", "timeout"];

/// The trials and duets of a server that hangs after this many seconds; `None`, with a message, without
/// Python.
fn run(hangs_after: &str) -> Option<(Vec<Named>, Vec<Named>)> {
    if !Path::new(PYTHON).exists() {
        skip("python3 is not installed");
        return None;
    }
    let (home, folder) = (home_with_server(hangs_after), Folder::new("hang"));
    let mut command = command(&["run", "one", "--out", folder.str()]);
    let out = Output::run(command.env("LINERATE_HOME", home.path()));
    let (trials, duets) = (folder.trials(), folder.duets());
    assert!(!trials.is_empty() && !duets.is_empty(), "{}{}", out.stdout, out.stderr);
    Some((trials, duets))
}

/// As [`run`], again where a healthy cell failed as if its server hung: the machine may have stood still.
fn run_healthy(hangs_after: &str, is_healthy: impl Fn(&Named) -> bool) -> Option<(Vec<Named>, Vec<Named>)> {
    let stalled = |one: &Named| {
        let Outcome::Failed { reason, .. } = &one.outcome else { return false };
        is_healthy(one) && STALLED.iter().any(|part| reason.contains(part))
    };
    let mut found = run(hangs_after)?;
    for _ in 0..2 {
        if found.0.iter().chain(&found.1).any(stalled) {
            found = run(hangs_after)?;
        }
    }
    Some(found)
}

#[test]
fn a_server_that_hangs_has_no_number_and_no_ratio_and_the_healthy_one_is_measured_beside_itself() {
    let Some(_machine) = machine() else { return };
    let processes = lab_processes();
    // A warm-up unit may starve a side, and is in no number.
    let is_healthy = |one: &Named| {
        let is_alone = one.id.starts_with("servers/");
        is_alone || (one.id.contains("servers/") && !one.id.contains("python-hang") && !one.warmup)
    };
    let Some((trials, duets)) = run_healthy("0.17", is_healthy) else { return };
    for trial in &trials {
        // Those of the other table end before the server hangs; its duets last longer.
        assert_hung_unless(trial.id.starts_with("servers/"), &trial.id, &trial.outcome);
    }
    assert_all_gone(&processes);
    let of_servers = |duet: &&Named| duet.id.contains("servers/") && !duet.warmup;
    let (with_hung, healthy): (Vec<&Named>, Vec<&Named>) =
        duets.iter().filter(of_servers).partition(|duet| duet.id.contains("python-hang"));
    assert!(!with_hung.is_empty() && !healthy.is_empty(), "{duets:?}");
    for duet in with_hung {
        assert_hung_unless(false, &duet.id, &duet.outcome);
    }
    for duet in healthy {
        assert_hung_unless(true, &duet.id, &duet.outcome);
    }
}

fn assert_hung_unless(is_healthy: bool, what: &str, outcome: &Outcome) {
    match outcome {
        Outcome::Missing { .. } => {}
        Outcome::Ok if is_healthy => {}
        Outcome::Failed { reason, .. } if !is_healthy => {
            assert!(STALLED.iter().any(|part| reason.contains(part)), "{what}: {reason}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn the_same_server_has_numbers_if_it_does_not_hang() {
    let Some(_machine) = machine() else { return };
    let Some((trials, duets)) = run_healthy("1000", |_| true) else { return };
    let outcomes = trials.iter().map(|trial| &trial.outcome).chain(duets.iter().map(|duet| &duet.outcome));
    for outcome in outcomes {
        assert!(matches!(outcome, Outcome::Ok | Outcome::Missing { .. }), "{outcome:?}");
    }
}
