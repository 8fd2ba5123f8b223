//! Roles on other hosts: each a set of namespaces with an sshd of its own (`scripts/hosts`). Needs root, sshd
//! and linerate-load.

mod common;

use common::{Folder, Output, skip};
use linerate::stats::cost::Consumer;
use linerate_contract::Role;
use std::path::Path;
use std::process::Command;

/// A trial of a second with nothing but linerate's own systems.
const RUN: &str = "$LINERATE run transport --quick --only tcp/1/native --quiet --host-network";
/// Goes on with it.
const AGAIN: &str = "$LINERATE run --resume $OUT --quiet --host-network --host server=ssh:box2";
/// Waits until the journal of $OUT has more lines, for a minute at most.
const TRIALS: &str = "trials() { for _ in $(seq 600); do
    [ $(cat $OUT/journal.jsonl 2> /dev/null | wc -l) -gt $1 ] && return; sleep 0.1
done; }";

/// Exit status of `scripts/hosts` on a machine without its tools.
const SKIPPED: i32 = 77;

/// Runs a script among hosts; `None` where this machine cannot have them.
fn among(hosts: &str, out: &Folder, script: &str) -> Option<Output> {
    let linerate = Path::new(env!("CARGO_BIN_EXE_linerate"));
    if !linerate.with_file_name("linerate-load").exists() {
        skip("linerate-load is not built");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join("scripts/hosts"));
    command.args([hosts, &format!("{TRIALS}\n{script}")]).current_dir(&root);
    command.env("LINERATE", linerate).env("OUT", out.path()).env_remove("LINERATE_LAB_SCRIPT");
    let output = Output::run(&mut command);
    if output.status == SKIPPED {
        skip(output.stderr.trim());
        return None;
    }
    Some(output)
}

/// Prints processes of linerate, listening ports besides sshd's, and files outside of the cache on host 2, if
/// they stay for half a minute.
const LEFT: &str = "on 2 sh -c 'for _ in $(seq 300); do left=$(pgrep -l linerate; ss -Hltn | grep -v :22; \
                    find /root /tmp -type f | grep -v -e /.ssh/ -e /.cache/linerate/agents/); \
                    [ -n \"$left\" ] || exit 0; sleep 0.1; done; echo \"$left\"'";

#[test]
fn client_relay_and_server_on_three_hosts_are_measured_and_nothing_is_left() {
    let out = Folder::new("hosts-three");
    let script = format!(
        "on 1 {RUN} --rounds 2 --host server=ssh:box2 --host relay=ssh:box3 --out $OUT >&2; echo LEFT; {LEFT}"
    );
    let Some(output) = among("3", &out, &script) else { return };
    assert_eq!((output.status, output.stdout.as_str()), (0, "LEFT\n"), "{}", output.stderr);
    let report = out.report();
    let hosts = report.hosts.iter().map(|host| format!("{} is {}", host.place, host.host.name));
    assert_eq!(hosts.collect::<Vec<_>>(), ["local is box1", "ssh:box3 is box3", "ssh:box2 is box2"]);
    assert_eq!(report.hosts[2].host.facts["interface driver"], "veth");
    let cell = report.suites[0].cells.iter().find(|cell| cell.id == "tcp/1/native").unwrap();
    assert!(cell.n == 2 && cell.cpu.contains_key(&Consumer::Role(Role::Server)), "{cell:?}");
    assert!(cell.systems.iter().all(|system| system.version.is_some()), "{:?}", cell.systems);
}

#[test]
fn an_agent_that_is_killed_fails_one_trial_and_the_run_goes_on() {
    let out = Folder::new("hosts-killed");
    let script = format!(
        "on 1 {RUN} --rounds 4 --host server=ssh:box2 --out $OUT >&2 & trials 1\n\
         on 2 sh -c 'kill -9 $(pgrep -f -o \"[l]ab-agent --stdio\")'; wait $!; echo LEFT; {LEFT}"
    );
    let Some(output) = among("2", &out, &script) else { return };
    assert_eq!((output.status, output.stdout.as_str()), (0, "LEFT\n"), "{}", output.stderr);
    let journal = out.read("journal.jsonl");
    assert_eq!(journal.matches("the host ssh:box2 is lost").count(), 1, "{journal}");
    assert!(journal.matches("\"outcome\":\"ok\"").count() >= 3, "{journal}");
}

/// SIGKILL at five moments of a run, or at `LINERATE_TEST_KILLS` moments, from its first to the middle of a
/// trial; a last one is killed after its first trial, and completed.
#[test]
fn a_killed_run_leaves_nothing_on_any_host_and_resume_completes() {
    let out = Folder::new("hosts-kills");
    let kills = std::env::var("LINERATE_TEST_KILLS").unwrap_or_else(|_| "5".to_owned());
    let script = format!(
        "set +e; killed=0; for kill in $(seq {kills}); do\n\
         on 1 {RUN} --rounds 4 --host server=ssh:box2 --out $OUT/$kill >&2 &\n\
         for _ in $(seq 600); do on 1 pgrep -x linerate > /dev/null && break; sleep 0.1; done\n\
         ms=$((kill * 397 % 3000)); sleep $((ms / 1000)).$(printf %03d $((ms % 1000)))\n\
         on 1 pkill -9 -o -x linerate && killed=$((killed + 1)); wait $!\n\
         for _ in $(seq 300); do on 1 pgrep linerate > /dev/null || break; sleep 0.1; done\n\
         on 1 pgrep -l linerate; {LEFT}\n\
         done; echo killed $killed; OUT=$OUT/last\n\
         on 1 {RUN} --rounds 4 --host server=ssh:box2 --out $OUT >&2 & trials 1\n\
         on 1 pkill -9 -o -x linerate; wait $!\n\
         on 1 {AGAIN} >&2; echo resumed $?; {LEFT}"
    );
    let Some(output) = among("2", &out, &script) else { return };
    assert_eq!(output.stdout, format!("killed {kills}\nresumed 0\n"), "{}", output.stderr);
}

