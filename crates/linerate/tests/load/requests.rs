//! `linerate load` of servers of HTTP/1.1: what is sent, how often, and what is printed.

use crate::{Server, engine_is_built, in_some_try, linerate};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

/// A server that answers once with what it was sent.
fn echoes_one_request() -> (String, std::thread::JoinHandle<String>) {
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
            &["load", "http://shop.example/order", "-n", "1", "-c", "1"][..],
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
    let load = |more: &[&str]| linerate(&[&["load", &server.url, "-n", "200"], more].concat());
    let output = load(&["--repeat", "6", "--warmup", "50ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("median (95 % interval), n=6"), "{text}");
    let output = load(&["--repeat", "2", "--json", "-"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["runs"][1]["done"]["operations"], 200);
    let file = std::env::temp_dir().join(format!("linerate-test-{}-seconds.csv", std::process::id()));
    let csv = file.to_str().unwrap();
    let output = linerate(&["load", &server.url, "-d", "2500ms", "--rate", "100", "--csv", csv]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = std::fs::read_to_string(&file).unwrap();
    assert!(rows.lines().count() >= 3 && rows.starts_with("seconds,operations_per_second,"), "{rows}");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn results_over_time_add_up_to_the_whole_in_closed_and_open_loops_and_streams() {
    if !engine_is_built() {
        return;
    }
    let document = |arguments: &[&str]| -> serde_json::Value {
        let output = linerate(&[&["load"], arguments, &["-d", "2300ms", "--json", "-"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // Of `value` a second over the rows.
    let sum = |rows: &serde_json::Value, value: &str| {
        let (mut at, mut sum) = (0.0, 0.0);
        for row in rows.as_array().unwrap() {
            let seconds = row["seconds"].as_f64().unwrap();
            sum += row[value].as_f64().unwrap() * (seconds - at);
            at = seconds;
        }
        sum
    };
    let server = Server::start();
    for more in [&[][..], &["--rate", "500"]] {
        // Less than 100 ms after a late row has none.
        assert!(in_some_try(|| {
            let json = document(&[&[&*server.url], more].concat());
            let rows = json["by_second"].as_array().unwrap().len();
            assert!(json["by_second"][0]["p99_us"].as_f64().unwrap() > 0.0);
            let whole = json["done"]["operations"].as_f64().unwrap();
            let added = sum(&json["by_second"], "operations_per_second");
            assert!(added < whole + 1.0, "{added} of {whole}");
            rows >= 3 && added > whole - 1.0
        }));
    }
    let server = Server::serve(&["tcp://127.0.0.1:0", "--stream"]);
    let json = document(&[&server.url, "--stream"]);
    let stream = &json["streams"][0];
    let whole = stream["done"]["bytes"].as_f64().unwrap() * 8e-9;
    let added = sum(&stream["by_second"], "gbit_per_second");
    assert!(
        !stream["by_second"].as_array().unwrap().is_empty() && added <= whole * 1.05,
        "{added} of {whole}"
    );
    assert!(in_some_try(|| {
        let csv = linerate(&["load", &server.url, "--stream", "-d", "1200ms", "--csv", "-"]);
        String::from_utf8(csv.stdout).unwrap().contains("to server,1.0")
    }));
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
        let words = ["load", url, "-n", "4096", "-t", "1", "--requests", file.to_str().unwrap()];
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
    let output = linerate(&["load", &server.url, "-d", "500ms", "-c", "1", "--rate", "10000000"]);
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
    let sweep = ["load", &server.url, "-d", "50ms", "--warmup", "20ms", "--sweep"];
    let more = ["--at-most", "p50=1h", "--json", "-", "--csv", file.to_str().unwrap()];
    let mut json = serde_json::Value::Null;
    // A step has no result where the machine stands still for most of it.
    assert!(in_some_try(|| {
        let output = linerate(&[&sweep[..], &more].concat());
        json = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let highest = json["highest"]["passes_per_second"].as_f64();
        output.status.success() && highest > json["closed_loop_per_second"].as_f64()
    }));
    let (steps, closed) =
        (json["steps"].as_array().unwrap(), json["closed_loop_per_second"].as_f64().unwrap());
    assert!(closed > 0.0 && steps.len() == 14, "{json}");
    let share = steps[4]["spec"]["rate"].as_f64().unwrap() / closed;
    assert!((share - 0.5).abs() < 1e-9 && steps[4]["share"] == 0.5, "{share}");
    assert!(json["highest"]["is_decided"] == false, "{json}");
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 15);
    std::fs::remove_file(file).unwrap();
    let refused = linerate(&["load", &server.url, "--sweep", "--at-most", "2ms"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("such as p99=2ms"));
}

/// Answers each request of each connection, and passes on the head of the first.
fn heads(accept: impl Fn() -> Box<dyn ReadWrite> + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (heads, first) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        loop {
            let (mut stream, heads) = (accept(), heads.clone());
            std::thread::spawn(move || {
                while let Some(head) = head(&mut *stream) {
                    let _ = heads.send(head);
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    first
}

trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// Up to the empty line.
fn head(stream: &mut dyn ReadWrite) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

#[test]
fn a_unix_socket_is_loaded_by_its_path() {
    if !engine_is_built() {
        return;
    }
    let socket = std::env::temp_dir().join(format!("linerate-test-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&socket).unwrap();
    let heads = heads(move || Box::new(listener.accept().unwrap().0));
    let path = socket.to_str().unwrap();
    for more in [&[][..], &["--no-keepalive"], &["--rate", "1000"]] {
        let words = ["load", "http://shop/items", "--unix-socket", path, "-n", "200"];
        let output = linerate(&[&words[..], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("requests    200 in ") && text.contains("failed      none"), "{text}");
        assert!(text.contains(path), "{text}");
    }
    assert!(heads.recv().unwrap().starts_with("GET /items HTTP/1.1\r\nHost: shop\r\n"));
    std::fs::remove_file(&socket).unwrap();
    let gone = linerate(&["load", "http://shop/", "--unix-socket", path]);
    assert_eq!(gone.status.code(), Some(3));
    assert!(String::from_utf8(gone.stderr).unwrap().contains("check that the server runs"));
}

#[test]
fn a_proxy_gets_whole_urls_or_opens_a_tunnel() {
    if !engine_is_built() {
        return;
    }
    let listen = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    };
    let (listener, address) = listen();
    let heads = heads(move || Box::new(listener.accept().unwrap().0));
    let proxy = format!("http://me:secret@{address}");
    let output = linerate(&["load", "http://shop.example/a", "--proxy", &proxy, "-n", "20"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let head = heads.recv().unwrap();
    assert!(head.starts_with("GET http://shop.example/a HTTP/1.1\r\nHost: shop.example\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");

    let server = Server::serve(&["https://127.0.0.1:0", "--size", "100"]);
    let place = server.url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let (listener, address) = listen();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let place = place.clone();
            std::thread::spawn(move || {
                let Some(head) = self::head(&mut client) else { return };
                if !head.starts_with(&format!("CONNECT {place} HTTP/1.1\r\n")) {
                    let _ = client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
                    return;
                }
                let mut server = std::net::TcpStream::connect(&place).unwrap();
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                let _ = std::io::copy(&mut server, &mut client);
            });
        }
    });
    let proxy = format!("http://{address}");
    for more in [&[][..], &["--no-keepalive"]] {
        let words = ["load", &server.url, "--insecure", "--proxy", &proxy, "-n", "50"];
        let output = linerate(&[&words[..], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("requests    50 in ") && text.contains("failed      none"), "{text}");
    }
    let refused = linerate(&["load", "https://other.example/", "--insecure", "--proxy", &proxy]);
    let reason = String::from_utf8(refused.stderr).unwrap();
    assert!(reason.contains("opens no tunnel to other.example:443: it answers \"HTTP/1.1 403"), "{reason}");
}

#[test]
fn several_urls_of_one_server_are_requested_as_often_as_each_other() {
    if !engine_is_built() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads = heads(move || Box::new(listener.accept().unwrap().0));
    let urls = [format!("{url}/a"), format!("{url}/b")];
    let output = linerate(&["load", &urls[0], &urls[1], "-n", "4096", "-t", "1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sent: Vec<String> = heads.try_iter().collect();
    assert_eq!(sent.iter().filter(|head| head.starts_with("GET /a ")).count(), 2048);
    let two = linerate(&["load", &urls[0], "http://127.0.0.1:1/"]);
    assert!(String::from_utf8(two.stderr).unwrap().contains("are on two servers"));
}

#[test]
fn every_document_is_by_the_published_schema() {
    if !engine_is_built() {
        return;
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/load.schema.json");
    let mut published: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    // One of them, so that a fault has its place.
    published.as_object_mut().unwrap().remove("anyOf");
    let (http, tcp, udp) = (
        Server::start(),
        Server::serve(&["tcp://127.0.0.1:0", "--stream"]),
        Server::serve(&["udp://127.0.0.1:0", "--stream"]),
    );
    for (kind, arguments) in [
        ("OperationsJson", &[&*http.url, "-d", "1200ms"][..]),
        ("OperationsJson", &[&http.url, "-d", "100ms", "--rate", "1000"]),
        ("RepeatsJson", &[&http.url, "-n", "50", "--repeat", "6"]),
        ("SweepJson", &[&http.url, "-d", "20ms", "--sweep", "--at-most", "p90=1h"]),
        ("StreamsJson", &[&tcp.url, "-d", "1200ms", "--both"]),
        ("DatagramsJson", &[&udp.url, "--stream", "-d", "100ms", "--rate", "1000"]),
    ] {
        // A load has no document where the machine stands still for all of it.
        let mut document = serde_json::Value::Null;
        assert!(in_some_try(|| {
            let output = linerate(&[&["load"], arguments, &["--json", "-"]].concat());
            document = serde_json::from_slice(&output.stdout).unwrap_or_default();
            !document.is_null()
        }));
        published["$ref"] = format!("#/$defs/{kind}").into();
        let faults = crate::schema::faults(&published, &document);
        let first: String = faults.iter().flat_map(|fault| fault.chars().take(200)).collect();
        assert!(faults.is_empty(), "{arguments:?}: {first}");
    }
}
