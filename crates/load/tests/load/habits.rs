//! Habits of real servers that are allowed: they end connections that owe nothing, answer with any status,
//! and answer before they have read all. None of it is a failure.

use crate::PROGRAM;
use crate::common::{
    Engine, PATIENCE, answering, client, good_certificates, in_some_try, local, ok, read_request, scripted,
};
use crate::sessions::{client as session, opened};
use crate::several::times_by_status;
use linerate_contract::{Done, ErrorKind, Expect, Nanos, Request, Spec, page};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SIZE: usize = 100;

/// A server that answers `each` requests on a connection and then closes it without a word; the number of its
/// connections.
fn closing_after(each: u64) -> (SocketAddr, Arc<AtomicU64>) {
    let connections = Arc::new(AtomicU64::new(0));
    let count = connections.clone();
    let address = scripted(move |mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        for _ in 1..each {
            let _ = stream.write_all(&ok(&page(SIZE)));
            read_request(&mut stream);
        }
        let _ = stream.write_all(&ok(&page(SIZE)));
    });
    (address, connections)
}

fn one_connection(workload: &str, address: SocketAddr, operations: u64) -> Spec {
    Spec { connections: 1, ..client(workload, address, SIZE, operations) }
}

#[test]
fn a_connection_that_ends_after_a_response_costs_no_request() {
    for (each, method) in [(1, "GET"), (3, "GET"), (1, "PUT")] {
        let (address, connections) = closing_after(each);
        let mut spec = one_connection("rr", address, 60);
        spec.request = Some(Request { method: Some(method.into()), ..Request::default() });
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (60, 0), "{each} {method}: {:?}", done.errors);
        let closed = 60 / each;
        assert_eq!(connections.load(Ordering::SeqCst), closed);
        assert!((closed - 1..=closed).contains(&done.closed_idle), "{}", done.closed_idle);
        assert_eq!(done.latency.unwrap().total(), 60);
    }
}

#[test]
fn a_server_that_never_answers_fails_every_request_once() {
    for workload in ["rr", "crr"] {
        let done = Engine::start(&one_connection(workload, answering(""), 5)).done();
        assert_eq!(
            (done.operations, done.errors.0.get(&ErrorKind::EmptyResponse)),
            (0, Some(&5)),
            "{workload}"
        );
        assert_eq!(done.closed_idle, 0);
        let cause = &done.causes.0[&ErrorKind::EmptyResponse];
        assert!(cause.text.contains("closed the connection before the first byte"), "{cause:?}");
    }
}

#[test]
fn a_request_that_may_not_be_sent_twice_has_failed() {
    let address = scripted(|mut stream| {
        let _ = stream.write_all(&ok(&page(SIZE)));
        read_request(&mut stream);
    });
    let mut spec = one_connection("rr", address, 10);
    spec.request = Some(Request { method: Some("POST".into()), ..Request::default() });
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.0.get(&ErrorKind::EmptyResponse)), (5, Some(&5)), "{done:?}");
}

#[test]
fn an_idle_connection_that_the_server_closed_is_opened_again_before_it_is_used() {
    for method in ["GET", "POST"] {
        assert!(
            in_some_try(|| opens_idle_connections_again(method)),
            "{method}: requests come after a close"
        );
    }
}

/// Whether no request came after a close.
fn opens_idle_connections_again(method: &str) -> bool {
    let (address, closed, late) = closing_idle_connections();
    let mut spec = client("rr", address, SIZE, 8);
    (spec.rate, spec.connections) = (Some(10.0), 2);
    spec.request = Some(Request { method: Some(method.into()), ..Request::default() });
    let done = Engine::start(&spec).done();
    // A GET that comes after the close is sent again, a POST has failed.
    let failed = if method == "POST" { done.errors.total() } else { 0 };
    assert_eq!((done.operations, done.errors.total()), (8 - failed, failed), "{method}: {:?}", done.errors);
    let (start, late) = (Instant::now(), || late.load(Ordering::SeqCst));
    while late() < failed {
        assert!(start.elapsed() < PATIENCE, "{method}: {:?} and {} late", done.errors, late());
        std::thread::sleep(Duration::from_millis(1));
    }
    // The client may have ended before it saw the last close of each connection.
    let (closed, seen) = (closed.load(Ordering::SeqCst), done.closed_idle + failed);
    assert!(closed >= 1 && (closed.saturating_sub(2)..=closed).contains(&seen), "{seen} of {closed}");
    late() == 0
}

