//! `linerate load http`: what is sent, how often, and what is printed.

use crate::{Server, engine_is_built, linerate};

/// A server that answers once with what it was sent.
fn echoes_one_request() -> (String, std::thread::JoinHandle<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let request = std::thread::spawn(move || {
        // The first connection is the look whether anything listens.
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut buffer) = (String::new(), [0; 4_096]);
        while !request.ends_with("body") {
            let n = stream.read(&mut buffer).unwrap();
            request += std::str::from_utf8(&buffer[..n]).unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        request
    });
    (address, request)
}

#[test]
fn a_request_has_the_body_of_a_file_credentials_and_another_address() {
    if !engine_is_built() {
        return;
    }
    let file = std::env::temp_dir().join(format!("linerate-test-{}-body", std::process::id()));
    std::fs::write(&file, "the body").unwrap();
    let (address, request) = echoes_one_request();
    let body = format!("@{}", file.display());
    let output = linerate(
        &[
            &["load", "http", "http://shop.example/order", "-n", "1", "-c", "1"][..],
            &["--connect-to", &address, "--body", &body, "--user", "me:secret"],
        ]
        .concat(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let request = request.join().unwrap();
    assert!(request.starts_with("POST /order HTTP/1.1\r\nHost: shop.example\r\n"), "{request}");
    assert!(request.contains("Authorization: Basic bWU6c2VjcmV0\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\nthe body"), "{request}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_load_is_repeated_after_a_warm_up_or_written_by_second() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    let load = |more: &[&str]| linerate(&[&["load", "http", &server.url, "-n", "200"], more].concat());
    let output = load(&["--repeat", "6", "--warmup", "50ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("median (95 % interval), n=6"), "{text}");
    let output = load(&["--repeat", "2", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"][1]["done"]["operations"], 200);
    let file = std::env::temp_dir().join(format!("linerate-test-{}-seconds.csv", std::process::id()));
    let csv = file.to_str().unwrap();
    let output = linerate(&["load", "http", &server.url, "-d", "2500ms", "--rate", "100", "--csv", csv]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = std::fs::read_to_string(&file).unwrap();
    assert!(rows.lines().count() >= 3 && rows.starts_with("seconds,operations_per_second,"), "{rows}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn several_requests_of_a_file_are_sent_by_weight_and_counted_by_status() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    let file = std::env::temp_dir().join(format!("linerate-test-{}-mix", std::process::id()));
    let line = |path: &str, more: &str| format!("{{\"path\": \"{path}\"{more}}}\n");
    std::fs::write(&file, line("/a", ", \"weight\": 3") + &line("/b", ", \"body\": \"x\"")).unwrap();
    let load = |url: &str, more: &[&str]| {
        let words = ["load", "http", url, "-n", "4096", "-t", "1", "--requests", file.to_str().unwrap()];
        linerate(&[&words[..], more].concat())
    };
    // The server refuses a body: a quarter of the requests.
    let output = load(&server.url, &["--max-failed", "50%", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["statuses"], serde_json::json!({ "200": 3072, "400": 1024 }));
    assert_eq!(json["done"]["errors"]["wrong_status"], 1024);
    let refused = load(&format!("{}items", server.url), &[]);
    let reason = String::from_utf8(refused.stderr).unwrap();
    assert!(reason.contains("give the URL without /items"), "{reason}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_rate_that_the_server_cannot_reach_gets_a_warning() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    // One connection: a request that is due finds it busy for most of the time.
    let output = linerate(&["load", "http", &server.url, "-d", "500ms", "-c", "1", "--rate", "10000000"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("WARNING: the rate was not reached"), "{text}");
}

#[test]
fn a_sweep_has_a_row_for_each_rate_and_a_bound_that_all_meet_has_a_least_rate() {
    if !engine_is_built() {
        return;
    }
    let server = Server::start();
    let file = std::env::temp_dir().join(format!("linerate-test-{}-sweep.csv", std::process::id()));
    let sweep = ["load", "http", &server.url, "-d", "50ms", "--warmup", "20ms", "--sweep"];
    let more = ["--at-most", "p50=1h", "--json", "-", "--csv", file.to_str().unwrap()];
    let output = linerate(&[&sweep[..], &more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (steps, closed) =
        (json["steps"].as_array().unwrap(), json["closed_loop_per_second"].as_f64().unwrap());
    assert!(closed > 0.0 && steps.len() == 14, "{json}");
    let share = steps[4]["spec"]["rate"].as_f64().unwrap() / closed;
    assert!((share - 0.5).abs() < 1e-9 && steps[4]["share"] == 0.5, "{share}");
    let highest = &json["highest"];
    assert!(highest["passes_per_second"].as_f64().unwrap() > closed && highest["is_decided"] == false);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 15);
    std::fs::remove_file(file).unwrap();
    let refused = linerate(&["load", "http", &server.url, "--sweep", "--at-most", "2ms"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("such as p99=2ms"));
}
