//! `linerate compare './a' './b'`: commands of the user's own, as servers in Python.

use crate::common::{self, Folder, Output};
use crate::host::{assert_all_gone, lab_processes};
use crate::{command, machine, shared_machine};
use linerate::measurement::Run;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// A server of HTTP/1 with these answers; it listens on the port of its environment.
pub(crate) const SERVER: &str = r#"
import os, socket, sys, threading, time
body = (sys.argv[1] if len(sys.argv) > 1 else "hello").encode()
status = sys.argv[2] if len(sys.argv) > 2 else "200"
answer = b"HTTP/1.1 %s X\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)
other = answer[:-1] + os.environ.get("OTHER", "!").encode()
pause = float(os.environ.get("PAUSE", "0"))
left, last = [int(os.environ.get(name, "0")) for name in ("DIES", "LAST")]
if last:
    with open("starts", "a+") as starts:
        starts.write("x")
        starts.seek(0)
        left = 50 if len(starts.read()) >= last else 0
def dies():
    global left
    left -= 1
    if left == 0:
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(7)
def serve(connection):
    with connection:
        try:
            while data := connection.recv(65536):
                time.sleep(pause) if pause else None
                connection.send(other if b" /other " in data else answer)
                dies()
        except OSError:
            pass
ports = os.environ.get("PORTS", os.environ["PORT"]).split()
listeners = [socket.create_server(("127.0.0.1", int(port))) for port in ports]
while True:
    connection, _ = listeners[0].accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"#;

/// A folder with `server.py`, in which commands run.
pub(crate) fn workplace(name: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("server.py"), SERVER).unwrap();
    folder
}

pub(crate) fn compare(folder: &Folder, args: &[&str]) -> Output {
    compare_within("6s", folder, args)
}

pub(crate) fn compare_within(budget: &str, folder: &Folder, args: &[&str]) -> Output {
    let mut compare = command(&["compare"]);
    compare.args(args).args(["--budget", budget, "--seed", "7", "--out", "out"]).current_dir(folder.path());
    Output::run(&mut compare)
}

