//! `linerate load` of messages and streams over connections and datagrams.

use crate::{Server, engine_is_built, interrupted, linerate, timed};

#[test]
fn datagrams_are_sent_received_and_counted() {
    if !engine_is_built() {
        return;
    }
    for layer in ["udp", "kcp"] {
        let server = Server::serve(&[&format!("{layer}://127.0.0.1:0"), "--stream"]);
        let rate: &[&str] = if layer == "udp" { &["--stream", "--rate", "1000"] } else { &[] };
        let output = timed(&[&["load", &server.url], rate].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("Gbit/s"), "{text}");
        assert_eq!(text.contains(" sent"), layer == "udp", "{text}");
        let output = timed(&[&["load", &server.url, "--json", "-"], rate].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["done"]["bytes"].as_u64().unwrap() > 0);
        // 1,000 a second; a machine that stalls sends fewer, never more.
        let sent = json["done"]["datagrams"]["sent"].as_u64();
        let most = json["spec"]["duration_ns"].as_u64().unwrap() / 1_000_000;
        assert!(layer == "kcp" || sent.is_some_and(|sent| (1..=most).contains(&sent)), "{sent:?}");
    }
    let dead = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = format!("udp://{dead}");
    let output = linerate(&["load", &dead, "--stream", "-d", "100ms", "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(3));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.contains(&format!("`linerate serve {dead} --stream`")), "{reason}");
    let both = linerate(&["load", &dead, "--rate", "5", "--search", "1"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn streams_go_in_each_direction_and_show_the_tcp_statistics_of_the_kernel() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["tcp://127.0.0.1:0", "--stream"]);
    for (more, lines) in [
        (&["--stream"][..], &["to server", "segments retransmitted"][..]),
        (&["--reverse", "-P", "3", "-t", "2"], &["from server", "3 connections"]),
        (&["--both", "--size", "1000"], &["to server", "from server", "together"]),
    ] {
        let output = timed(&[&["load", &server.url], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(lines.iter().all(|line| text.contains(line)), "{more:?}: {text}");
        assert!(text.contains("every byte compared") && !text.contains("failed"), "{more:?}: {text}");
    }
    let output = timed(&["load", &server.url, "--both", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (index, direction) in ["to server", "from server"].iter().enumerate() {
        let stream = &json["streams"][index];
        assert_eq!(stream["direction"], *direction);
        assert!(stream["gbit_per_second"].as_f64().unwrap() > 0.0);
        assert_eq!(stream["done"]["verified"], stream["done"]["bytes"]);
    }
}

#[test]
fn messages_are_sent_back_over_every_protocol_that_has_them() {
    if !engine_is_built() {
        return;
    }
    for scheme in ["tcp", "tls", "udp", "ws", "wss"] {
        let server = Server::serve(&[&format!("{scheme}://127.0.0.1:0")]);
        let trust: &[&str] = if ["tls", "wss"].contains(&scheme) { &["-k"] } else { &[] };
        let output = linerate(&[&["load", &server.url, "-n", "500", "--warmup", "20ms"], trust].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("round trips 500 in ") && text.contains("failed      none"),
            "{scheme}: {text}"
        );
        assert!(text.starts_with(&format!("{scheme}://127.0.0.1:")) && text.contains("99 %"), "{text}");
    }
}

#[test]
fn an_interrupted_stream_prints_its_partial_result() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["tcp://127.0.0.1:0", "--stream"]);
    let is_right = |text: &str| text.contains("together") && !text.contains("failed");
    interrupted(&["load", &server.url, "-d", "1h", "--both"], is_right);
}

#[test]
fn websocket_servers_are_loaded_with_and_without_tls() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["ws://127.0.0.1:0"]);
    for more in [&["-c", "5"][..], &["--rate", "1000", "--size", "1024"]] {
        let output = timed(&[&["load", &server.url], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("round trips ") && text.contains("failed      none"), "{more:?}: {text}");
    }
    let authority = std::env::temp_dir().join(format!("linerate-test-{}-ca.pem", std::process::id()));
    let authority = authority.to_str().unwrap();
    let secure = Server::serve(&["wss://127.0.0.1:0", "--authority", authority]);
    for trust in [&["--authority", authority][..], &["--insecure"]] {
        let output = timed(&[&["load", &secure.url], trust].concat());
        assert!(output.status.success(), "{trust:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // The system does not trust the new CA.
    assert!(!linerate(&["load", &secure.url, "-n", "5"]).status.success());
    std::fs::remove_file(authority).unwrap();
    for direction in [&[][..], &["--reverse"]] {
        let server = Server::serve(&[&["ws://127.0.0.1:0", "--stream"], direction].concat());
        // A debug build takes most of a second for a transfer on a shared CPU.
        let output = linerate(&[&["load", &server.url, "-d", "3s", "--stream"], direction].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Gbit/s") && text.contains("every byte compared"), "{text}");
    }
}