#[test]
fn a_network_that_is_cut_ends_both_sides_and_resume_completes() {
    let out = Folder::new("hosts-cut");
    let script = format!(
        "set +e; on 1 {RUN} --rounds 4 --host server=ssh:box2 --out $OUT >&2 & trials 1\n\
         unplug 2; wait $!; echo status $?\n\
         for _ in $(seq 200); do on 2 pgrep -x linerate > /dev/null || break; sleep 0.1; done; {LEFT}\n\
         plug 2; on 1 {AGAIN} >&2; echo resumed $?"
    );
    let Some(output) = among("2", &out, &script) else { return };
    assert_eq!(output.stdout, "status 3\nresumed 0\n", "{}", output.stderr);
    assert!(output.stderr.contains("go on with `linerate run --resume"), "{}", output.stderr);
    let is_last = |trial: &&common::Named| trial.number == 4 && trial.id == "tcp/1/native";
    assert_eq!(out.trials().iter().filter(is_last).count(), 1);
}

#[test]
fn a_host_that_cannot_be_used_is_refused_with_the_reason() {
    let out = Folder::new("hosts-refused");
    let version =
        "{\"message\":\"up\",\"version\":\"0.0.0\",\"privileges\":\"\",\"perf\":false,\"sysctls\":{}}";
    let script = format!(
        "set +e\n\
         try() {{ on 1 {RUN} --out $OUT \"$@\" 2>&1; echo \"status $?\"; }}\n\
         try --host server=ssh:box4 --hosts /dev/null\n\
         on 2 mount -t tmpfs -o size=1m tmpfs /root/.cache 2>/dev/null || \
             on 2 sh -c 'mkdir /root/.cache; mount -t tmpfs -o size=1m tmpfs /root/.cache'\n\
         try --host server=ssh:box2\n\
         on 2 find /root/.cache -type f\n\
         on 2 umount /root/.cache\n\
         on 2 sh -c \"printf '%s\\n' '#!/bin/sh' \\\"echo '{}'\\\" 'sleep 3' > /run/agent\"\n\
         on 2 chmod +x /run/agent\n\
         printf '[box2]\\nagent = \"/run/agent\"\\n' > $OUT.toml\n\
         try --host server=ssh:box2 --hosts $OUT.toml; rm $OUT.toml",
        version.replace('"', "\\\\\\\"")
    );
    let Some(output) = among("2", &out, &script) else { return };
    let parts: Vec<&str> = output.stdout.split("status 3\n").collect();
    assert_eq!(parts.len(), 4, "{}{}", output.stdout, output.stderr);
    assert!(parts[0].contains("ssh:box4: ssh:"), "{}", parts[0]);
    assert!(
        parts[1].contains("copying linerate to ssh:box2") && parts[1].contains("No space"),
        "{}",
        parts[1]
    );
    assert!(parts[2].starts_with("linerate: ssh:box2: linerate there is 0.0.0, here"), "{}", parts[2]);
    assert!(!out.path().exists());
}

#[test]
fn the_cpu_time_of_servers_on_other_hosts_is_known_by_ssh() {
    let out = Folder::new("hosts-watched");
    let server = r#"
import socket, sys
listener = socket.create_server(("0.0.0.0", 8000))
while True:
    connection, _ = listener.accept()
    while connection.recv(65536):
        sum(range(int(sys.argv[1])))
        connection.send(b"HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nok")
"#;
    let script = format!(
        "serve() {{ on $1 mkdir -p /run/server; on $1 tee /run/server/s.py > /dev/null\n\
             on $1 python3 /run/server/s.py $2 > /dev/null 2>&1 & }}\n\
         printf '%s' '{server}' | serve 2 0; printf '%s' '{server}' | serve 3 3000\n\
         for box in 2 3; do for _ in $(seq 300); do\n\
             on $box ss -Hltn | grep -q :8000 && break; sleep 0.1\n\
         done; done\n\
         on 1 $LINERATE compare http://10.79.0.2:8000/ http://10.79.0.3:8000/ -c 1 --quiet --budget 12s \
             -n light -n heavy --host light=ssh:box2 --host heavy=ssh:box3 --out $OUT >&2\n\
         echo status $?\n\
         for _ in $(seq 300); do on 2 pgrep -f lab-watch > /dev/null || break; sleep 0.1; done\n\
         on 2 pgrep -fl lab-watch; true"
    );
    let Some(output) = among("3", &out, &script) else { return };
    let cell = out.report().comparison.unwrap().cells.remove(0);
    assert!(cell.findings.cpu().is_some_and(|cpu| cpu.percent() > 10.0), "{cell:?}{}", output.stderr);
    assert_eq!(output.stdout, "status 0\n", "{}", output.stderr);
}
