//! Servers that keep connections waiting while others stay open.

use crate::commands::workplace;
use crate::common::{Folder, Output};
use crate::{command, machine, shared_machine};
use std::fs;
use std::time::{Duration, Instant};

/// Serves as many connections at a time as its argument says, each until its client ends it.
const POOL: &str = r#"
import os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
def serve():
    while True:
        connection, _ = listener.accept()
        try:
            while connection.recv(65536):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        except OSError:
            pass
        connection.close()
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=serve, daemon=True).start()
serve()
"#;

fn compare(folder: &Folder, pool: &str, more: &[&str]) -> Output {
    let _ = fs::remove_dir_all(folder.path().join("out"));
    let (one, other) = (format!("python3 pool.py {pool}"), format!("python3 ./pool.py {pool}"));
    let mut compare = command(&["compare", &one, &other, "--budget", "10s", "--out", "out", "--no-why"]);
    Output::run(compare.args(more).current_dir(folder.path()))
}

/// Takes one connection while another one waits, and serves all of them.
const BACKLOG: &str = r#"
import os, socket, threading
def serve(connection):
    try:
        while connection.recv(65536):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    except OSError:
        pass
    connection.close()
listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=1)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"#;

/// A budget of a second took 99 s: connections that find no room wait for seconds, in each unit.
#[test]
fn a_server_with_room_for_one_waiting_connection_keeps_about_to_the_budget() {
    let Some(_machine) = machine() else { return };
    let folder = workplace("backlog");
    fs::write(folder.path().join("backlog.py"), BACKLOG).unwrap();
    let begin = Instant::now();
    let mut compare = command(&["compare", "python3 backlog.py", "python3 ./backlog.py", "-c", "64"]);
    compare.args(["--budget", "1s", "--out", "out", "--no-why"]).current_dir(folder.path());
    let out = Output::run(&mut compare);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    assert!(folder.read("out/report.md").contains("of 64 connections at a time"), "{}", out.stdout);
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// An open loop on all connections took until the timeout of requests, and "the system hung".
#[test]
fn a_server_that_takes_few_connections_at_a_time_is_told_by_its_number_and_has_no_open_loop() {
    let Some(_machine) = shared_machine() else { return };
    let folder = workplace("waiting");
    fs::write(folder.path().join("pool.py"), POOL).unwrap();
    for (pool, told) in [("1", "takes one of 16 connections"), ("4", "takes 4 of 16 connections")] {
        let out = compare(&folder, pool, &[]);
        assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
        let text = folder.read("out/report.md");
        assert!(
            text.contains(&format!("{told} at a time and keeps the others waiting: -c {pool}")),
            "{text}"
        );
        // An open loop would use the budget twice: the timeout of a request is as long.
        let journal = folder.read("out/journal.jsonl");
        assert!(!journal.contains("second_load") && !journal.contains("hung"), "{journal}");
    }
    let out = compare(&folder, "4", &["--rate", "500"]);
    assert_eq!(out.status, 3, "{}{}", out.stdout, out.stderr);
    assert!(out.stderr.contains("takes 4 of 16 connections at a time"), "{}", out.stderr);
    let out = compare(&folder, "4", &["-c", "4"]);
    assert_eq!(out.status, 0, "{}{}", out.stdout, out.stderr);
    let text = folder.read("out/report.md");
    assert!(!text.contains("at a time"), "{text}");
}
