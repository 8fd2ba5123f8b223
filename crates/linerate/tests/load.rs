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
        Self::of(&["http", "--listen", "127.0.0.1:0", "--size", "100"])
    }

    /// Where it is stands in what it says: a word with a port.
    fn of(arguments: &[&str]) -> Self {
        let mut command = Command::new(LINERATE);
        command.arg("serve").args(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let url = lines.map_while(Result::ok).find_map(|line| {
            said += &line;
            let is_place = |word: &&str| word.contains("127.0.0.1:") || word.contains("[::1]:");
            line.split_whitespace().find(is_place).map(|word| word.trim_end_matches(',').to_owned())
        });
        let url = url.unwrap_or_else(|| panic!("{said}"));
        Self { url, child }
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
    for more in [
        &["-n", "500"][..],
        &["-n", "500", "--no-keepalive"],
        &["-n", "500", "--pipeline", "16", "--coalesce", "60us"],
        &["-n", "500", "--rate", "5000"],
        &["-n", "500", "--rate", "5000", "--busy"],
    ] {
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
        let server = Server::of(&[layer, "--listen", "127.0.0.1:0"]);
        let address = server.url.as_str();
        let rate: &[&str] = if layer == "udp" { &["--rate", "1000"] } else { &[] };
        let output = linerate(&[&["load", layer, address, "-d", "300ms"], rate].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("Gbit/s"), "{text}");
        assert_eq!(text.contains("300 sent"), layer == "udp", "{text}");
        let output = linerate(&[&["load", layer, address, "-d", "300ms", "--json", "-"], rate].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["done"]["bytes"].as_u64().unwrap() > 0);
    }
    let dead = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = linerate(&["load", "udp", &dead, "-d", "100ms", "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains("nothing arrived"));
    let both = linerate(&["load", "udp", &dead, "--rate", "5", "--search", "1"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn streams_go_whichever_way_is_asked_for_and_the_kernel_tells_how() {
    if !engine_is_there() {
        return;
    }
    let server = Server::of(&["tcp", "--listen", "127.0.0.1:0"]);
    for (more, lines) in [
        (&[][..], &["to server", "segments retransmitted"][..]),
        (&["--reverse", "-P", "3", "-t", "2"], &["from server", "3 connections"]),
        (&["--both", "--size", "1000"], &["to server", "from server", "together"]),
    ] {
        let output = linerate(&[&["load", "tcp", &server.url, "-d", "300ms"], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(lines.iter().all(|line| text.contains(line)), "{more:?}: {text}");
        assert!(text.contains("every byte compared") && !text.contains("failed"), "{more:?}: {text}");
    }
    let output = linerate(&["load", "tcp", &server.url, "-d", "300ms", "--both", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (index, direction) in ["to server", "from server"].iter().enumerate() {
        let stream = &json["streams"][index];
        assert_eq!(stream["direction"], *direction);
        assert!(stream["gbit_per_second"].as_f64().unwrap() > 0.0);
        assert_eq!(stream["done"]["verified"], stream["done"]["bytes"]);
    }
    let echo = Server::of(&["tcp", "--listen", "127.0.0.1:0", "--echo"]);
    let output = linerate(&["load", "tcp", &echo.url, "-d", "300ms", "--ping-pong", "-c", "4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("round trips ") && text.contains("99 %"), "{text}");
}

#[test]
fn a_stream_that_is_interrupted_prints_what_there_is() {
    if !engine_is_there() {
        return;
    }
    let server = Server::of(&["tcp", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new(LINERATE);
    command.args(["load", "tcp", &server.url, "-d", "1h", "--both"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("together") && !text.contains("failed"), "{text}");
}

#[test]
fn websockets_are_loaded_plain_and_over_tls() {
    if !engine_is_there() {
        return;
    }
    let server = Server::of(&["ws", "--listen", "127.0.0.1:0"]);
    for more in [&["-c", "5"][..], &["--rate", "1000", "--size", "1024"]] {
        let output = linerate(&[&["load", "ws", &server.url, "-d", "300ms"], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("round trips ") && text.contains("failed      none"), "{more:?}: {text}");
    }
    let authority = std::env::temp_dir().join(format!("linerate-test-{}-ca.pem", std::process::id()));
    let authority = authority.to_str().unwrap();
    let secure = Server::of(&["ws", "--listen", "127.0.0.1:0", "--tls", authority]);
    let load = |more: &[&str]| linerate(&[&["load", "ws", &secure.url, "-d", "300ms"], more].concat());
    for trust in [&["--authority", authority][..], &["--insecure"]] {
        let output = load(trust);
        assert!(output.status.success(), "{trust:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // Nobody trusts an authority that was made a second ago.
    assert!(!load(&[]).status.success());
    std::fs::remove_file(authority).unwrap();
    for direction in [&[][..], &["--reverse"]] {
        let server = Server::of(&[&["ws", "--listen", "127.0.0.1:0", "--stream"], direction].concat());
        // A debug build takes most of a second for a transfer where it shares its CPU.
        let output = linerate(&[&["load", "ws", &server.url, "-d", "3s", "--stream"], direction].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Gbit/s") && text.contains("every byte compared"), "{text}");
    }
}

#[test]
fn pages_are_served_over_tls_to_who_trusts_and_to_who_accepts_anyone() {
    if !engine_is_there() {
        return;
    }
    let authority = std::env::temp_dir().join(format!("linerate-test-{}-http-ca.pem", std::process::id()));
    let authority = authority.to_str().unwrap();
    let known = Server::of(&["http", "--listen", "127.0.0.1:0", "--size", "100", "--tls", authority]);
    assert!(known.url.starts_with("https://127.0.0.1:"), "{}", known.url);
    let load = |server: &Server, more: &[&str]| {
        linerate(&[&["load", "http", &server.url, "-n", "100"], more].concat())
    };
    for more in [&["--authority", authority][..], &["--insecure"], &["--insecure", "--no-keepalive"]] {
        let output = load(&known, more);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("requests    100 in "), "{more:?}: {text}");
        assert!(
            text.contains("failed      none") && text.contains("TLS         TLSv1.3 TLS_AES_128_GCM"),
            "{text}"
        );
    }
    // Nobody trusts an authority that was made a second ago.
    assert!(!load(&known, &[]).status.success());
    std::fs::remove_file(authority).unwrap();
    let missing = load(&known, &["--authority", authority]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("--authority"));
    let unknown = Server::of(&["http", "--listen", "127.0.0.1:0", "--size", "100", "--tls"]);
    assert!(load(&unknown, &["--insecure"]).status.success());
}

#[test]
fn an_address_may_be_of_the_sixth_version() {
    if !engine_is_there() {
        return;
    }
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6 loopback");
        return;
    }
    let server = Server::of(&["http", "--listen", "[::1]:0", "--size", "100"]);
    for more in [&[][..], &["--no-keepalive"]] {
        let output = linerate(&[&["load", "http", &server.url, "-n", "100"], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("requests    100 in ") && text.contains("failed      none"), "{text}");
    }
    let server = Server::of(&["tcp", "--listen", "[::1]:0"]);
    let output = linerate(&["load", "tcp", &server.url, "-d", "200ms"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
    for case in ["fixed", "uniform", "exponential", "bimodal", "stall", "errors", "cap", "loss", "instrument"]
    {
        assert!(
            text.lines().any(|line| line.starts_with(&format!("{case}: "))),
            "{case} is missing in {text}"
        );
    }
    // Counts are exact on any machine.
    let counts = text.lines().filter(|line| line.contains("  exact"));
    assert!(counts.clone().count() >= 15 && counts.clone().all(|line| !line.contains("OFF")), "{text}");
}
