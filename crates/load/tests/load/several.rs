//! A client of several requests: each has its weight, its own response and its own expectation.

use crate::common::{Engine, client, good_certificates, local, server};
use linerate_contract::{Done, ErrorKind, Expect, Layer, Request, Spec, WeightedRequest, page};
use std::collections::BTreeMap;
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
                    let response = match first.split(' ').nth(1).unwrap() {
                        "/items" => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nitems",
                        "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
                        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
                    };
                    all.lock().unwrap().push(first);
                    if stream.write_all(response.as_bytes()).is_err() || closes {
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

/// The number of response times of each status.
pub(crate) fn times_by_status(done: &Done) -> BTreeMap<String, u64> {
    done.by_status.iter().map(|(status, times)| (status.clone(), times.total())).collect()
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
        assert_eq!(times_by_status(&done), done.statuses, "{workload}");
        let rows: Vec<_> = done.requests.iter().map(|row| (row.operations, row.latency.total())).collect();
        assert_eq!(rows, [(3072, 3072), (512, 512), (512, 512)], "{workload}");
    }
}

#[test]
fn a_wrong_response_to_one_request_is_its_own_failure() {
    let (address, _) = shop();
    let mut spec = several("rr", address);
    spec.requests[1].expect = None;
    let done = Engine::start(&spec).done();
    let wrong = done.errors.0.get(&ErrorKind::WrongStatus).copied();
    assert_eq!((done.operations, wrong, done.statuses["404"]), (4096 - 512, Some(512), 512));
    assert_eq!(times_by_status(&done), done.statuses);
    let rows: Vec<_> = done.requests.iter().map(|row| (row.operations, row.errors.total())).collect();
    assert_eq!(rows, [(3072, 0), (0, 512), (512, 0)]);
}

/// Pages of the server and what it refuses, over streams; the bodies are of different lengths.
#[test]
fn requests_over_streams_have_their_own_bodies_expectations_and_rows() {
    let (server_tls, client_tls) = good_certificates();
    for (layer, workload, rate) in
        [("h2c", "rr", None), ("h2c", "crr", None), ("h2c", "rr", Some(4_000.0)), ("h3", "rr", None)]
    {
        let tls = (layer == "h3").then(|| server_tls.clone());
        let (_server, address) = Engine::serving(&Spec { layer: layer.parse().unwrap(), tls, ..server(100) });
        let refused = Expect { status: Some(400), bytes: None, crc32: None, every: 1 };
        let mut spec = Spec { rate, connections: 2, expect: None, ..client(workload, address, 0, 4_096) };
        (spec.layer, spec.tls) = (layer.parse().unwrap(), (layer == "h3").then(|| client_tls.clone()));
        let mut sent = [one("/", 5, Some(Expect::of_page(&page(100), 1))), one("/a", 2, Some(refused))];
        sent[1].request = Request { body: "x".repeat(3_000).into(), ..Request::default() };
        sent[1].request.method = Some("POST".into());
        let mut head = one("/b", 1, None);
        head.request.method = Some("HEAD".into());
        spec.requests = sent.into_iter().chain([head]).collect();
        spec.set_option("streams", if workload == "crr" { 1 } else { 10 });
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (4_096, 0), "{layer}: {:?}", done.errors);
        let rows: Vec<_> = done.requests.iter().map(|row| row.operations).collect();
        assert_eq!((rows, done.verified), (vec![2_560, 1_024, 512], 2_560), "{layer} {workload}");
        assert_eq!((done.statuses["400"], done.statuses["200"]), (1_024, 3_072), "{layer} {workload}");
        assert_eq!(times_by_status(&done), done.statuses, "{layer} {workload}");
        // Over two threads, and with responses that are wrong.
        spec.requests[1].expect = None;
        spec.threads = 2;
        let done = Engine::start(&spec).done();
        let wrong = done.errors.0.get(&ErrorKind::WrongStatus);
        assert_eq!(wrong, done.statuses.get("400"), "{layer} {workload}");
        assert_eq!(times_by_status(&done), done.statuses, "{layer} {workload}");
    }
}

#[test]
fn each_of_many_requests_is_sent_once() {
    let (address, got) = shop();
    let mut spec = Spec { expect: None, ..client("rr", address, 0, 70_000) };
    let refused = Some(Expect { status: Some(404), bytes: None, crc32: None, every: 1 });
    spec.requests = (0..70_000).map(|number| one(&format!("/{number}"), 1, refused)).collect();
    let done = crate::habits::run_by_file("many", &spec);
    assert_eq!((done.operations, done.requests.len()), (70_000, 0), "{:?}", done.errors);
    let mut got = got.lock().unwrap().clone();
    got.sort_unstable();
    got.dedup();
    assert_eq!(got.len(), 70_000);
}

/// One request that varies, and one of several; a connection for each, and pipelining is refused.
#[test]
fn numbers_of_requests_are_others_each_time() {
    for (workload, rate) in [("rr", None), ("crr", None), ("rr", Some(5_000.0))] {
        let (address, got) = shop();
        let refused = Some(Expect { status: Some(404), bytes: None, crc32: None, every: 1 });
        let mut spec = Spec { rate, expect: refused, ..client(workload, address, 0, 500) };
        (spec.threads, spec.path) = (2, Some("/{seq}/{rand:1:1000}".into()));
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (500, 0), "{:?}", done.errors);
        let numbers = |at: usize| {
            let got = got.lock().unwrap();
            let of = |line: &String| line.split(['/', ' ']).nth(at).unwrap().parse::<u64>().unwrap();
            let mut all: Vec<u64> = got.iter().map(of).collect();
            all.sort_unstable();
            all
        };
        assert!(numbers(2).into_iter().eq(1..=500), "{workload}");
        let random = numbers(3);
        assert!(random[0] < 50 && random[499] > 950 && random[499] <= 1_000, "{random:?}");
    }
    let mut spec = client("rr", "127.0.0.1:1".parse().unwrap(), 0, 1);
    spec.path = Some("/{seq}".into());
    spec.set_option("pipeline", 2);
    assert_eq!(Engine::start(&spec).wait().code(), Some(2));
    let messages = Spec { layer: Layer::WebSocket, ..spec };
    assert_eq!(Engine::start(&messages).wait().code(), Some(127));
}
