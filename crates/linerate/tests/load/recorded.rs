//! Requests that others have recorded, and the rows of a table.

use crate::{Server, engine_is_built, load};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that answers 404 to what is gone; the first lines of its requests.
fn shop() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let asked = Arc::clone(&shared);
            std::thread::spawn(move || {
                let mut first = String::new();
                for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                    if first.is_empty() {
                        first = line;
                    } else if line.is_empty() {
                        let status = if first.contains("/gone") { "404 Not Found" } else { "200 OK" };
                        let text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                        asked.lock().unwrap().push(std::mem::take(&mut first));
                        let _ = stream.write_all(text.as_bytes());
                    }
                }
            });
        }
    });
    (url, asked)
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

const LOG: &str = r#"::1 - - [10/Oct/2000:20:55:36 +0000] "GET /a HTTP/1.1" 200 1 "-" "x"
::1 - - [10/Oct/2000:20:55:38 +0000] "GET /gone HTTP/1.1" 404 1 "-" "x"
::1 - - [10/Oct/2000:20:55:40 +0000] "DELETE /a HTTP/1.1" 200 1 "-" "x"
::1 - - [10/Oct/2000:20:55:42 +0000] "-" 408 0 "-" "-"
::1 - - [10/Oct/2000:20:55:44 +0000] "GET /a HTTP/1.1" 200 1 "-" "x"
"#;

#[test]
fn an_access_log_is_sent_by_its_weights_or_at_its_times() {
    if !engine_is_built() {
        return;
    }
    let log = file("access-log", LOG);
    let (url, asked) = shop();
    let requests = ["--requests", log.to_str().unwrap()];
    let (text, status) = load(&[&[&*url, "-n", "4096", "-t", "1"], &requests[..]].concat());
    assert!(status == Some(0) && text.contains("requests    4,096 in"), "{text}");
    let count = |line: &str| asked.lock().unwrap().iter().filter(|asked| asked.starts_with(line)).count();
    let counts = ["GET /a ", "GET /gone ", "DELETE /a "].map(count);
    assert_eq!(counts, [2048, 1024, 1024]);
    asked.lock().unwrap().clear();
    let begin = Instant::now();
    let (text, status) = load(&[&[&*url, "--replay=40", "-c", "1"], &requests[..]].concat());
    assert!(status == Some(0) && text.contains("requests    4 in"), "{text}");
    assert!(begin.elapsed() >= Duration::from_millis(200), "eight seconds, forty times as fast");
    let lines = asked.lock().unwrap().clone();
    assert_eq!(lines, ["GET /a", "GET /gone", "DELETE /a", "GET /a"].map(|one| format!("{one} HTTP/1.1")));
    fs::remove_file(log).unwrap();
    let lines = file("no-times", "{\"path\": \"/\"}");
    let (text, status) = load(&[&url, "--replay", "--requests", lines.to_str().unwrap()]);
    assert!(status == Some(2) && text.contains("has no times in this file"), "{text}");
    fs::remove_file(lines).unwrap();
}

#[test]
fn each_row_of_a_table_is_a_request() {
    if !engine_is_built() {
        return;
    }
    let table = file("users", "id,name\n7,Doe\n8,J. D.\n");
    let (url, asked) = shop();
    let target = format!("{url}/u/{{csv:id}}?n={{csv:name}}");
    let (text, status) = load(&[&target, "-n", "4096", "-t", "1", "--feed", table.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{text}");
    let count = |line: &str| asked.lock().unwrap().iter().filter(|asked| asked.starts_with(line)).count();
    assert_eq!(["GET /u/7?n=Doe ", "GET /u/8?n=J.%20D. "].map(count), [2048; 2]);
    fs::remove_file(table).unwrap();
    let (text, status) = load(&[&target, "-n", "1"]);
    assert!(status == Some(2) && text.contains("{csv:COLUMN} needs --feed"), "{text}");
}

#[test]
fn the_time_limit_of_a_call_is_told_to_its_server() {
    if !engine_is_built() {
        return;
    }
    let server = Server::serve(&["grpc://127.0.0.1:0"]);
    let url = format!("{}shop.Items/Get", server.url.trim_end_matches('/').to_owned() + "/");
    let spec = |more: &[&str]| load(&[&[&*url, "-n", "3", "--json", "-"], more].concat()).0;
    assert!(spec(&["--timeout", "250ms"]).contains("grpc-timeout: 250000u"), "{}", spec(&[]));
    assert!(!spec(&[]).contains("grpc-timeout"));
}
