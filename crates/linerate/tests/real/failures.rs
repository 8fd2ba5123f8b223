//! Faulty servers: each is a row with a reason.

use crate::common::{self, Folder, Named, Output, skip};
use crate::host::{assert_all_gone, host_state, lab_processes};
use crate::{command, shared_machine};
use linerate::measurement::{Outcome, Run};
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
    let suite = "question = '?'\nrounds = 1\nwarmup-rounds = 0\nquick = { rounds = 1 }\n\
        [[tables]]\nname = 't'\ntitle = 't'\n\
        metric = 'seconds'\nlayer = 'http'\nworkload = 'crr'\nrows = 'path'\ncolumns = 'server'\n\
        id = '{{ server }}/{{ path }}'\nbaseline = { path = 'direct' }\n\
        roles = { client = 'native', relay = '{{ path }}', server = '{{ server }}' }\n\
        parameters = { operations = 50000, connections = 5, size = 4096 }\n\
        [tables.axes]\nserver = ['odd']\npath = ['direct']\n";
    fs::write(home.path().join("suites/one.toml"), suite).unwrap();
    // The values that its config has.
    let nginx = fs::read_to_string(root.join("nginx/system.toml")).unwrap();
    let settings = nginx.split("[settings]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap();
    let system = format!(
        "about = 'odd'\nprogram = '/bin/sh'\nneeds = ['nginx']\n[settings]{settings}\n\
         [variants.odd]\nabout = 'odd'\nroles = ['server']\n\
         configs = ['server.conf']\nstart = ['-c', '''{script}''']\n"
    );
    fs::write(home.path().join("systems/odd/system.toml"), system).unwrap();
    fs::copy(root.join("nginx/server.conf"), home.path().join("systems/odd/server.conf")).unwrap();
    home
}

/// Runs the cell; returns status, journal and output.
fn run_odd(script: &str) -> (i32, Vec<Named>, String) {
    let home = home_with_server(script);
    let folder = Folder::new("odd");
    let out = run_in(&home, &folder);
    (out.status, folder.trials(), out.stdout + &out.stderr)
}

fn run_in(home: &Folder, folder: &Folder) -> Output {
    Output::run(command(&["run", "one", "--out", folder.str()]).env("LINERATE_HOME", home.path()))
}

/// A run without a trial must print the reason.
fn is_without_nginx(trials: &[Named], output: &str) -> bool {
    assert!(!trials.is_empty() || output.contains("is not installed"), "{output}");
    trials.is_empty()
}

#[test]
fn a_server_that_does_not_start_is_a_row_with_its_own_message() {
    let Some(_machine) = shared_machine() else { return };
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

/// The server prints the settings of its namespace and ends. It is on another host than the agent.
#[test]
fn a_topology_has_the_settings_that_the_report_names_and_none_of_the_hosts() {
    let Some(_machine) = shared_machine() else { return };
    let state = host_state();
    let names =
        ["tcp_congestion_control", "tcp_rmem", "tcp_wmem", "conf/all/rp_filter", "ip_local_port_range"];
    let print = "cd /proc/sys/net/ipv4; for f in NAMES; do echo $f: $(cat $f) >&2; done; exit 1";
    let (home, folder) =
        (home_with_server(&print.replace("NAMES", &names.join(" "))), Folder::new("settings"));
    let out = run_in(&home, &folder);
    let trials = folder.trials();
    if is_without_nginx(&trials, &(out.stdout + &out.stderr)) {
        return skip("nginx is not installed");
    }
    let Outcome::Failed { log, .. } = &trials[0].outcome else { panic!("{:?}", trials[0].outcome) };
    let run: Run = serde_json::from_str(&folder.read("run.json")).unwrap();
    let reported: Vec<&str> = run.host.facts["set by the lab"].split("; ").collect();
    for name in names {
        let value = log.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).expect(log);
        let line = format!("net.ipv4.{} = {value}", name.replace('/', "."));
        assert!(reported.contains(&line.as_str()), "{line} is missing in {reported:?}");
    }
    assert!(log.contains("tcp_rmem: 4096 131072 6291456"), "{log}");
    assert!(log.contains("control: cubic") || log.contains("control: reno"), "{log}");
    assert_eq!(host_state(), state, "the host has changed");
}

#[test]
fn a_server_that_exits_sends_a_wrong_page_hangs_or_prints_without_end_is_a_failed_row() {
    let Some(_machine) = shared_machine() else { return };
    for (script, stage, part) in [
        ("sleep 1000", "at start", "was not ready within"),
        (
            "sed -i s,{{ docroot }},{{ dir }}, {{ dir }}/server.conf; echo wrong > {{ dir }}/index.html; \
             exec nginx -c {{ dir }}/server.conf",
            "at verify",
            "wrong_length",
        ),
        (
            // A verification has fewer requests than 5,000, and the trial more.
            "sed -i 's,access_log .*,access_log {{ dir }}/requests;,' {{ dir }}/server.conf; \
             nginx -c {{ dir }}/server.conf & \
             until [ $(cat {{ dir }}/requests 2> /dev/null | wc -l) -gt 5000 ]; do sleep 0.02; done; \
             kill -9 $!; exit 9",
            "at measure",
            "ended before the client (exit status 9)",
        ),
        ("exec tr '\\\\000' '\\\\n' < /dev/zero", "at start", "ended by linerate: it printed more than"),
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
