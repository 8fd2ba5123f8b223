//! Bytes that `linerate load` sends, and their addresses: any bytes, from any address, to any address of a
//! name.

use crate::{LINERATE, engine_is_built, load, serving};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

/// A server that answers requests whose bodies have `length` bytes; the bodies, and who sent them.
fn taking(length: usize) -> (String, Receiver<(Vec<u8>, SocketAddr)>) {
    let (sender, bodies) = channel();
    let url = serving(move |stream| {
        let mut body = vec![0; length];
        stream.read_exact(&mut body).is_ok()
            && sender.send((body, stream.peer_addr().unwrap())).is_ok()
            && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_ok()
    });
    (url, bodies)
}

#[test]
fn a_body_may_have_any_bytes() {
    if !engine_is_built() {
        return;
    }
    let bytes: Vec<u8> = (0..=255).rev().cycle().take(100_000).collect();
    let folder = std::env::temp_dir().join(format!("linerate-sent-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [body, requests] = ["body", "mix.jsonl"].map(|name| folder.join(name).display().to_string());
    fs::write(&body, &bytes).unwrap();
    fs::write(
        &requests,
        format!("{{\"path\": \"/\", \"body\": \"@{body}\"}}\n{{\"path\": \"/b\", \"body\": \"@{body}\"}}\n"),
    )
    .unwrap();
    let body = format!("@{body}");
    for more in [["--body", &body], ["--requests", &requests]] {
        let (url, bodies) = taking(bytes.len());
        let (text, status) = load(&[&[&*url, "-n", "4", "-c", "1"], &more[..]].concat());
        assert!(status == Some(0) && text.contains("requests    4 in"), "{text}");
        assert!((0..4).all(|_| bodies.recv().unwrap().0 == bytes), "{more:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// The message on bad usage.
fn refused(words: &[&OsStr]) -> String {
    let output = Command::new(LINERATE).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && !text.contains("panicked"), "{words:?}: {text}");
    text
}

#[test]
fn a_word_that_is_not_utf_8_is_bad_usage_of_every_command_and_no_panic() {
    let latin = OsStr::from_bytes(b"caf\xe9");
    let commands = "load serve compare gate run init report history site merge list plan systems selftest \
                    fleet new completions man doctor";
    for command in commands.split_whitespace().map(OsStr::new) {
        refused(&[command, OsStr::new("--no-such"), latin]);
    }
    for command in ["load", "serve", "compare", "gate", "run", "plan"].map(OsStr::new) {
        refused(&[command, latin]);
    }
    let header = OsStr::from_bytes(b"X: caf\xe9");
    let text = refused(&[OsStr::new("load"), OsStr::new("127.0.0.1:9"), OsStr::new("-H"), header]);
    assert!(text.contains("UTF-8"), "{text}");
}

#[test]
fn connections_come_from_the_addresses_of_source() {
    if !engine_is_built() {
        return;
    }
    let (url, bodies) = taking(1);
    let source = "127.0.0.31,127.0.0.40-127.0.0.41";
    let (text, status) = load(&[&url, "-n", "12", "-c", "6", "-t", "1", "--body", "x", "--source", source]);
    assert_eq!(status, Some(0), "{text}");
    let mut seen: Vec<_> = (0..12).map(|_| bodies.recv().unwrap().1.ip().to_string()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["127.0.0.31", "127.0.0.40", "127.0.0.41"]);
    let (text, status) = load(&[&url, "-n", "1", "--source", "::1"]);
    assert!(status == Some(2) && text.contains("another kind of address"), "{text}");
    let (text, status) = load(&[&url, "-n", "1", "-c", "1", "--source", "192.0.2.9"]);
    assert!(status == Some(2) && text.contains("192.0.2.9 cannot be bound"), "{text}");
}

#[test]
fn a_server_of_datagrams_on_the_other_address_of_localhost_is_found() {
    let server = UdpSocket::bind("[::1]:0").unwrap();
    let port = server.local_addr().unwrap().port();
    if !engine_is_built() || UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        return;
    }
    std::thread::spawn(move || {
        let mut datagram = [0; 2048];
        while let Ok((length, from)) = server.recv_from(&mut datagram) {
            let _ = server.send_to(&datagram[..length], from);
        }
    });
    let (text, status) = load(&[&format!("udp://localhost:{port}"), "-n", "20", "-c", "2"]);
    assert!(status == Some(0) && text.contains("round trips 20 in") && text.contains("[::1]"), "{text}");
}

#[test]
fn a_server_that_waits_for_acknowledgements_is_found_out() {
    if !engine_is_built() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                // Two writes of a few bytes, with Nagle's algorithm: the second waits.
                while matches!(stream.read(&mut bytes), Ok(1..)) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
                    let _ = stream.write_all(b"hello");
                }
            });
        }
    });
    let (text, status) = load(&[&address, "-n", "160", "-c", "2"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("delayed acknowledgements of 40 ms for each request"), "{text}");
}

/// Two servers of one name; the number of connections of each is in both forms of the result.
#[test]
fn connections_go_to_all_places_in_turn_and_the_result_has_their_numbers() {
    if !engine_is_built() {
        return;
    }
    let urls = [(); 2].map(|()| {
        serving(|stream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_ok())
    });
    let places = urls.each_ref().map(|url| url.trim_start_matches("http://").trim_end_matches('/'));
    let to = places.join(",");
    let words = ["http://shop.test/", "--connect-to", &to, "-n", "12", "-c", "4", "-t", "1"];
    let (text, status) = load(&words);
    let row = format!("connections {} 2, {} 2", places[0].min(places[1]), places[0].max(places[1]));
    assert!(status == Some(0) && text.contains(&row), "{text}");
    let (json, _) = load(&[&words[..], &["--json", "-"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for place in places {
        assert_eq!(json["by_address"][place], 2, "{json}");
    }
}
