//! A client of several requests: each has its weight, its own answer and its own expectation.

use crate::common::{Engine, client, local};
use linerate_contract::{ErrorKind, Expect, Request, Spec, WeightedRequest};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A server that answers by path, and the requests that it got.
fn shop() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(local()).unwrap();
    let (address, got) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let all = got.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let all = all.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let mut stream = stream;
                while let Some(first) = lines.next() {
                    let closes =
                        lines.by_ref().take_while(|line| !line.is_empty()).any(|l| l.contains("close"));
                    let answer = match first.split(' ').nth(1).unwrap() {
                        "/items" => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nitems",
                        "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
                        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
                    };
                    all.lock().unwrap().push(first);
                    if stream.write_all(answer.as_bytes()).is_err() || closes {
                        return;
                    }
                }
            });
        }
    });
    (address, got)
}

fn one(path: &str, weight: u32, expect: Option<Expect>) -> WeightedRequest {
    WeightedRequest { path: path.into(), request: Request::default(), expect, weight }
}

fn several(workload: &str, address: SocketAddr) -> Spec {
    let mut spec = client(workload, address, 0, 4096);
    let none = Expect { status: Some(404), bytes: Some(4), crc32: None, every: 1 };
    let mut head = one("/head", 1, None);
    head.request.method = Some("HEAD".into());
    spec.requests =
        vec![one("/items", 6, Some(Expect::of_page(b"items", 1))), one("/no", 1, Some(none)), head];
    (spec.connections, spec.threads, spec.expect) = (3, 1, None);
    spec
}

#[test]
fn each_request_is_sent_by_its_weight_and_has_its_own_expectation() {
    for (workload, rate) in [("rr", None), ("crr", None), ("rr", Some(20_000.0)), ("crr", Some(5_000.0))] {
        let (address, got) = shop();
        let spec = Spec { rate, ..several(workload, address) };
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (4096, 0), "{workload}: {:?}", done.errors);
        let got = got.lock().unwrap();
        let of = |first: &str| got.iter().filter(|line| line.starts_with(first)).count() as u64;
        // The order has 4096 requests.
        assert_eq!(["GET /items ", "GET /no ", "HEAD /head "].map(of), [3072, 512, 512], "{workload}");
        assert_eq!(done.verified, of("GET /items "), "{workload}");
        let statuses =
            [("200".to_owned(), of("GET /items ") + of("HEAD /head ")), ("404".into(), of("GET /no "))];
        assert_eq!(done.statuses, statuses.into(), "{workload}");
    }
}

#[test]
fn a_wrong_answer_to_one_request_is_its_own_failure() {
    let (address, _) = shop();
    let mut spec = several("rr", address);
    spec.requests[1].expect = None;
    let done = Engine::start(&spec).done();
    let wrong = done.errors.0.get(&ErrorKind::WrongStatus).copied();
    assert_eq!((done.operations, wrong, done.statuses["404"]), (4096 - 512, Some(512), 512));
}