#[test]
fn two_commands_on_the_same_port_are_compared_and_the_run_repeats_them() {
    let Some(_machine) = shared_machine() else { return };
    let processes = lab_processes();
    let folder = workplace("commands");
    let out = compare(&folder, &["python3 server.py", "python3 ./server.py 'hello'", "-c", "4"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert_all_gone(&processes);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    let servers = &run.learned.servers;
    let addresses: Vec<String> = servers.iter().map(|one| one.address.unwrap().to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1:8080", "127.0.0.1:8080"]);
    let expect = run.learned.expectations[0];
    assert_eq!((expect.status, expect.bytes), (Some(200), Some(5)));
    assert!(servers.iter().all(|one| one.warmup.unwrap().time.0 > 0));
    let compared = common::report(&folder.path().join("out")).comparison.unwrap();
    assert_eq!(compared.cells.len(), 1);
    assert!(compared.cells[0].units > 0, "{:?}", compared.cells);
    let detail = compared.cells[0].detail.as_deref();
    assert!(detail.is_none_or(|text| text == "the client was the limit"), "{detail:?}");
    let names = ["python3 server.py", "python3 ./server.py 'hello'"];
    let quoted = "linerate compare 'python3 server.py' 'python3 ./server.py '\\''hello'\\''' -c 4";
    assert!(run.command.starts_with(quoted), "{}", run.command);
    assert!(names.iter().all(|name| out.stdout.lines().next().unwrap().contains(name)), "{}", out.stdout);
    // What it would start is given again.
    let resume = |words: &[&str]| {
        let mut again = command(&["compare", "--resume", "out"]);
        Output::run(again.args(words).current_dir(folder.path()))
    };
    for words in [&[][..], &names, &["python3 server.py", "python3 ./evil.py", "-c", "4"]] {
        let refused = resume(words);
        let again = "again: linerate compare --resume 'out' 'python3 server.py'";
        assert!(refused.status == 2 && refused.stderr.contains(again), "{}", refused.stderr);
    }
    // The budget is used, so nothing is measured again.
    let again = resume(&[&names[..], &["-c", "4"]].concat());
    assert_eq!((again.status, again.stdout), (0, out.stdout), "{}", again.stderr);
}

#[test]
fn what_does_not_serve_is_an_error_with_the_way_out() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-errors");
    let good = "python3 server.py";
    for (other, status, parts) in [
        (
            "sh -c 'echo no config >&2; exit 3'",
            3,
            &["ended before it was ready (exit status 3)", "no config"][..],
        ),
        ("sh -c 'PORTS=\"81 82\" python3 server.py'", 2, &["listens on several ports (81, 82)", "--port 81"]),
        (
            "python3 server.py goodbye",
            3,
            &["differ in their length", "200, 5 bytes: \"hello\"", "200, 7 bytes: \"goodbye\"", "--expect"],
        ),
        ("python3 server.py hello 500", 3, &["differ in their status", "500, 5 bytes"]),
        (
            "true",
            3,
            &["odd ended before it was ready (exit status 0); a server has to stay in the foreground"],
        ),
        ("sleep 1000", 3, &["odd did not listen within 10s; a server has to listen on a TCP port"]),
        (
            "python3 -c 'import socket; socket.create_connection((\"10.9.8.7\", 5432))'",
            3,
            &["its network has nothing else", "--with", "Network is unreachable"],
        ),
        ("env DIES=50 python3 server.py", 3, &["odd ended before the client (exit status 7)", "out of luck"]),
        ("./server.py", 2, &["server.py is not executable: chmod +x"]),
        ("./nothing", 2, &["nothing: No such file"]),
    ] {
        let out = compare(&folder, &[good, other, "-n", "good", "-n", "odd", "--json", "-"]);
        assert_eq!(out.status, status, "{other}: {}{}", out.stdout, out.stderr);
        for part in parts {
            assert!(out.stderr.contains(part), "{other}: {part}: {}", out.stderr);
        }
        // Who reads the report alone has the cause, too.
        assert!(status == 2 || out.stdout.contains(parts[0]), "{other}: {}", out.stdout);
        let _ = fs::remove_dir_all(folder.path().join("out"));
    }
}

#[test]
fn a_baseline_that_answers_500_is_an_error_unless_that_is_expected() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-500");
    let failing = "python3 server.py oops 500";
    let out = compare(&folder, &[failing, failing]);
    assert_eq!(out.status, 3, "{}", out.stderr);
    assert!(out.stderr.contains("answers GET / with 500, 4 bytes: \"oops\""), "{}", out.stderr);
    assert!(out.stderr.contains("--expect status=500"), "{}", out.stderr);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let out = compare(&folder, &[failing, failing, "--expect", "status=500"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
}

/// The server in the tests of companions: it counts in a store beside it.
pub(crate) const COUNTER: &str = r#"
import socket, sys, threading
store = ("127.0.0.1", 6379)
def serve(connection):
    with connection, socket.create_connection(store) as beside:
        while connection.recv(65536):
            beside.send(b"PING\r\n")
            count = beside.recv(16)
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + count[:2])
if sys.argv[1] == "store":
    listener, serve = socket.create_server(store), lambda connection: [
        connection.send(b"ok") for _ in iter(lambda: connection.recv(16), b"")]
else:
    socket.create_connection(store).close()
    listener = socket.create_server(("127.0.0.1", 80))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn companions_are_started_before_each_server_and_values_make_commands() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-companions");
    fs::write(folder.path().join("counter.py"), COUNTER).unwrap();
    let alone = compare(&folder, &["python3 counter.py {n}", "-L", "n", "1,2", "-c", "2"]);
    assert_eq!(alone.status, 3, "{}", alone.stderr);
    assert!(alone.stderr.contains("n=1 ended before it was ready"), "{}", alone.stderr);
    assert!(alone.stderr.contains("start what it needs by --with"), "{}", alone.stderr);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let words = ["python3 counter.py {n}", "-L", "n", "1,2", "-c", "2", "--with", "python3 counter.py store"];
    let hooks = ["--setup", "echo {n} >> setups", "--cleanup", "echo {n} >> cleanups"];
    let out = compare(&folder, &[&words[..], &hooks].concat());
    assert_eq!(out.status, 0, "{}", out.stderr);
    let first = out.stdout.lines().next().unwrap();
    assert!(first.contains("n=2") && first.contains("n=1"), "{first}");
    assert!(["CPU/request", "memory"].iter().all(|row| out.stdout.contains(row)), "{}", out.stdout);
    assert_eq!((folder.read("setups"), folder.read("cleanups")), ("1\n2\n".into(), "1\n2\n".into()));
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    assert!(run.command.contains("--with 'python3 counter.py store'"), "{}", run.command);
    assert!(run.command.contains("'python3 counter.py {n}' -L n 1,2 -c 2"), "{}", run.command);
}

#[test]
fn a_server_that_dies_in_its_units_has_its_last_line_in_the_result() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-dies");
    let odd = "env LAST=2 python3 server.py";
    fs::write(folder.path().join("starts"), "").unwrap();
    let words = ["python3 server.py", odd, "-n", "good", "-n", "odd", "--share", "starts"];
    let out = compare_within("20s", &folder, &words);
    assert_eq!(out.status, 3, "{}{}", out.stdout, out.stderr);
    for part in ["odd could not be compared with good", "ended before the client (exit status 7)", "luck"] {
        assert!(out.stderr.contains(part), "{part}: {}", out.stderr);
    }
}

