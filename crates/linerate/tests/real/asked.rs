//! Commands of the user's own: what is asked of them, what is beside them, and what is left of them.

use crate::commands::{COUNTER, SERVER, compare, workplace};
use crate::common::{Folder, Output, skip};
use crate::host::{assert_all_gone, host_state, lab_processes};
use crate::{command, machine, shared_machine};
use linerate::measurement::Run;
use linerate::stats::cost::Consumer;
use linerate_contract::Role;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn several_requests_have_an_expectation_each_and_are_named_by_their_file() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-requests");
    let line = |path: &str, weight: u32| format!("{{\"path\": \"{path}\", \"weight\": {weight}}}\n");
    fs::write(folder.path().join("mix.jsonl"), line("/", 3) + &line("/other", 1)).unwrap();
    let mix = ["python3 server.py", "python3 ./server.py", "-c", "4", "--requests", "mix.jsonl"];
    let out = compare(&folder, &mix);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    assert!(run.command.contains(" --requests mix.jsonl "), "{}", run.command);
    let requests = run.comparison.unwrap().load.unwrap().requests;
    assert_eq!((requests[0].weight, requests[1].path.as_str()), (3, "/other"));
    let contents = run.learned.expectations.iter().map(|expected| expected.crc32.unwrap());
    assert_eq!(contents.collect::<BTreeSet<_>>().len(), 2);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let differs = compare(&folder, &[&mix[..], &["env OTHER=? python3 server.py"]].concat());
    assert_eq!(differs.status, 3, "{}{}", differs.stdout, differs.stderr);
    for part in ["differ in their content", "GET /other with 200, 5 bytes: \"hell!\"", "\"hell?\""] {
        assert!(differs.stderr.contains(part), "{part}: {}", differs.stderr);
    }
    let wrong = compare(&folder, &[&mix[..], &["--url", "/x"]].concat());
    assert!(wrong.status == 2 && wrong.stderr.contains("cannot be used with"), "{}", wrong.stderr);
}

