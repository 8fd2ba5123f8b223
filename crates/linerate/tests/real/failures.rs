//! Faulty servers: each is a row with a reason.

use crate::common::{self, Folder, Output, skip};
use crate::host::{assert_all_gone, lab_processes};
use crate::{command, machine};
use linerate::measurement::Trial;
use std::fs;
use std::path::Path;

/// A home with a suite of one cell; its server is a shell script.
fn home_with_server(script: &str) -> Folder {
    let home = Folder::new("home");
    fs::create_dir_all(home.path().join("suites")).unwrap();
    fs::create_dir_all(home.path().join("systems/odd")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    for system in ["native", "direct", "nginx"] {
        common::copy(&root.join(system), &home.path().join("systems").join(system));
    }
    let suite = "question = '?'\nrounds = 1\nquick = { rounds = 1 }\n[[tables]]\nname = 't'\ntitle = 't'\n\
        metric = 'seconds'\nlayer = 'http'\nworkload = 'crr'\nrows = 'path'\ncolumns = 'server'\n\
        id = '{{ server }}/{{ path }}'\nbaseline = { path = 'direct' }\n\
        roles = { client = 'native', relay = '{{ path }}', server = '{{ server }}' }\n\
        parameters = { operations = 50000, connections = 5, size = 4096 }\n\
        [tables.axes]\nserver = ['odd']\npath = ['direct']\n";
    fs::write(home.path().join("suites/one.toml"), suite).unwrap();
    let system = format!(
        "about = 'odd'\nprogram = '/bin/sh'\nneeds = ['nginx']\n\
         [variants.odd]\nabout = 'odd'\nroles = ['server']\n\
         configs = ['server.conf']\nstart = ['-c', '''{script}''']\n"
    );
    fs::write(home.path().join("systems/odd/system.toml"), system).unwrap();
    fs::copy(root.join("nginx/server.conf"), home.path().join("systems/odd/server.conf")).unwrap();
    home
}

/// Runs the cell; returns status, journal and output.
fn run_odd(script: &str) -> (i32, Vec<Trial>, String) {
    let home = home_with_server(script);
    let folder = Folder::new("odd");
    let mut command = command(&["run", "one", "--out", folder.str()]);
    let out = Output::of(command.env("LINERATE_HOME", home.path()));
    (out.status, folder.journal(), out.stdout + &out.stderr)
}

/// A run without a trial must print the reason.
fn is_without_nginx(trials: &[Trial], output: &str) -> bool {
    assert!(!trials.is_empty() || output.contains("is not installed"), "{output}");
    trials.is_empty()
}

#[test]
fn a_server_that_does_not_start_is_a_row_with_its_own_message() {
    let Some(_machine) = machine() else { return };
    let broken = "sed -i s/listen/lissen/ {{ dir }}/server.conf; exec nginx -c {{ dir }}/server.conf";
    let (status, trials, output) = run_odd(broken);
    if is_without_nginx(&trials, &output) {
        return skip("nginx is not installed");
    }
    assert_eq!(status, 3, "{output}");
    for part in ["at start", "ended before it was ready", "unknown directive", "server.conf:"] {
        assert!(output.contains(part), "{part} is missing in {output}");
    }
}

#[test]
fn a_server_that_exits_sends_a_wrong_page_or_hangs_is_a_failed_row() {
    let Some(_machine) = machine() else { return };
    for (script, stage, part) in [
        ("sleep 1000", "at start", "was not ready within"),
        (
            "sed -i s,{{ docroot }},{{ dir }}, {{ dir }}/server.conf; echo wrong > {{ dir }}/index.html; \
             exec nginx -c {{ dir }}/server.conf",
            "at verify",
            "wrong_length",
        ),
        (
            "nginx -c {{ dir }}/server.conf & sleep 0.6; kill -9 $!; exit 9",
            "at measure",
            "ended before the client (exit status 9)",
        ),
    ] {
        let processes = lab_processes();
        let (status, trials, output) = run_odd(script);
        if is_without_nginx(&trials, &output) {
            return skip("nginx is not installed");
        }
        assert_eq!(status, 3, "{script}: {output}");
        assert!(output.contains(stage) && output.contains(part), "{script}: {output}");
        assert_all_gone(&processes);
    }
}
