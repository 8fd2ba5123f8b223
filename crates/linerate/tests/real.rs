//! The real lab with real systems, in quick form. These tests assert structure and correctness, never speed.
//!
//! A system that is not installed is a `missing` row, as it is for a user; a machine that allows no namespaces
//! skips with a line that says so.

mod common;

use common::{Folder, Output, skip};
use linerate::measurement::{Outcome, Trial};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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

/// What must be the same before and after: addresses, routes, rules, sysctls of the network, processes of ours, mounts.
fn host_state() -> String {
    let mut state = String::new();
    for file in ["/proc/net/dev", "/proc/net/route", "/proc/net/ipv6_route", "/proc/net/if_inet6"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        // Counters change by themselves; names of links do not.
        let columns = if file == "/proc/net/dev" { 1 } else { usize::MAX };
        let lines = text.lines().map(|l| l.split_whitespace().take(columns).collect::<Vec<_>>().join(" "));
        state += &format!("{file}\n{}\n", lines.collect::<Vec<_>>().join("\n"));
    }
    state += &fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for (program, args) in [("ip", &["addr"][..]), ("ip", &["netns", "list"]), ("nft", &["list", "ruleset"])]
    {
        if let Ok(out) = Command::new(program).args(args).output() {
            let text = String::from_utf8_lossy(&out.stdout);
            let steady = text.lines().filter(|line| !line.contains("valid_lft"));
            state += &format!("{program}\n{}\n", steady.collect::<Vec<_>>().join("\n"));
        }
    }
    for name in ["ip_forward", "ip_local_port_range", "tcp_tw_reuse", "ip_unprivileged_port_start"] {
        state += &fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    }
    state
}

/// Processes of our labs, by pid: this linerate, its agents, and all that shares a pid namespace with one of them.
fn lab_processes() -> BTreeSet<String> {
    let link = |pid: &str, name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    let pids: Vec<String> = pids.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).collect();
    let is_linerate =
        |pid: &&String| link(pid, "exe").is_some_and(|exe| exe == Path::new(env!("CARGO_BIN_EXE_linerate")));
    let own = link("self", "ns/pid");
    let labs: BTreeSet<_> = pids
        .iter()
        .filter(is_linerate)
        .map(|pid| link(pid, "ns/pid"))
        .filter(|namespace| *namespace != own)
        .collect();
    let is_ours = |pid: &&String| is_linerate(pid) || labs.contains(&link(pid, "ns/pid"));
    pids.iter().filter(is_ours).cloned().collect()
}

