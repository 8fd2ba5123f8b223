//! Messages of `linerate serve` about clients that do something wrong.

use crate::{LINERATE, engine_is_built, linerate, signal, timed};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The lines of a server until its end, and its result as JSON, after `client` has met it at its address.
fn met(words: &[&str], client: impl Fn(&str)) -> (String, serde_json::Value) {
    let mut command = Command::new(LINERATE);
    command.arg("serve").args(words).args(["-t", "1", "--json", "-"]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut lines, mut text) = (BufReader::new(server.stderr.take().unwrap()), String::new());
    while !text.contains("until Ctrl-C") {
        assert!(lines.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let url = text.split_whitespace().find(|word| word.contains("127.0.0.1:")).unwrap().to_owned();
    client(&url);
    signal(&server, Signal::SIGTERM);
    lines.read_to_string(&mut text).unwrap();
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    (text, serde_json::from_slice(&output.stdout).unwrap())
}

fn place(url: &str) -> &str {
    url.split("://").nth(1).unwrap().trim_end_matches('/')
}

/// Sends bytes, and waits until the server has closed the connection.
fn says(url: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(place(url)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_server_says_what_its_clients_do_wrong_with_their_bytes_on_every_layer() {
    if !engine_is_built() {
        return;
    }
    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const TLS: &[u8] = b"\x16\x03\x01\0\x05\x01\0\0\x01\x03";
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xff; 40][..]].concat();
    let transfer = b"\x05\0\0\0\0\0\0\0hello";
    for (url, stream, bytes, kind, text, shown) in [
        ("http", false, TLS, "malformed", "not HTTP/1.1: the client speaks TLS here", r"\x16\x03\x01"),
        ("http", false, b"POST / HTTP/1.1\r\n\r\n", "malformed", "not a GET of HTTP/1.1", "POST / HTTP/1.1"),
        (
            "http",
            false,
            &GET[..9],
            "truncated",
            "the client closed the connection within a request",
            "GET / HTT",
        ),
        ("https", false, GET, "tls_failed", "not TLS: the client speaks HTTP/1.1", "GET / HTTP/1.1"),
        (
            "https",
            false,
            &TLS[..5],
            "tls_failed",
            "the client closed the connection during the handshake",
            "",
        ),
        ("h2c", false, GET, "malformed", "not HTTP/2: the client speaks HTTP/1.1", "GET / HTTP/1.1"),
        ("h2c", false, &preface, "malformed", "the client breaks the rules of HTTP/2", "PRI * HTTP/2"),
        ("h2", false, GET, "tls_failed", "not TLS: the client speaks HTTP/1.1", "GET / HTTP/1.1"),
        ("grpc", false, GET, "malformed", "not HTTP/2: the client speaks HTTP/1.1", "GET / HTTP/1.1"),
        ("ws", false, TLS, "malformed", "the client speaks TLS here", r"\x16\x03\x01"),
        ("ws", false, GET, "malformed", "not an upgrade to WebSocket (RFC 6455, 4.2.1)", "GET / HTTP/1.1"),
        ("wss", false, GET, "tls_failed", "not TLS: the client speaks HTTP/1.1", "GET / HTTP/1.1"),
        ("tls", false, GET, "tls_failed", "not TLS: the client speaks HTTP/1.1", "GET / HTTP/1.1"),
        ("tcp", true, transfer, "wrong_content", "good bytes of", ""),
    ] {
        let place = format!("{url}://127.0.0.1:0");
        let words = if stream { vec![&*place, "--stream"] } else { vec![&*place] };
        let (lines, json) = met(&words, |url| says(url, bytes));
        let cause = &json["causes"][0];
        assert_eq!((&json["failed"], &cause["kind"]), (&1.into(), &kind.into()), "{url}: {lines}{json}");
        assert!(cause["text"].as_str().unwrap().contains(text), "{url}: {json}");
        assert!(cause["bytes"].as_str().unwrap_or_default().starts_with(shown), "{url}: {json}");
        assert!(lines.contains(&format!("{kind}: ")) && lines.contains(text), "{url}: {lines}");
        assert!(lines.ends_with(&format!("failed: {kind} 1\n")), "{url}: {lines}");
    }
}

#[test]
fn a_server_says_what_datagrams_are_none_of_its_protocol_and_who_refuses_its_certificate() {
    if !engine_is_built() {
        return;
    }
    for (words, text) in [
        (&["udp://127.0.0.1:0", "--stream"][..], "a datagram that is none of linerate load --stream"),
        (&["kcp://127.0.0.1:0"], "a datagram that is none of KCP in stream mode"),
    ] {
        let sends = |millis| {
            met(words, |url| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.send_to(b"hello, is this DNS? no", place(url)).unwrap();
                std::thread::sleep(Duration::from_millis(millis));
            })
        };
        // Nothing tells when the server has read it.
        let mut met = [300, 2_000, 8_000].into_iter().map(sends);
        let (lines, json) = met.find(|(_, json)| json["causes"][0].is_object()).expect(text);
        let cause = &json["causes"][0];
        assert_eq!((&cause["kind"], &cause["text"]), (&"malformed".into(), &text.into()), "{lines}{json}");
        assert!(cause["bytes"].as_str().unwrap().starts_with("hello"), "{json}");
    }
    for scheme in ["https", "h2", "h3", "quic", "wss"] {
        let loads = |url: &str| {
            assert!(!linerate(&["load", url, "-n", "3", "-c", "1"]).status.success());
        };
        let (lines, json) = met(&[&format!("{scheme}://127.0.0.1:0")], loads);
        let refused = "tls_failed: the client refuses the certificate (received fatal alert: UnknownCA); \
                       the client has to trust it (serve --authority FILE)";
        assert!(lines.contains(refused), "{scheme}: {lines}{json}");
    }
}

/// Operations that a client leaves behind at the end of its time is no failure.
#[test]
fn clients_that_do_nothing_wrong_are_no_failures_of_a_server() {
    if !engine_is_built() {
        return;
    }
    for (words, more) in [
        (&["http://127.0.0.1:0"][..], &[][..]),
        (&["https://127.0.0.1:0"], &["-k"]),
        (&["h2c://127.0.0.1:0"], &[]),
        (&["h3://127.0.0.1:0"], &["-k"]),
        (&["grpc://127.0.0.1:0"], &[]),
        (&["ws://127.0.0.1:0"], &[]),
        (&["tcp://127.0.0.1:0", "--stream"], &["--stream"]),
        (&["tls://127.0.0.1:0", "--stream"], &["-k", "--stream"]),
        (&["udp://127.0.0.1:0", "--stream"], &["--stream", "-b", "10M"]),
        (&["kcp://127.0.0.1:0"], &[]),
    ] {
        let loads = |url: &str| {
            let url = if url.starts_with("grpc") { format!("{url}a.B/C") } else { url.to_owned() };
            let output = timed(&[&["load", &url], more].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let (lines, json) = met(words, loads);
        assert_eq!((&json["failed"], lines.contains("failed")), (&0.into(), false), "{words:?}: {lines}");
    }
}
