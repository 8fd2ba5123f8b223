//! `linerate load`, `serve` and `selftest` as their users see them, on loopback.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// The engine is a program of another crate: `cargo build --workspace` makes it.
fn engine_is_there() -> bool {
    let there = Path::new(LINERATE).with_file_name("linerate-load").exists();
    if !there {
        eprintln!("skipped: linerate-load is not built (cargo build --workspace)");
    }
    there
}

fn linerate(arguments: &[&str]) -> Output {
    Command::new(LINERATE).args(arguments).output().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// `linerate serve`, ended when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(LINERATE);
        command.args(["serve", "http", "--listen", "127.0.0.1:0", "--size", "100"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap_or_else(|| panic!("{line}"));
        Self { url: url.to_owned(), child }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(&self.child, Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_is_loaded_and_the_account_is_printed_and_written() {
    if !engine_is_there() {
        return;
    }
    let server = Server::start();
    for more in [&["-n", "500"][..], &["-n", "500", "--no-keepalive"], &["-n", "500", "--rate", "5000"]] {
        let output = linerate(&[&["load", "http", &server.url], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("requests    500 in "), "{more:?}: {text}");
        assert!(text.contains("failed      none") && text.contains('#'), "{text}");
        assert_eq!(text.contains("never sent"), more.contains(&"--rate"));
    }
    let output = linerate(&["load", "http", &server.url, "-d", "200ms", "-t", "2", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "linerate.load/1");
    assert_eq!(json["spec"]["connections"], 10);
    let bytes = json["done"]["bytes"].as_u64().unwrap();
    assert_eq!(bytes, json["done"]["operations"].as_u64().unwrap() * 100);
    assert!(json["latency_us"]["p99"].as_f64().unwrap() > 0.0);
}

#[test]
fn datagrams_are_sent_received_and_told() {
    if !engine_is_there() {
        return;
    }
    for layer in ["udp", "kcp"] {
        let mut command = Command::new(LINERATE);
        command.args(["serve", layer, "--listen", "127.0.0.1:0"]);
        let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap();
        let rate: &[&str] = if layer == "udp" { &["--rate", "1000"] } else { &[] };
        let output = linerate(&[&["load", layer, address, "-d", "300ms"], rate].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("Gbit/s"), "{text}");
        assert_eq!(text.contains("300 sent"), layer == "udp", "{text}");
        let output = linerate(&[&["load", layer, address, "-d", "300ms", "--json", "-"], rate].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["done"]["bytes"].as_u64().unwrap() > 0);
        signal(&server, Signal::SIGTERM);
        server.wait().unwrap();
    }
    let dead = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = linerate(&["load", "udp", &dead, "-d", "100ms", "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("nothing arrived"));
    let both = linerate(&["load", "udp", &dead, "--rate", "5", "--search", "1"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn what_cannot_be_loaded_is_said_with_the_status_that_means_it() {
    if !engine_is_there() {
        return;
    }
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let server = Server::start();
    let secure = server.url.replace("http:", "https:");
    for (arguments, status, sentence) in [
        (&["http://no-such-name.invalid/"][..], 3, "dns"),
        (&[&format!("http://{dead}/")], 3, "refused"),
        (&["127.0.0.1"], 2, "URL"),
        (&[&server.url, "--header", "no colon"], 2, "headers"),
        (&[&server.url, "--arrival", "poisson"], 2, "--rate"),
        (&[&server.url, "-d", "0s"], 2, "above zero"),
        (&[&server.url, "-X", "POST", "-n", "5"], 3, "no request succeeded"),
        (&[&secure, "--insecure", "-n", "5"], 3, "no request succeeded"),
    ] {
        let output = linerate(&[&["load", "http"], arguments].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_interrupt_prints_what_there_is() {
    if !engine_is_there() {
        return;
    }
    let server = Server::start();
    let mut command = Command::new(LINERATE);
    command.args(["load", "http", &server.url, "-d", "1h"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stdout).unwrap().contains("failed      none"));
}

#[test]
fn the_selftest_sets_truth_beside_every_measurement() {
    if !engine_is_there() {
        return;
    }
    let output = linerate(&["selftest", "--duration", "300ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // A busy machine is off by more than the bounds, and says so by status 1.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    for case in ["fixed", "uniform", "exponential", "bimodal", "stall", "errors", "cap", "loss", "instrument"] {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("{case}: "))),
            "{case} is missing in {text}"
        );
    }
    // Counts are exact on any machine.
    let counts = text.lines().filter(|line| line.contains("  exact"));
    assert!(counts.clone().count() >= 15 && counts.clone().all(|line| !line.contains("OFF")), "{text}");
}