/// A server that closes a connection that is idle for 50 ms; how many it has closed, and to how many of them
/// a request still came.
fn closing_idle_connections() -> (SocketAddr, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (closed, late) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let counts = (closed.clone(), late.clone());
    let address = scripted(move |mut stream| {
        loop {
            let _ = stream.write_all(&ok(&page(SIZE)));
            std::thread::sleep(Duration::from_millis(50));
            let _ = stream.set_nonblocking(true);
            let next = stream.peek(&mut [0]);
            let _ = stream.set_nonblocking(false);
            if next.is_err() {
                counts.0.fetch_add(1, Ordering::SeqCst);
                let _ = stream.shutdown(Shutdown::Write);
                if read_request(&mut stream) {
                    counts.1.fetch_add(1, Ordering::SeqCst);
                }
                return;
            }
            if !read_request(&mut stream) {
                return;
            }
        }
    });
    (address, closed, late)
}

#[test]
fn connections_that_end_before_their_first_request_cost_none() {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || {
                let mut stream = stream;
                // Those that were opened in advance are closed at once.
                while number >= 4 && read_request(&mut stream) {
                    let _ = stream.write_all(&ok(&page(SIZE)));
                }
            });
        }
    });
    let mut spec = client("rr", address, SIZE, 10);
    (spec.rate, spec.connections) = (Some(20.0), 4);
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.total()), (10, 0), "{:?}", done.errors);
}

/// The result of a client whose spec is too long for an argument.
pub(crate) fn run_by_file(name: &str, spec: &Spec) -> Done {
    let file = std::env::temp_dir().join(format!("linerate-habits-{}-{name}", std::process::id()));
    std::fs::write(&file, spec.to_json()).unwrap();
    let mut command = Command::new(PROGRAM);
    let engine = Engine::start_command(command.arg("-").stdin(File::open(&file).unwrap()));
    let done = engine.done();
    std::fs::remove_file(file).unwrap();
    done
}

/// A server that answers every request on a connection; the number of its connections.
fn keeping(response: impl Into<Vec<u8>>) -> (SocketAddr, Arc<AtomicU64>) {
    let connections = Arc::new(AtomicU64::new(0));
    let (count, response) = (connections.clone(), response.into());
    let address = scripted(move |mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        let _ = stream.write_all(&response);
        while read_request(&mut stream) && stream.write_all(&response).is_ok() {}
    });
    (address, connections)
}

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found";

#[test]
fn a_status_is_right_or_wrong_by_the_users_word_and_costs_no_connection() {
    let expected = |status| Some(Expect { status, bytes: None, crc32: None, every: 1 });
    for (expect, good) in [(expected(Some(404)), true), (expected(Some(200)), false), (None, false)] {
        for rate in [None, Some(200.0)] {
            let (address, connections) = keeping(NOT_FOUND);
            let done = Engine::start(&Spec { expect, rate, ..one_connection("rr", address, 40) }).done();
            let wrong = done.errors.0.get(&ErrorKind::WrongStatus).copied().unwrap_or(0);
            assert_eq!((done.operations, wrong), if good { (40, 0) } else { (0, 40) }, "{expect:?}");
            assert_eq!(done.statuses["404"], 40);
            // Without another status or a failure all times are those of this one.
            assert_eq!(times_by_status(&done).get("404").copied(), (!good).then_some(40), "{expect:?}");
            assert_eq!(connections.load(Ordering::SeqCst), 1, "{expect:?} {rate:?}");
        }
    }
}

