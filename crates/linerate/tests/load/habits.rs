//! `linerate load` of servers with habits: what is no failure is none, and a failure has a cause and a next
//! step.

use crate::{engine_is_built, in_some_try, linerate, load, serving};
use std::io::{Read, Write};
use std::time::Duration;

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found";

#[test]
fn a_connection_that_the_server_ends_between_requests_is_counted_and_no_failure() {
    if !engine_is_built() {
        return;
    }
    let url = serving(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        false
    });
    let (text, status) = load(&[&url, "-n", "6", "-c", "1"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("failed      none") && text.contains("closed      "), "{text}");
    assert!(text.contains("by the server between requests"), "{text}");
}

#[test]
fn a_server_with_fewer_threads_than_connections_is_told_by_its_number() {
    if !engine_is_built() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    for _ in 0..2 {
        let listener = listener.try_clone().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
                }
            }
        });
    }
    let told = "the server takes 2 of 5 connections at a time and keeps the others waiting: -c 2";
    let tells = || load(&[&url, "-c", "5", "-d", "300ms", "--timeout", "700ms"]).0.contains(told);
    assert!(in_some_try(tells));
    let (text, _) = load(&[&url, "-c", "2", "-n", "2000"]);
    assert!(!text.contains("at a time"), "{text}");
}

#[test]
fn a_status_is_right_if_it_is_expected_and_else_has_a_cause_and_a_next_step() {
    if !engine_is_built() {
        return;
    }
    let url = serving(|stream| stream.write_all(NOT_FOUND).is_ok());
    let (text, status) = load(&[&url, "-n", "40", "-c", "1", "--expect", "status=404"]);
    assert!(status == Some(0) && text.contains("failed      none") && text.contains("404: 40"), "{text}");
    let (text, status) = load(&[&url, "-n", "40", "-c", "1"]);
    assert!(status == Some(3) && text.contains("404: 40"), "{text}");
    assert!(text.contains("wrong_status: status 404 in place of 200 to 399"), "{text}");
    assert!(text.contains("--expect status=N"), "{text}");
    let output = linerate(&["load", &url, "-n", "4", "-c", "1", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["causes"][0]["kind"], &json["causes"][0]["failed"]),
        (&"wrong_status".into(), &4.into())
    );
    assert!(json["causes"][0]["bytes"].as_str().unwrap().contains("not found"), "{json}");
}

#[test]
fn another_protocol_is_named_with_its_url() {
    if !engine_is_built() {
        return;
    }
    let url = serving(|stream| {
        let _ = stream.write_all(b"\x15\x03\x01\x00\x02\x02\x46");
        false
    });
    let (text, status) = load(&[&url, "-n", "3", "-c", "1"]);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("the server speaks TLS there") && text.contains("https"), "{text}");
    assert!(text.contains(r"\x15\x03\x01"), "{text}");
}

#[test]
fn a_time_shorter_than_one_response_is_told_as_such() {
    if !engine_is_built() {
        return;
    }
    let url = serving(|stream| {
        std::thread::sleep(Duration::from_secs(1));
        stream.write_all(NOT_FOUND).is_ok()
    });
    let (text, status) = load(&[&url, "-d", "300ms", "-c", "2"]);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("no request ended within 0.300 s") && text.contains("-d"), "{text}");
}

#[test]
fn a_load_of_which_all_has_failed_is_still_a_document() {
    if !engine_is_built() {
        return;
    }
    let url = serving(|_| false);
    let output = linerate(&["load", &url, "-n", "4", "-c", "1", "--json", "-"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["failed"], output.status.code()), (&4.into(), Some(3)), "{text}");
    let numbers = ["requests_per_second", "seconds", "mib_per_second"];
    assert!(numbers.iter().all(|name| json[name].is_number()) && !text.contains("NaN"), "{text}");
    assert!(json["causes"][0]["text"].as_str().unwrap().contains("closed the connection"), "{text}");
}

#[test]
fn events_first_bytes_and_rows_are_in_the_text_and_the_document() {
    if !engine_is_built() {
        return;
    }
    let url = serving(|stream| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 36\r\n\r\n";
        let _ = stream.set_nodelay(true).and_then(|()| stream.write_all(head));
        (0..4).all(|_| {
            std::thread::sleep(Duration::from_millis(20));
            stream.write_all(b"data: x\n\n").is_ok()
        })
    });
    let (text, status) = load(&[&url, "-n", "6", "-c", "1", "--events"]);
    assert!(status == Some(0) && text.contains("events      24 in ") && text.contains(", gap "), "{text}");
    assert!(text.contains("latency  first byte"), "{text}");
    // A percentile beyond six requests would be the maximum.
    assert!(text.contains("50 %") && !text.contains("90 %"), "{text}");
    let other = format!("{url}/b");
    let of = |events: &str| -> serde_json::Value {
        let output = linerate(&["load", &url, &other, "-n", "4", "-c", "1", events, "--json", "-"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // What arrives while the machine stands still is one piece.
    let pieces = of("--events=pieces")["events"]["count"].as_u64().unwrap();
    assert!((5..=16).contains(&pieces), "{pieces}");
    let json = of("--events");
    assert_eq!(json["events"]["count"], 16, "{json}");
    let micros = |place: &str| json.pointer(place).unwrap().as_f64().unwrap();
    let whole = micros("/latency_us/max");
    assert!(micros("/first_byte_us/max") <= whole && micros("/latency_us/min") > 79_000.0, "{json}");
    assert!((15_000.0..=whole).contains(&micros("/events/gap_us/max")), "{json}");
    let paths: Vec<_> =
        json["by_request"].as_array().unwrap().iter().map(|row| row["path"].clone()).collect();
    assert_eq!(paths, ["/", "/b"]);
}