/// Waits until no process of the lab is left that was not there before; kernels take their moment to end them.
fn assert_all_gone(before: &BTreeSet<String>) {
    for _ in 0..100 {
        if lab_processes().is_subset(before) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("left behind: {:?}", lab_processes().difference(before).collect::<Vec<_>>());
}

fn is_ok(trial: &Trial) -> bool {
    trial.outcome == Outcome::Ok
}

/// One after the other: every test here loads the machine and looks at all its processes.
#[test]
fn the_real_lab() {
    if !lab_is_there() {
        return;
    }
    every_way_of_forwarding_works_in_front_of_every_server();
    a_killed_run_leaves_nothing_and_can_be_resumed();
    a_server_that_does_not_start_is_a_row_with_its_own_words();
    a_server_that_dies_answers_wrongly_or_hangs_is_a_failed_row();
    nobody_in_particular_can_measure();
    if the_kernel_answers_behind_tun_devices_or_the_row_says_who_can_open_them() {
        a_run_killed_behind_tun_devices_leaves_nothing();
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

/// SIGKILL at ten moments spread over a run; the environment variable asks for more.
fn a_killed_run_leaves_nothing_and_can_be_resumed() {
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

/// The same in the middle of trials behind TUN devices, which end with the namespaces that nobody holds any more.
fn a_run_killed_behind_tun_devices_leaves_nothing() {
    let (home, folder) = (tun_home(), Folder::new("killed-tun"));
    let run = || {
        let mut command =
            command(&["run", "tun", "--rounds", "6", "--only", "client-*/*", "--resume", folder.str()]);
        command.env("LINERATE_HOME", home.path());
        command
    };
    let trials = killed_and_resumed(&folder, run);
    assert_eq!(trials.len(), 24);
    assert!(trials.iter().all(is_ok));
}

/// Kills the run again and again, lets it end, and looks at what is left; every trial is there once.
fn killed_and_resumed(folder: &Folder, run: impl Fn() -> Command) -> Vec<Trial> {
    let kills = std::env::var("LINERATE_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_u64);
    let (state, processes) = (host_state(), lab_processes());
    let temporary = || fs::read_dir(std::env::temp_dir()).unwrap().count();
    let files_before = temporary();
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
    assert_eq!(temporary(), files_before + 1, "only the run's own folder is new");
    trials
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// A home with a suite of one cell, whose server is a shell script.
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
        "about = 'odd'\nprogram = '/bin/sh'\nneeds = ['nginx']\n[variants.odd]\nabout = 'odd'\nroles = ['server']\n\
         configs = ['server.conf']\nstart = ['-c', '''{script}''']\n"
    );
    fs::write(home.path().join("systems/odd/system.toml"), system).unwrap();
    fs::copy(root.join("nginx/server.conf"), home.path().join("systems/odd/server.conf")).unwrap();
    home
}

/// Runs the one cell; status, journal, and what was printed.
fn run_odd(script: &str) -> (i32, Vec<Trial>, String) {
    let home = home_with_server(script);
    let folder = Folder::new("odd");
    let mut command = command(&["run", "one", "--out", folder.str()]);
    let out = Output::of(command.env("LINERATE_HOME", home.path()));
    (out.status, folder.journal(), out.stdout + &out.stderr)
}

fn a_server_that_does_not_start_is_a_row_with_its_own_words() {
    let broken = "sed -i s/listen/lissen/ {{ dir }}/server.conf; exec nginx -c {{ dir }}/server.conf";
    let (status, trials, said) = run_odd(broken);
    if trials.is_empty() {
        return skip("no nginx here");
    }
    assert_eq!(status, 3, "{said}");
    for part in ["at start", "ended before it was ready", "unknown directive", "server.conf:"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
}

fn a_server_that_dies_answers_wrongly_or_hangs_is_a_failed_row() {
    for (script, stage, part) in [
        ("sleep 1000", "at start", "was not ready within"),
        (
            "sed -i s,{{ docroot }},{{ dir }}, {{ dir }}/server.conf; echo wrong > {{ dir }}/index.html; exec nginx -c {{ dir }}/server.conf",
            "at verify",
            "wrong_length",
        ),
        (
            "nginx -c {{ dir }}/server.conf & sleep 0.6; kill -9 $!; exit 9",
            "at measure",
            "ended in the middle (exit status 9)",
        ),
    ] {
        let processes = lab_processes();
        let (status, trials, said) = run_odd(script);
        if trials.is_empty() {
            return skip("no nginx here");
        }
        assert_eq!(status, 3, "{script}: {said}");
        assert!(said.contains(stage) && said.contains(part), "{script}: {said}");
        assert_all_gone(&processes);
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
    let (trials, _) = linerate::journal::parse_journal("journal", journal.as_bytes());
    assert!(!trials.is_empty() && trials.iter().all(is_ok), "{journal}");
}

/// A suite of nothing but the kernel behind TUN devices, for the netstacks of the project's own would have to be built.
const TUN_SUITE: &str = r#"
question = "Does the kernel answer behind a TUN device?"
rounds = 1
quick = { rounds = 1 }
[[tables]]
name = "tun"
title = "Streams"
metric = "gbit-per-second"
layer = "tcp"
workload = "stream"
rows = "system"
columns = "direction"
id = "{{ direction }}/{{ system }}"
roles = { client = "native", server = "{{ system }}" }
options = { direction = "{{ direction }}" }
baseline = { system = "kernel-tun" }
parameters = { bytes = 300000, size = 65536, mtu = 9000, timeout_ms = 3000 }
verify = { bytes = 100000 }
warmup = {}
[tables.axes]
system = ["kernel-tun", "kernel-tun-offload"]
direction = ["client-reads", "client-writes", "both"]

[[tables]]
name = "held"
title = "What a server holds"
metric = "operations-per-second"
also = ["server-descriptors-growth", "server-memory-growth"]
layer = "tcp"
workload = "churn"
rows = "system"
columns = "connections"
id = "held/{{ system }}"
roles = { client = "native", server = "{{ system }}" }
baseline = { system = "kernel-tun" }
parameters = { operations = 200, size = 64, timeout_ms = 3000 }
[tables.axes]
system = ["kernel-tun", "kernel"]
connections = [8]

[[tables]]
name = "lossy"
title = "Streams behind a router that drops packets"
metric = "gbit-per-second"
layer = "tcp"
workload = "stream"
rows = "system"
columns = "direction"
id = "lossy/{{ direction }}/{{ system }}"
roles = { client = "native", relay = "loss-1", server = "{{ system }}" }
options = { direction = "{{ direction }}" }
baseline = { system = "kernel-tun" }
parameters = { bytes = 3000000, size = 65536, timeout_ms = 10000 }
verify = { bytes = 100000 }
warmup = {}
[tables.axes]
system = ["kernel-tun", "kernel"]
direction = ["client-reads", "client-writes"]
"#;

/// A home with that suite and the systems that it names.
fn tun_home() -> Folder {
    let home = Folder::new("tun-home");
    let systems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    fs::create_dir_all(home.path().join("suites")).unwrap();
    fs::create_dir_all(home.path().join("systems")).unwrap();
    fs::write(home.path().join("suites/tun.toml"), TUN_SUITE).unwrap();
    for name in ["kernel", "loss", "native"] {
        std::os::unix::fs::symlink(systems.join(name), home.path().join("systems").join(name)).unwrap();
    }
    home
}

fn is_ok_or_says_who_can_open_devices(trial: &Trial) -> bool {
    let says = |reason: &str| reason.contains("/dev/net/tun") && reason.contains("administrator");
    is_ok(trial) || matches!(&trial.outcome, Outcome::Unsupported { reason } if says(reason))
}

/// True if it answers.
fn the_kernel_answers_behind_tun_devices_or_the_row_says_who_can_open_them() -> bool {
    let (state, processes) = (host_state(), lab_processes());
    let (home, folder) = (tun_home(), Folder::new("tun"));
    let out = Output::of(command(&["run", "tun", "--out", folder.str()]).env("LINERATE_HOME", home.path()));
    let trials = folder.journal();
    let lossy = trials.iter().filter(|trial| trial.cell.starts_with("lossy/")).count();
    // Without nft(8) loss is a missing row.
    assert!([0, 4].contains(&lossy), "{}{}", out.stdout, out.stderr);
    assert_eq!(trials.len() - lossy, 8, "{}{}", out.stdout, out.stderr);
    for trial in &trials {
        assert!(is_ok_or_says_who_can_open_devices(trial), "{}: {:?}", trial.cell, trial.outcome);
        if let Some(measurement) = trial.measurement.as_ref().filter(|_| trial.cell.starts_with("held/")) {
            let held = measurement.held.expect("the table asks for it");
            assert!(held.before.descriptors > 2 && held.before.memory.0 > 0, "{held:?}");
            assert!(held.after.descriptors <= held.before.descriptors + 8, "{held:?}");
        }
    }
    assert_all_gone(&processes);
    assert_eq!(host_state(), state, "the host is not as it was");
    trials.iter().all(is_ok)
}