/// The responses of one connection are 200 and 302 by turns, the latter 20 ms late; all are right, or one of
/// both is wrong.
#[test]
fn each_status_has_its_response_times() {
    for expect in [None, Some(Expect { status: Some(200), bytes: None, crc32: None, every: 1 })] {
        for rate in [None, Some(100.0)] {
            let address = scripted(|mut stream| {
                loop {
                    let late = Duration::from_millis(20);
                    let good = stream.write_all(&ok(&page(SIZE))).is_ok() && read_request(&mut stream);
                    std::thread::sleep(late);
                    let found = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n";
                    if !good || stream.write_all(found.as_bytes()).is_err() || !read_request(&mut stream) {
                        return;
                    }
                }
            });
            let (right, is_right) = (expect, expect.is_none());
            let spec = Spec { expect: right, rate, ..one_connection("rr", address, 20) };
            let done = Engine::start(&spec).done();
            assert_eq!(done.operations, if is_right { 20 } else { 10 }, "{rate:?}: {:?}", done.errors);
            assert_eq!(times_by_status(&done), done.statuses);
            assert_eq!((done.statuses["200"], done.statuses["302"]), (10, 10));
            assert!(done.by_status["302"].min >= 20_000_000, "{:?}", done.by_status);
            let all: u64 = done.by_status.values().map(|times| times.total()).sum();
            assert_eq!(all, done.latency.unwrap().total() + done.errors.total());
        }
    }
}

#[test]
fn another_length_or_content_is_the_failure_of_one_request() {
    for (body, kind) in
        [(page(SIZE - 1), ErrorKind::WrongLength), (vec![b'-'; SIZE], ErrorKind::WrongContent)]
    {
        let (address, connections) = keeping(ok(&body));
        let done = Engine::start(&one_connection("rr", address, 20)).done();
        assert_eq!((done.operations, done.errors.0.get(&kind)), (0, Some(&20)));
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{kind:?}");
    }
}

#[test]
fn a_response_may_come_before_the_request_is_sent_in_full() {
    let too_large = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for (read, expect) in [(0, Some(413)), (1 << 20, Some(413)), (0, None)] {
        let address = scripted(move |mut stream| {
            let _ = std::io::copy(&mut (&mut stream).take(read), &mut std::io::sink());
            let _ = stream.write_all(too_large.as_bytes());
        });
        for (workload, rate) in [("rr", None), ("crr", None), ("rr", Some(50.0))] {
            let mut spec = Spec { rate, ..one_connection(workload, address, 3) };
            spec.expect =
                expect.map(|code| Expect { status: Some(code), bytes: None, crc32: None, every: 1 });
            let body = "x".repeat(6 << 20).into();
            spec.request = Some(Request { method: Some("POST".into()), body, ..Request::default() });
            let done = run_by_file("early", &spec);
            assert_eq!(done.statuses.get("413"), Some(&3), "{workload} {rate:?}: {done:?}");
            let failed = if expect.is_some() { 0 } else { 3 };
            assert_eq!(done.errors.0.get(&ErrorKind::WrongStatus).copied().unwrap_or(0), failed);
        }
    }
}

#[test]
fn the_rest_of_a_request_is_sent_while_its_response_begins() {
    let address = scripted(|mut stream| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        std::thread::sleep(Duration::from_millis(50));
        let mut body = Vec::new();
        let _ = (&mut stream).take(6 << 20).read_to_end(&mut body);
        if body.len() == 6 << 20 {
            let _ = stream.write_all(&page(SIZE));
        }
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0]);
    });
    let mut spec = one_connection("rr", address, 2);
    spec.timeout_ns = Nanos(5_000_000_000);
    let body = "x".repeat(6 << 20).into();
    spec.request = Some(Request { method: Some("POST".into()), body, ..Request::default() });
    let done = run_by_file("rest", &spec);
    assert_eq!((done.operations, done.errors.total()), (2, 0), "{:?} {:?}", done.errors, done.causes);
}

#[test]
fn what_other_clients_accept_is_accepted_and_noted() {
    let body = "a\r\n0123456789\r\n0\r\n\r\n";
    for (response, status, bytes, note) in [
        (format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), 200, 10, "HTTP/1.0"),
        (
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".into(),
            204,
            0,
            "without a body",
        ),
        ("HTTP/1.1 200 OK\r\nX: a,\r\n  b\r\nContent-Length: 3\r\n\r\nabc".into(), 200, 3, "folded"),
    ] {
        let (address, _) = keeping(response);
        let mut spec = one_connection("rr", address, 10);
        spec.expect = Some(Expect { status: Some(status), bytes: Some(bytes), crc32: None, every: 1 });
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (10, 0), "{note}: {:?}", done.causes);
        let noted: Vec<_> = done.accepted.iter().collect();
        assert!(noted.len() == 1 && noted[0].0.contains(note) && *noted[0].1 == 10, "{noted:?}");
    }
}

