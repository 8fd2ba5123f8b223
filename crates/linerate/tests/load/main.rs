//! `linerate load`, `serve` and `selftest` from the command line, on loopback.

#![allow(clippy::print_stderr, reason = "a skipped test prints its reason")]

mod h2;
mod habits;
mod peers;
mod recorded;
mod requests;
#[path = "../report/schema.rs"]
mod schema;
mod sent;
mod streams;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// The engine is a program of another crate: `cargo build --workspace` builds it.
fn engine_is_built() -> bool {
    let built = Path::new(LINERATE).with_file_name("linerate-load").exists();
    if !built {
        eprintln!("skipped: linerate-load is not built (cargo build --workspace)");
    }
    built
}

fn linerate(arguments: &[&str]) -> Output {
    Command::new(LINERATE).args(arguments).output().unwrap()
}

/// Whether something holds in one try of a few: a machine that stands still may break a try, and faulty code
/// breaks each.
fn in_some_try(holds: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(holds).take(3).any(|held| held)
}

/// A load of 300 ms that succeeds, or one of three seconds: a machine that stands still for a good part of
/// the short one leaves it without a result.
fn timed(arguments: &[&str]) -> Output {
    let short = linerate(&[arguments, &["-d", "300ms"]].concat());
    if short.status.success() { short } else { linerate(&[arguments, &["-d", "3s"]].concat()) }
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// A running `linerate serve`, stopped when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        Self::serve(&["http://127.0.0.1:0", "--size", "100"])
    }

    /// Reads the address from its output: the word with a port.
    fn serve(arguments: &[&str]) -> Self {
        let mut command = Command::new(LINERATE);
        command.arg("serve").args(arguments);
        Self::by(command)
    }

    fn by(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut output = String::new();
        let url = lines.map_while(Result::ok).find_map(|line| {
            output += &line;
            let is_place = |word: &&str| word.contains("127.0.0.1:") || word.contains("[::1]:");
            line.split_whitespace().find(is_place).map(|word| word.trim_end_matches(',').to_owned())
        });
        let url = url.unwrap_or_else(|| panic!("{output}"));
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
fn a_server_is_loaded_and_the_result_is_printed_and_written() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    for more in [
        &["-n", "500"][..],
        &["-n", "500", "--no-keepalive"],
        &["-n", "500", "--pipeline", "16", "--coalesce", "60us"],
        &["-n", "500", "--rate", "5000"],
        &["-n", "500", "--rate", "5000", "--spin", "always"],
        &["-n", "500", "--spin", "50us"],
    ] {
        let output = linerate(&[&["load", &server.url], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("requests    500 in "), "{more:?}: {text}");
        assert!(text.contains("failed      none") && text.contains('#'), "{text}");
        assert_eq!(text.contains("never sent"), more.contains(&"--rate"));
    }
    let output = timed(&["load", &server.url, "-t", "2", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "linerate.load/1");
    assert_eq!(json["spec"]["connections"], 16);
    let bytes = json["done"]["bytes"].as_u64().unwrap();
    assert_eq!(bytes, json["done"]["operations"].as_u64().unwrap() * 100);
    assert!(json["latency_us"]["p99"].as_f64().unwrap() > 0.0);
}

#[test]
fn pages_are_served_over_tls_to_clients_with_the_ca_certificate_or_insecure() {
    if !engine_is_built() {
        return;
    }
    let authority = std::env::temp_dir().join(format!("linerate-test-{}-http-ca.pem", std::process::id()));
    let authority = authority.to_str().unwrap();
    let known = Server::serve(&["https://127.0.0.1:0", "--size", "100", "--authority", authority]);
    assert!(known.url.starts_with("https://127.0.0.1:"), "{}", known.url);
    let load =
        |server: &Server, more: &[&str]| linerate(&[&["load", &server.url, "-n", "100"], more].concat());
    for more in [&["--authority", authority][..], &["--insecure"], &["--insecure", "--no-keepalive"]] {
        let output = load(&known, more);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("requests    100 in "), "{more:?}: {text}");
        assert!(
            text.contains("failed      none") && text.contains("TLS         TLSv1.3 TLS_AES_128_GCM"),
            "{text}"
        );
    }
    // The system does not trust the new CA, if it trusts any.
    let unknown = load(&known, &[]);
    let text = String::from_utf8([unknown.stdout, unknown.stderr].concat()).unwrap();
    assert!(text.contains("unknown authority; --authority FILE") || text.contains("no root cert"), "{text}");
    assert_eq!(unknown.status.code(), Some(3));
    std::fs::remove_file(authority).unwrap();
    let missing = load(&known, &["--authority", authority]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("--authority"));
    let unknown = Server::serve(&["https://127.0.0.1:0", "--size", "100"]);
    assert!(load(&unknown, &["--insecure"]).status.success());
}

#[test]
fn ipv6_addresses_are_supported() {
    if !engine_is_built() {
        return;
    }
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6 loopback");
        return;
    }
    let server = Server::serve(&["http://[::1]:0", "--size", "100"]);
    for more in [&[][..], &["--no-keepalive"]] {
        let output = linerate(&[&["load", &server.url, "-n", "100"], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("requests    100 in ") && text.contains("failed      none"), "{text}");
    }
    let server = Server::serve(&["tcp://[::1]:0", "--stream"]);
    let output = timed(&["load", &server.url, "--stream"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn each_failure_has_its_message_and_exit_status() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    let secure = server.url.replace("http:", "https:");
    for (arguments, status, sentence) in [
        (&["http://no-such-name.invalid/"][..], 3, "dns"),
        (&["http://127.0.9.9:1/"], 3, "refused"), // No test listens there.
        (&["htp://127.0.0.1"], 2, "nearest: \"http\""),
        (&["http", &server.url], 2, "linerate load http://127.0.0.1:"),
        (
            &[&server.url, "--streams", "5"],
            2,
            "--streams is for h2, h2c, h3, grpc, grpcs, quic, and this URL",
        ),
        (&[&server.url, "--expect", "status=404", "-n", "5"], 3, "no request succeeded"),
        (&[&server.url, "--header", "no colon"], 2, "headers"),
        (&[&server.url, "--arrival", "poisson"], 2, "--rate"),
        (&[&server.url, "-d", "0s"], 2, "above zero"),
        (&[&server.url, "-d", "{\"id\": 1}"], 2, "a body is --body"),
        (&[&server.url, "--cert", "client.pem"], 2, "--cert is for https, h2"),
        (&[&server.url, "-X", "POST", "-n", "5"], 3, "no request succeeded"),
        (&[&secure, "--insecure", "-n", "5"], 3, "no request succeeded"),
    ] {
        let output = linerate(&[&["load"], arguments].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(sentence), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_interrupted_run_prints_its_partial_result() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    interrupted(&["load", &server.url, "-d", "1h"], |text| text.contains("failed      none"));
}

/// Interrupts a command after half a second, and later where it had not begun by then. It ends with status
/// 130 and prints what is right.
fn interrupted(arguments: &[&str], is_right: impl Fn(&str) -> bool) {
    let mut last = None;
    for millis in [500, 2_000, 8_000] {
        let mut command = Command::new(LINERATE);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        signal(&child, Signal::SIGINT);
        let output = child.wait_with_output().unwrap();
        if output.status.code() == Some(130) && is_right(&String::from_utf8_lossy(&output.stdout)) {
            return;
        }
        last = Some(output);
    }
    panic!("{last:?}");
}

#[test]
fn the_selftest_compares_every_case_with_its_ground_truth() {
    if !engine_is_built() {
        return;
    }
    let output = linerate(&["selftest", "--duration", "300ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // On a busy machine values exceed their bounds: status 1.
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

#[test]
fn misspelt_names_on_the_command_line_are_refused_with_the_nearest_name() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (arguments, nearest) in [
        (&["list", "workload"][..], "'workloads'"),
        (&["sytems"], "'systems'"),
        (&["load", "http://127.0.0.1:1/", "--conections", "5"], "--connections"),
        (&["report", "x", "--format", "htm"], "'html'"),
        (&["load", "http://127.0.0.1:1/", "--rate", "5", "--arrival", "poison"], "'poisson'"),
        (&["new", "system", "mylib", "--lang", "rus"], "'rust'"),
        (&["systems", "haprxy"], "nearest: \"haproxy\""),
        (&["systems", "haproxy-tpc"], "nearest: \"haproxy-tcp\""),
        (&["run", "prxy"], "nearest: \"proxy\""),
    ] {
        let output = Command::new(LINERATE).args(arguments).env("LINERATE_HOME", &home).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(nearest), "{arguments:?}: {stderr}");
    }
}

#[test]
fn no_private_key_is_an_argument_of_a_process() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["https://127.0.0.1:0"]);
    let id = server.child.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    assert_eq!(children.split_whitespace().count(), 1);
    for process in children.split_whitespace().chain([&*id.to_string()]) {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&line).contains("PRIVATE KEY"));
    }
}

#[test]
fn under_nohup_a_hangup_ends_nothing() {
    if !engine_is_built() {
        return;
    }
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" serve http://127.0.0.1:0", LINERATE]);
    let mut server = Server::by(command);
    signal(&server.child, Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.child.try_wait().unwrap().is_none());
}

