//! `linerate load` over HTTP/2, HTTP/3, QUIC and gRPC, and their servers.

use crate::{Server, engine_is_built, linerate, timed};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};

#[test]
fn pages_are_loaded_over_http_2_with_and_without_tls() {
    if !engine_is_built() {
        return;
    }
    for scheme in ["h2c", "h2"] {
        let server = Server::serve(&[&format!("{scheme}://127.0.0.1:0"), "--size", "100"]);
        let insecure: &[&str] = if scheme == "h2c" { &[] } else { &["--insecure"] };
        let load = |more: &[&str]| linerate(&[&["load", &server.url, "-n", "700"], insecure, more].concat());
        let text = String::from_utf8(load(&["-c", "2", "--streams", "300"]).stdout).unwrap();
        assert!(text.contains("requests    700 in ") && text.contains("failed      none"), "{text}");
        assert!(text.contains("300 streams on each connection"), "{text}");
        assert!(text.contains("256 at once on a connection, of 300 asked for"), "{text}");
        let output = load(&["-c", "1", "--streams", "7", "--json", "-"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let figures = [&json["streams"]["most"], &json["statuses"]["200"], &json["done"]["bytes"]];
        assert_eq!(figures.map(serde_json::Value::as_u64), [Some(7), Some(700), Some(70_000)]);
        assert_eq!(json["done"]["tls"].is_string(), scheme == "h2");
    }
}

#[test]
fn pages_are_loaded_over_http_3_in_a_closed_and_an_open_loop() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["h3://127.0.0.1:0", "--size", "100", "--congestion", "reno"]);
    for more in [&["-n", "700"][..], &["--rate", "1000", "-d", "700ms", "-c", "2"]] {
        let words = ["load", &server.url, "--insecure", "--streams", "5", "--json", "-"];
        let output = linerate(&[&words[..], more].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_all_of_700(&json, "200", 100);
        assert!(json["done"]["tls"].is_string());
    }
    let words = ["load", &server.url, "--insecure", "--no-keepalive", "-n", "50", "-c", "5"];
    let text = String::from_utf8(linerate(&words).stdout).unwrap();
    assert!(text.contains("50 in ") && text.contains("a new connection for each request"), "{text}");
}

/// A machine that stands still at the end of a schedule leaves the last requests of it unsent, or in flight.
fn assert_all_of_700(json: &serde_json::Value, status: &str, bytes: u64) {
    let done = &json["done"];
    let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let operations = count(&done["operations"]);
    let due = operations + count(&done["schedule"]["unsent"]) + count(&done["in_flight"]);
    assert!(operations > 0 && due == 700, "{json}");
    assert_eq!((count(&json["statuses"][status]), count(&done["bytes"])), (operations, operations * bytes));
}

#[test]
fn responses_over_quic_have_the_length_that_is_asked_for() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["quic://127.0.0.1:0"]);
    let words = ["load", &server.url, "--insecure", "--streams", "5", "--json", "-"];
    for more in [&[][..], &["--rate", "1000", "--response-size", "20000"]] {
        let output = timed(&[&words[..], more].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let [operations, bytes] = ["operations", "bytes"].map(|name| json["done"][name].as_u64().unwrap());
        let each = if more.is_empty() { 4_000 } else { 20_000 };
        assert!(operations > 0 && bytes == operations * each, "{operations} {bytes}");
    }
}

/// As over HTTP/1.1: several requests, a connection for each, and Unix domain sockets.
#[test]
fn requests_and_calls_over_streams_have_what_those_of_http_1_have() {
    if !engine_is_built() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("linerate-h2-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mix = folder.join("mix.jsonl");
    for (scheme, lines) in [
        ("h2c", "{\"path\": \"/a\", \"weight\": 3}\n{\"path\": \"/b\"}\n"),
        ("h3", "{\"path\": \"/a\", \"weight\": 3}\n{\"path\": \"/b\"}\n"),
        (
            "grpc",
            "{\"path\": \"/a.B/C\", \"weight\": 3, \"body\": \"base64:/wA=\"}\n{\"path\": \"/a.B/D\"}\n",
        ),
    ] {
        std::fs::write(&mix, lines).unwrap();
        let server = Server::serve(&[&format!("{scheme}://127.0.0.1:0"), "--size", "100"]);
        let unix = folder.join(scheme);
        let (listener, address) = (UnixListener::bind(&unix).unwrap(), server.url.clone());
        std::thread::spawn(move || {
            let place = address.split("://").nth(1).unwrap().trim_end_matches('/').to_owned();
            listener.incoming().flatten().for_each(|one| join(one, TcpStream::connect(&place).unwrap()));
        });
        let several = ["load", &server.url, "-n", "400", "--requests", mix.to_str().unwrap()];
        let by_socket = ["--unix-socket", unix.to_str().unwrap()];
        let other: &[&str] = if scheme == "h3" { &["--insecure"] } else { &by_socket };
        let insecure: &[&str] = if scheme == "h3" { &["--insecure"] } else { &[] };
        for more in
            [&[&["--no-keepalive"], insecure].concat()[..], other, &[&["--rate", "900"], insecure].concat()]
        {
            let output = linerate(&[&several[..], more, &["-c", "2", "--json", "-"]].concat());
            let json: serde_json::Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|_| panic!("{more:?}: {}", String::from_utf8_lossy(&output.stderr)));
            let rows = json["by_request"].as_array().unwrap();
            let good = |row: &serde_json::Value| row["operations"].as_u64().unwrap();
            assert_eq!(rows.iter().map(good).sum::<u64>(), 400, "{scheme} {more:?}: {json}");
            assert!(good(&rows[0]) > 2 * good(&rows[1]), "{rows:?}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Copies both ways.
fn join(one: UnixStream, other: TcpStream) {
    let (mut from, mut to) = (one.try_clone().unwrap(), other.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let (mut from, mut to) = (other, one);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
}

#[test]
fn calls_of_grpc_are_made_and_counted_by_status_in_a_closed_and_an_open_loop() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["grpc://127.0.0.1:0", "--size", "100"]);
    let url = format!("{}shop.Items/Get", server.url);
    for more in [&["-n", "700"][..], &["--rate", "1000", "-d", "700ms", "-c", "2"]] {
        let words = ["load", &url, "--message", "base64:/wA=", "--streams", "5", "--json", "-"];
        let output = linerate(&[&words[..], more].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_all_of_700(&json, "grpc-0", 107);
    }
    for (words, part) in [
        (&["--body", "x"][..], "--message"),
        (&["--message", "base64:?"], "--message base64:?"),
        (&["--message", "@no-such-file"], "no-such-file"),
    ] {
        let output = linerate(&[&["load", &*url], words].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(part), "{part}: {text}");
    }
}