#[test]
fn what_the_user_expects_is_all_that_is_compared() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-expect");
    let (one, longer) = (r#"python3 server.py '{"n":1}'"#, r#"python3 server.py '{"n":22}'"#);
    let out = compare(&folder, &[one, longer, "--expect", "status=200,json"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/report.md").contains("--expect status=200,json"), "{}", out.stdout);
    for (expect, part) in [("length=9", "has another length"), ("status=404", "has another status")] {
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let out = compare(&folder, &[one, longer, "--expect", expect]);
        assert!(out.status == 3 && out.stderr.contains(part), "{expect}: {}", out.stderr);
    }
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let text = compare(&folder, &[one, "python3 server.py hello", "--expect", "json"]);
    assert!(text.status == 3 && text.stderr.contains("differ in their format: JSON"), "{}", text.stderr);
}

/// A server answers with the number of bytes of the body and their sum, so that it has got them all.
#[test]
fn a_body_of_any_bytes_and_any_length_is_sent() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-body");
    let server = "import os\nfrom http.server import *\n\
        class H(BaseHTTPRequestHandler):\n\
        \x20   protocol_version, disable_nagle_algorithm = 'HTTP/1.1', True\n\
        \x20   def log_message(self, *words): pass\n\
        \x20   def do_POST(self):\n\
        \x20       body = self.rfile.read(int(self.headers['Content-Length']))\n\
        \x20       told = b'%d %d' % (len(body), sum(body))\n\
        \x20       self.send_response(200)\n\
        \x20       self.send_header('Content-Length', str(len(told)))\n\
        \x20       self.end_headers()\n\
        \x20       self.wfile.write(told)\n\
        ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), H).serve_forever()\n";
    fs::write(folder.path().join("taking.py"), server).unwrap();
    // Above the 64 KiB of an argument's and a pipe's room.
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
    fs::write(folder.path().join("body"), &bytes).unwrap();
    let line = "{\"path\": \"/a\", \"body\": \"@body\"}\n{\"path\": \"/b\", \"body\": \"x\"}\n";
    fs::write(folder.path().join("mix.jsonl"), line).unwrap();
    for words in [["--body", "@body"], ["--requests", "mix.jsonl"]] {
        let servers = ["python3 taking.py", "python3 ./taking.py", "-c", "2", "--no-why"];
        let out = compare(&folder, &[&servers[..], &words].concat());
        assert_eq!(out.status, 0, "{words:?}: {}{}", out.stdout, out.stderr);
        let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
        let answer = format!("200000 {sum}");
        let expected = run.learned.expectations[0];
        assert_eq!(expected.crc32, Some(linerate_contract::crc32(answer.as_bytes())), "{words:?}");
        let _ = fs::remove_dir_all(folder.path().join("out"));
    }
}

#[test]
fn servers_that_echo_over_udp_are_compared_by_commands_and_by_addresses() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-udp");
    let echo = "import os, socket\ns = socket.socket(type=socket.SOCK_DGRAM)\n\
                s.bind(('127.0.0.1', int(os.environ['PORT'])))\n\
                while True:\n    data, peer = s.recvfrom(65536)\n    s.sendto(data, peer)\n";
    fs::write(folder.path().join("echo.py"), echo).unwrap();
    let out =
        compare(&folder, &["python3 echo.py", "python3 ./echo.py", "--udp", "--size", "100", "-c", "2"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/report.md").contains("--udp --size 100"), "{}", out.stdout);
    let start = |port: &str| {
        let mut server = Command::new("python3");
        server.arg("echo.py").env("PORT", port).current_dir(folder.path()).spawn().unwrap()
    };
    let mut servers = [start("18083"), start("18084")];
    let asks = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    asks.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    for server in ["127.0.0.1:18083", "127.0.0.1:18084"] {
        until(|| asks.send_to(b"?", server).is_ok() && asks.recv(&mut [0]).is_ok());
    }
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let urls = ["udp://127.0.0.1:18083", "udp://127.0.0.1:18084"];
    let out = compare(&folder, &[urls[0], urls[1], "-n", "near", "-n", "far", "-c", "2"]);
    let mixed = compare(&folder, &[urls[0], "tcp://127.0.0.1:18084"]);
    for server in &mut servers {
        server.kill().unwrap();
        server.wait().unwrap();
    }
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/run.json").contains("udp echo of 64 bytes, 2 connections"));
    assert!(mixed.stderr.contains("udp:// and tcp:// are not compared"), "{}", mixed.stderr);
}

#[test]
fn servers_in_the_network_of_the_host_have_a_port_each_and_reach_what_runs_there() {
    let Some(_machine) = shared_machine() else { return };
    let (state, folder) = (host_state(), workplace("commands-host"));
    let outside = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let needs = format!(
        "import os, socket\nsocket.create_connection(('127.0.0.1', {}))\nexec(open('server.py').read())\n",
        outside.local_addr().unwrap().port()
    );
    fs::write(folder.path().join("needs.py"), needs).unwrap();
    let out = compare(&folder, &["python3 needs.py", "python3 ./needs.py", "-c", "2", "--network", "host"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/report.md").contains("--network host"), "{}", out.stdout);
    let cpu = crate::common::report(&folder.path().join("out")).comparison.unwrap().cells[0]
        .findings
        .cpu()
        .unwrap()
        .values;
    assert!(cpu.unwrap().iter().all(|micros| *micros > 0.0), "each was measured alone: {cpu:?}");
    assert_eq!(host_state(), state, "the host has changed");
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let fixed = "env PORT=18085 python3 server.py";
    let fixed = compare(&folder, &[fixed, fixed, "--network", "host"]);
    assert_eq!(fixed.status, 3, "{}{}", fixed.stdout, fixed.stderr);
    assert!(fixed.stderr.contains("has to listen on {port}, which is also PORT"), "{}", fixed.stderr);
}

#[test]
fn a_server_with_redis_beside_it_is_compared_and_the_printed_command_repeats_it() {
    let Some(_machine) = shared_machine() else { return };
    // Debian's package of the tools has the server's program under another name, without the service.
    let names = ["redis-server", "redis-check-rdb"].map(|name| Path::new("/usr/bin").join(name));
    let Some(program) = names.into_iter().find(|path| path.exists()) else {
        return skip("redis as a companion: neither redis-server nor redis-tools is installed");
    };
    let folder = workplace("commands-redis");
    fs::write(folder.path().join("counter.py"), COUNTER).unwrap();
    std::os::unix::fs::symlink(program, folder.path().join("redis-server")).unwrap();
    let redis = "./redis-server --port 6379 --save ''";
    let out = compare(&folder, &["python3 counter.py {n}", "-L", "n", "1,2", "-c", "2", "--with", redis]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let planned = |place: &str| {
        let run: Run = serde_json::from_str(&folder.read(place)).unwrap();
        (run.command, run.comparison.unwrap(), run.learned)
    };
    let (printed, first, learned) = planned("out/run.json");
    assert!(folder.read("out/report.md").contains(&printed), "{printed}");
    let program = printed.replacen("linerate", env!("CARGO_BIN_EXE_linerate"), 1);
    let mut again = Command::new("sh");
    let again = Output::run(again.args(["-c", &format!("{program} --out again")]).current_dir(folder.path()));
    assert_eq!(again.status, 0, "{}{}", again.stdout, again.stderr);
    let (repeated, second, learned_again) = planned("again/run.json");
    assert_eq!(repeated, printed);
    assert_eq!((second.subjects, second.load), (first.subjects, first.load));
    let addresses = |learned: linerate::measurement::Learned| -> Vec<_> {
        learned.servers.iter().map(|one| one.address).collect()
    };
    assert_eq!(addresses(learned_again), addresses(learned));
}

#[test]
fn a_suite_has_a_server_that_runs_already_and_says_so() {
    let Some(_machine) = machine() else { return };
    let folder = workplace("served");
    let mut server = Command::new("python3");
    let mut server =
        server.args(["server.py", "hello"]).env("PORT", "18086").current_dir(folder.path()).spawn().unwrap();
    until(|| std::net::TcpStream::connect("127.0.0.1:18086").is_ok());
    let run = |url: &str, out: &str| {
        let only = ["--only", "nginx/direct", "--only", "nginx/haproxy-tcp", "--rounds", "1"];
        let mut run = command(&["run", "proxy", "--quick", "--server-at", url, "--out", out]);
        Output::run(run.args(only).current_dir(folder.path()))
    };
    let out = run("http://127.0.0.1:18086/a", "out");
    let dead = run("http://127.0.0.1:18087/", "dead");
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(dead.status == 3 && dead.stderr.contains("http://127.0.0.1:18087/: "), "{}", dead.stderr);
    let note = "the server of every row is the one at http://127.0.0.1:18086/a";
    assert!(folder.read("out/report.json").contains(note), "{}", out.stdout);
    let report = crate::common::report(&folder.path().join("out"));
    let direct = report.suites[0].cells.iter().find(|cell| cell.id == "nginx/direct").unwrap();
    let has = |role| direct.cpu.contains_key(&Consumer::Role(role));
    assert!(direct.n == 1 && has(Role::Client) && !has(Role::Server), "{direct:?}");
    let command = report.run.command;
    assert!(command.contains("--server-at http://127.0.0.1:18086/a"), "{command}");
}

/// Waits for half a minute at most.
fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "no server listens");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// SIGKILL at twenty moments.
#[test]
fn killed_comparisons_change_nothing_of_the_users_and_go_on() {
    let Some(_machine) = shared_machine() else { return };
    let (state, processes) = (host_state(), lab_processes());
    let (folder, home) = (workplace("commands-killed"), Folder::new("commands-killed-home"));
    fs::create_dir_all(home.path()).unwrap();
    let run = || {
        let is_begun = folder.path().join("out/run.json").exists();
        let mut run = command(&["compare", "python3 server.py", "python3 ./server.py", "--budget", "15s"]);
        run.args([if is_begun { "--resume" } else { "--out" }, "out"]).current_dir(folder.path());
        run.env("HOME", home.path()).env("XDG_CACHE_HOME", home.path().join("cache"));
        run
    };
    let files = |folder: &Path| -> Vec<_> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for kill in 1..=20 {
        let mut child = run().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(kill * 337 % 3_000));
        let _ = child.kill();
        child.wait().unwrap();
        assert_all_gone(&processes);
    }
    let out = Output::run(&mut run());
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(files(folder.path()), ["out", "server.py"]);
    assert_eq!(folder.read("server.py"), SERVER);
    assert!(files(home.path()).iter().all(|name| name == "cache"), "{:?}", files(home.path()));
    assert_eq!(host_state(), state, "the host has changed");
    assert!(std::net::TcpListener::bind("127.0.0.1:8080").is_ok(), "a server still listens");
}