#[test]
fn serve_replaces_no_file_but_its_own_ca_certificate() {
    if !engine_is_built() {
        return;
    }
    let file = std::env::temp_dir().join(format!("linerate-serve-{}.pem", std::process::id()));
    let path = file.to_str().unwrap();
    let arguments = ["https://127.0.0.1:0", "--authority", path];
    let old = linerate(&["serve", "http", "--listen", "127.0.0.1:8080"]);
    assert!(String::from_utf8_lossy(&old.stderr).contains("linerate serve http://127.0.0.1:8080"));
    std::fs::write(&file, "-----BEGIN PRIVATE KEY-----\nown\n").unwrap();
    let refused = linerate(&[&["serve"], &arguments[..]].concat());
    assert_eq!(refused.status.code(), Some(2));
    let reason = String::from_utf8_lossy(&refused.stderr);
    assert!(reason.contains("name a new file, or remove it"), "{reason}");
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("own\n"));
    std::fs::remove_file(&file).unwrap();
    drop(Server::serve(&arguments));
    let first = std::fs::read(&file).unwrap();
    drop(Server::serve(&arguments));
    assert_ne!(std::fs::read(&file).unwrap(), first);
    std::fs::remove_file(&file).unwrap();
}

/// A server that lets `respond` deal with each request on a connection, until it returns false.
fn serving(respond: impl Fn(&mut TcpStream) -> bool + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let respond = respond.clone();
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        if !respond(&mut stream) {
                            return;
                        }
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

/// The text that `linerate load` prints, and its exit status.
fn load(arguments: &[&str]) -> (String, Option<i32>) {
    let output = linerate(&[&["load"], arguments].concat());
    (String::from_utf8([output.stdout, output.stderr].concat()).unwrap(), output.status.code())
}