#[test]
fn two_addresses_are_compared_by_turns() {
    let Some(_machine) = machine() else { return };
    let folder = workplace("commands-addresses");
    let start = |port: &str, pause: &str| {
        let mut server = Command::new("python3");
        server.args(["server.py", "hello"]).env("PORT", port).env("PAUSE", pause);
        server.current_dir(folder.path()).spawn().unwrap()
    };
    let mut servers = [start("18081", "0"), start("18082", "0.002")];
    let urls = ["http://127.0.0.1:18081/a", "http://127.0.0.1:18082/b"];
    let is_up = |port: u16| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until && !(is_up(18081) && is_up(18082)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let out = compare(&folder, &[urls[0], urls[1], "-n", "near", "-n", "far", "-c", "2"]);
    let mixed = compare(&folder, &[urls[0], "./server.py"]);
    let _ = fs::rename(folder.path().join("out"), folder.path().join("out-unknown"));
    let named = [urls[0], urls[1], "-n", "near", "-n", "far", "-c", "2", "--host", "near=local"];
    let one = compare(&folder, &named);
    let known = compare(&folder, &[&named[..], &["--host", "far=local"]].concat());
    let wrong = compare(&folder, &[&named[..], &["--host", "fra=local"]].concat());
    for server in &mut servers {
        server.kill().unwrap();
        server.wait().unwrap();
    }
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let cell = |out: &str| common::report(&folder.path().join(out)).comparison.unwrap().cells.remove(0);
    let far = cell("out-unknown");
    assert!(far.findings.rate().unwrap().percent() < -50.0 && far.findings.cpu().is_none(), "{far:?}");
    assert!(out.stdout.contains("CPU time and memory are not known"), "{}", out.stdout);
    assert!(mixed.status == 2 && mixed.stderr.contains("`./server.py` is no address"), "{}", mixed.stderr);
    assert_eq!(known.status, 0, "{}{}", known.stdout, known.stderr);
    assert!(cell("out").findings.cpu().is_some(), "{}", known.stdout);
    assert!(known.stdout.contains("listen on their ports (local)"), "{}", known.stdout);
    let report = folder.read("out/report.md");
    assert!(report.contains("--host near=local --host far=local"), "{report}");
    assert!(one.status == 2 && one.stderr.contains("--host far=local for this machine"), "{}", one.stderr);
    assert!(wrong.status == 2 && wrong.stderr.contains("nearest: \"far\""), "{}", wrong.stderr);
}

#[test]
fn a_stream_of_a_command_is_refused_with_what_to_do_instead() {
    let folder = workplace("commands-stream");
    let out = compare(&folder, &["python3 server.py", "python3 ./server.py", "--tcp", "--stream"]);
    assert_eq!(out.status, 2, "{}", out.stderr);
    assert!(out.stderr.contains("--tcp --size 1048576"), "{}", out.stderr);
}

#[test]
fn responses_that_take_longer_than_a_window_of_the_warm_up_are_waited_for() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-slow");
    let [slow, again] = ["server.py", "./server.py"].map(|server| format!("env PAUSE=0.3 python3 {server}"));
    let out = compare(&folder, &[&*slow, &again, "-n", "a", "-n", "b", "-c", "2"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    let servers = run.learned.servers;
    assert!(servers.iter().all(|one| one.warmup.unwrap().time.0 > 0), "{servers:?}");
}

/// A proxy for one request after the other, and what is behind it.
const PROXY: &str = r#"
import os, socket, sys, threading
host, port = sys.argv[1].split(":")
def serve(connection):
    with connection, socket.create_connection((host, int(port))) as behind:
        while data := connection.recv(65536):
            behind.send(data)
            connection.send(behind.recv(65536))
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

#[test]
fn proxies_have_an_upstream_whose_address_is_found() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-upstream");
    fs::write(folder.path().join("proxy.py"), PROXY).unwrap();
    let (proxy, again) = ("python3 proxy.py {upstream}", "python3 ./proxy.py {upstream}");
    let upstream = "env PORT=9000 python3 server.py behind";
    let out = compare(&folder, &[proxy, again, "-n", "a", "-n", "b", "-c", "2", "--upstream", upstream]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    assert_eq!(run.learned.upstream.unwrap().to_string(), "127.0.0.1:9000");
    assert_eq!(run.learned.expectations[0].bytes, Some(6));
}

#[test]
fn servers_of_http_2_and_http_3_are_compared() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-h2");
    let program = env!("CARGO_BIN_EXE_linerate");
    for (layer, version, https) in
        [("h2c", "--h2", &[][..]), ("h2", "--h2", &["--https"]), ("h3", "--h3", &[])]
    {
        let server = format!("{program} serve {layer}://{{address}} --size 100");
        let words = [&*server, &server, version, "--streams", "5", "-c", "2", "--expect", "length=100"];
        let words = [&words[..], &["--url", "/a", "--url", "/b"]].concat();
        if layer == "h2c" {
            let open = compare(&folder, &[&words[..], &["--rate", "500"]].concat());
            assert_eq!(open.status, 0, "{}{}", open.stdout, open.stderr);
            let paced = common::report(&folder.path().join("out")).comparison.unwrap();
            assert!(paced.cells[0].findings.latencies().next().is_some(), "{:?}", paced.cells);
            let _ = fs::remove_dir_all(folder.path().join("out"));
        }
        let out = compare(&folder, &[&words[..], https].concat());
        assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
        let text = folder.read("out/run.json");
        assert!(text.contains("2 different requests, 2 connections x 5 streams"), "{text}");
        let run: Run = serde_json::from_str(&text).unwrap();
        assert!(run.command.contains(&format!("{version} --streams 5")), "{}", run.command);
        let planned = run.comparison.unwrap().load.unwrap();
        assert_eq!((planned.layer.as_str(), planned.streams), (layer, Some(5)));
        let compared = common::report(&folder.path().join("out")).comparison.unwrap();
        assert!(compared.cells[0].units > 0, "{:?}", compared.cells);
        let detail = compared.cells[0].detail.as_deref();
        assert!(detail.is_none_or(|text| text == "the client was the limit"), "{detail:?}");
        let _ = fs::remove_dir_all(folder.path().join("out"));
    }
    let other = compare(&folder, &["python3 server.py", "python3 ./server.py", "--h2"]);
    assert!(
        other.status == 3 && other.stderr.contains("it speaks HTTP/1.1: leave out --h2"),
        "{}",
        other.stderr
    );
}

#[test]
fn servers_of_grpc_are_compared_by_calls_of_a_method() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-grpc");
    let server = format!("{} serve grpc://{{address}} --size 100", env!("CARGO_BIN_EXE_linerate"));
    fs::write(folder.path().join("request.bin"), [0xff, 0]).unwrap();
    let words = [&*server, &server, "--grpc", "shop.Items/Get", "--message", "@request.bin", "-c", "2"];
    let out = compare(&folder, &words);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    assert!(run.command.contains("--grpc shop.Items/Get --message @request.bin"), "{}", run.command);
    let load = run.comparison.unwrap().load.unwrap();
    assert_eq!((load.streams, &*load.requests[0].body), (Some(10), &b"/wA="[..]));
    let compared = common::report(&folder.path().join("out")).comparison.unwrap();
    assert!(compared.cells[0].units > 0, "{:?}", compared.cells);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let calls = "{\"path\": \"/a.B/C\", \"body\": \"@request.bin\"}\n{\"path\": \"/a.B/D\", \"weight\": 3}\n";
    fs::write(folder.path().join("calls.jsonl"), calls).unwrap();
    let out = compare(&folder, &[&*server, &server, "-c", "2", "--requests", "calls.jsonl", "--grpc"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let run: Run = serde_json::from_str(&folder.read("out/run.json")).unwrap();
    let requests = run.comparison.unwrap().load.unwrap().requests;
    let calls: Vec<_> = requests.iter().map(|one| (&*one.path, &*one.body, one.weight)).collect();
    assert_eq!(calls, [("/a.B/C", &b"/wA="[..], 1), ("/a.B/D", b"", 3)]);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    for (words, part) in [
        (&["--message", "x"][..], "--message is for --grpc"),
        (&["--grpc"], "several in a file of --requests"),
        (&["--grpc", "a.B/C", "--requests", "calls.jsonl"], "so give --grpc without one"),
    ] {
        let none = compare(&folder, &[&["python3 server.py", "python3 ./server.py"], words].concat());
        assert!(none.status == 2 && none.stderr.contains(part), "{}", none.stderr);
    }
}

#[test]
fn servers_that_echo_over_tcp_are_compared() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("commands-echo");
    let echo = SERVER
        .replace("connection.send(other if b\" /other \" in data else answer)", "connection.sendall(data)");
    fs::write(folder.path().join("echo.py"), echo).unwrap();
    let out =
        compare(&folder, &["python3 echo.py", "python3 ./echo.py", "--tcp", "--size", "100", "-c", "2"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/report.md").contains("--tcp --size 100"), "{}", out.stdout);
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let other = compare(&folder, &["python3 echo.py", "python3 server.py hello", "--tcp", "-c", "2"]);
    assert_eq!(other.status, 3, "{}{}", other.stdout, other.stderr);
    assert!(other.stderr.contains("not one correct response"), "{}", other.stderr);
}
