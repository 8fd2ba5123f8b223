//! HTTP pipelining: every response is an operation, whatever becomes of those behind it.

use crate::common::{Engine, client, ok, read_request, scripted, server};
use linerate_contract::{Bytes, ErrorKind, Spec, page};
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SIZE: usize = 4096;
const DEPTH: u64 = 16;

fn pipelining(address: SocketAddr, operations: u64) -> Spec {
    let mut spec = client("rr", address, SIZE, operations);
    spec.connections = 1;
    spec.options.insert("pipeline".into(), DEPTH.to_string());
    spec
}

/// Reads up to `most` requests, until the client closes; returns their number.
fn read(stream: &mut TcpStream, most: u64) -> u64 {
    (0..most).take_while(|_| read_request(stream)).count() as u64
}

#[test]
fn exactly_the_requested_operations_run() {
    for size in [0, 100, SIZE, 200_000] {
        let (_server, address) = Engine::serving(&server(size));
        for (connections, threads, operations) in [(1, 1, 1), (3, 1, 1000), (5, 2, 1001), (40, 2, 17)] {
            let mut spec = client("rr", address, size, operations);
            (spec.connections, spec.threads) = (connections, threads);
            spec.options.insert("pipeline".into(), DEPTH.to_string());
            let done = Engine::start(&spec).done();
            assert_eq!(
                (done.operations, done.errors.total(), done.verified),
                (operations, 0, operations),
                "{:?}",
                done.errors
            );
            assert_eq!(done.bytes, Bytes(operations * size as u64));
            assert_eq!(done.latency.unwrap().total(), operations);
        }
    }
}

#[test]
fn requests_leave_together_and_not_before_all_are_answered() {
    let address = scripted(|mut stream| {
        // `scripted` has read the first one.
        let mut count = 1 + read(&mut stream, DEPTH - 1);
        while count > 0 {
            stream.set_nonblocking(true).unwrap();
            let early = stream.peek(&mut [0]).is_ok_and(|n| n > 0);
            stream.set_nonblocking(false).unwrap();
            assert!(!early, "a request came before its turn");
            // In pieces that end anywhere but where a response does.
            let responses = ok(&page(SIZE)).repeat(count as usize);
            for piece in responses.chunks(5_000) {
                stream.write_all(piece).unwrap();
            }
            count = read(&mut stream, DEPTH);
        }
    });
    let done = Engine::start(&pipelining(address, 10 * DEPTH)).done();
    assert_eq!(
        (done.operations, done.errors.total(), done.verified),
        (10 * DEPTH, 0, 10 * DEPTH),
        "{:?}",
        done.errors
    );
}

#[test]
fn what_a_peer_that_closes_has_not_answered_is_asked_again() {
    let answered = Arc::new(AtomicU64::new(0));
    let count = answered.clone();
    let address = scripted(move |mut stream| {
        let close =
            [&b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4096\r\n\r\n"[..], &page(SIZE)]
                .concat();
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let more = (1..5).take_while(|_| read_request(&mut stream)).count();
        count.fetch_add(more as u64 + 1, Ordering::SeqCst);
        let _ = stream.write_all(&[ok(&page(SIZE)).repeat(more), close].concat());
        let _ = stream.shutdown(Shutdown::Write);
        while read_request(&mut stream) {}
    });
    let done = Engine::start(&pipelining(address, 100)).done();
    assert_eq!((done.operations, done.errors.total()), (100, 0), "{:?}", done.errors);
    assert_eq!(answered.load(Ordering::SeqCst), 100);
}

#[test]
fn what_a_peer_that_closes_without_a_word_has_not_answered_is_asked_again() {
    let address = scripted(|mut stream| {
        let _ = stream.write_all(&ok(&page(SIZE)).repeat(2));
        let _ = stream.shutdown(Shutdown::Write);
        while read_request(&mut stream) {}
    });
    let done = Engine::start(&pipelining(address, 2 * DEPTH)).done();
    assert_eq!((done.operations, done.errors.total()), (2 * DEPTH, 0), "{done:?}");
    assert!((DEPTH - 1..=DEPTH).contains(&done.closed_idle), "{}", done.closed_idle);
}

/// A server that answers two requests and then does something else.
fn fails_as(kind: ErrorKind, operations: u64, good: u64, then: &'static [u8]) {
    let address = scripted(move |mut stream| {
        let _ = stream.write_all(&[&ok(&page(SIZE)).repeat(2), then].concat());
        let _ = stream.shutdown(Shutdown::Write);
        while read_request(&mut stream) {}
    });
    let done = Engine::start(&pipelining(address, operations)).done();
    assert_eq!(
        (done.operations, done.errors.0.get(&kind)),
        (good, Some(&(operations - good))),
        "{:?}",
        done.errors
    );
}

#[test]
fn what_was_under_way_on_a_connection_that_breaks_has_failed() {
    fails_as(ErrorKind::Truncated, 2 * DEPTH, 4, b"HTTP/1.1 200 OK\r\n");
    fails_as(ErrorKind::Malformed, 2 * DEPTH, 4, b"SSH-2.0-OpenSSH_9.2\r\n\r\n");
}

#[test]
fn a_wrong_response_is_the_only_one_that_failed() {
    // Two good ones, a bad one, and the rest are asked again: nine operations are three turns.
    fails_as(ErrorKind::WrongStatus, 9, 6, b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn responses_without_a_request_are_malformed() {
    let address = scripted(|mut stream| {
        read(&mut stream, DEPTH - 1);
        // So short that they come with one read.
        let _ = stream.write_all(&ok(b"x").repeat(DEPTH as usize + 1));
        while read_request(&mut stream) {}
    });
    let mut spec = pipelining(address, DEPTH);
    spec.expect = None;
    let done = Engine::start(&spec).done();
    assert_eq!(
        (done.operations, done.errors.0.get(&ErrorKind::Malformed)),
        (DEPTH - 1, Some(&1)),
        "{:?}",
        done.errors
    );
}