#[test]
fn a_failure_has_a_cause_with_its_bytes() {
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    for (response, kind, text, bytes) in [
        (&b"\x15\x03\x01\x00\x02\x02\x46"[..], ErrorKind::Malformed, "speaks TLS there", r"\x15\x03\x01"),
        (b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0", ErrorKind::Malformed, "speaks HTTP/2 there", r"\x00\x00\x12"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ErrorKind::Malformed, "speaks SSH", "SSH-2.0-OpenSSH"),
        (chunks.as_bytes(), ErrorKind::Malformed, "a chunk that is none", "chunked"),
        (NOT_FOUND.as_bytes(), ErrorKind::WrongStatus, "status 404 in place of 200", "not found"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            ErrorKind::WrongLength,
            "9 bytes in place of 100",
            "",
        ),
    ] {
        let done = Engine::start(&one_connection("rr", answering(response), 3)).done();
        let cause = done.causes.0.get(&kind).unwrap_or_else(|| panic!("{:?}", done.errors));
        assert!(cause.text.contains(text) && cause.bytes.contains(bytes), "{cause:?}");
    }
    let mut spec = one_connection("rr", answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), 3);
    spec.expect = None;
    let done = Engine::start(&spec).done();
    assert!(done.causes.0[&ErrorKind::Truncated].text.contains("after 3 of 9 bytes"), "{:?}", done.causes);
}

#[test]
fn an_upgrade_that_is_refused_has_its_status_and_other_protocols_their_names() {
    let (_, tls) = good_certificates();
    for (response, kind, text) in [
        (
            &b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"[..],
            ErrorKind::WrongStatus,
            "status 401",
        ),
        (b"HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n", ErrorKind::WrongStatus, "status 301"),
        (b"\x15\x03\x01\x00\x02\x02\x46", ErrorKind::Malformed, "the server speaks TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ErrorKind::Malformed, "the server speaks SSH"),
    ] {
        let address = scripted(move |mut stream| {
            let _ = stream.write_all(response);
            let _ = stream.read(&mut [0]);
        });
        let mut spec = session("websocket", "rr", address, &tls);
        (spec.connections, spec.operations, spec.size) = (1, Some(3), 5);
        let done = Engine::start(&spec).done();
        let cause = done.causes.0.get(&kind).unwrap_or_else(|| panic!("{:?}", done.errors));
        assert!(cause.text.contains(text) && !cause.bytes.is_empty(), "{cause:?}");
    }
}

/// A server of WebSocket that echoes three messages of a byte on a connection, and then closes it with this
/// code.
fn closing(code: u16) -> SocketAddr {
    opened(move |mut stream| {
        let mut message = [0; 7];
        for _ in 0..3 {
            let _ = stream.read_exact(&mut message);
            let _ = stream.write_all(&[0x82, 1, message[6] ^ message[2]]);
        }
        let _ = stream.write_all(&[0x88, 2, (code >> 8) as u8, code as u8]);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })
}

#[test]
fn a_close_in_order_costs_no_message_and_another_does() {
    let (_, tls) = good_certificates();
    for (code, rate, failed) in
        [(1000, None, 0), (1001, None, 0), (1000, Some(200.0), 0), (1011, None, 2), (1002, None, 2)]
    {
        let mut spec = session("websocket", "rr", closing(code), &tls);
        (spec.connections, spec.operations, spec.size, spec.rate) = (1, Some(9), 1, rate);
        let done = Engine::start(&spec).done();
        let good = (done.operations, done.errors.total(), done.closed_idle);
        assert_eq!(good, (9 - failed, failed, if failed == 0 { 2 } else { 0 }), "{code}: {:?}", done.errors);
    }
}
