//! A server that keeps operations and then ends their connection in order: they are sent again, and the time
//! that it has kept them is in their response times, or they have failed by their deadline.

use crate::common::{Engine, client, good_certificates, local, ok, read_request, scripted};
use crate::h2::{frame, good, h2_client, responses};
use crate::h3::{Aioquic, h3_client};
use crate::quic_peer::{serving, turning};
use crate::sessions::{client as session, opened};
use linerate_contract::{Counts, Done, ErrorKind, Nanos, Spec, Tls, page};
use quinn_proto::Dir;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long operations are kept.
const KEPT: Duration = Duration::from_millis(400);
const OPERATIONS: u64 = 60;

/// Operations that took at least as long as they were kept.
fn kept(counts: Option<&Counts>) -> u64 {
    let pairs = &counts.unwrap().pairs;
    pairs.iter().filter(|(value, _)| *value >= KEPT.as_nanos() as u64).map(|(_, n)| n).sum()
}

/// All operations are there, and at least `least` of them have the time that they were kept.
fn assert_kept(done: &Done, least: u64, name: &str) {
    assert_eq!((done.operations, done.errors.total()), (OPERATIONS, 0), "{name}: {:?}", done.errors);
    for counts in [done.latency.as_ref(), done.service.as_ref().or(done.latency.as_ref())] {
        assert!(kept(counts) >= least, "{name}: {} kept, of {least}", kept(counts));
    }
    assert_eq!(done.connect.as_ref().unwrap().total(), 0, "{name}: connections of operations sent again");
}

/// The closed loop of a client, and its open loop.
fn both_loops(spec: &Spec) -> [Spec; 2] {
    [spec.clone(), Spec { rate: Some(300.0), ..spec.clone() }]
}

fn goaway(last: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// A call's only message and its status.
fn called(stream: u32) -> Vec<u8> {
    let head = b"\x88\x00\x0ccontent-type\x10application/grpc";
    let status = b"\x00\x0bgrpc-status\x010";
    [frame(1, 4, stream, head), frame(0, 0, stream, &[0; 5]), frame(1, 5, stream, status)].concat()
}

/// A server whose first connection answers stream 1, keeps nine others and then has looked at none of them;
/// or each connection, `always`.
fn keeping_streams(response: fn(u32) -> Vec<u8>, always: bool) -> SocketAddr {
    let keeps = AtomicBool::new(true);
    responses(move |number, stream| match number {
        _ if !always && !keeps.load(Ordering::SeqCst) => response(stream),
        1 => response(stream),
        10 => {
            std::thread::sleep(KEPT);
            keeps.store(false, Ordering::SeqCst);
            goaway(1)
        }
        _ => Vec::new(),
    })
}

fn streams(address: SocketAddr) -> Spec {
    Spec { connections: 1, ..h2_client("h2c", address, 5, OPERATIONS, 10) }
}

#[test]
fn streams_that_a_server_has_kept_have_that_time_when_they_are_sent_again() {
    for spec in both_loops(&streams("127.0.0.1:1".parse().unwrap())) {
        let done =
            Engine::start(&Spec { connect: Some(keeping_streams(good, false)), ..spec.clone() }).done();
        assert_kept(&done, 9, "requests");
        let mut call = Spec { connect: Some(keeping_streams(called, false)), expect: None, ..spec };
        call.set_option("grpc", "yes");
        assert_kept(&Engine::start(&call).done(), 9, "calls");
    }
}

#[test]
fn streams_of_quic_that_a_server_has_kept_have_that_time_when_they_are_sent_again() {
    for rate in [None, Some(300.0)] {
        let Some(server) = Aioquic::serving(&format!("{rate:?}"), 5, Some(KEPT)) else { return };
        let spec = h3_client(&server.trust, server.address, 5, OPERATIONS, 10);
        let done = Engine::start(&Spec { rate, connections: 1, ..spec }).done();
        assert_kept(&done, 9, "h3");
    }
}

#[test]
fn streams_that_are_kept_again_and_again_fail_by_their_deadline() {
    for spec in both_loops(&streams(keeping_streams(good, true))) {
        let timeout = Nanos(KEPT.as_nanos() as u64 * 3 / 2);
        let done = Engine::start(&Spec { timeout_ns: timeout, ..spec }).done();
        let unsent = done.schedule.as_ref().map_or(0, |schedule| schedule.unsent);
        let timeouts = done.errors.0.get(&ErrorKind::Timeout).copied().unwrap_or(0);
        assert!(timeouts >= 9, "{:?}", done.errors);
        assert_eq!(done.operations + done.errors.total() + unsent, OPERATIONS, "{:?}", done.errors);
    }
}

/// Idle connections of the client send what a connection that still waits has lost.
#[test]
fn a_connection_without_an_operation_sends_what_another_has_lost() {
    let first = AtomicBool::new(true);
    let address = responses(move |number, stream| match number {
        // The other connection has one request, and ends it at once.
        1 if first.swap(false, Ordering::SeqCst) => good(stream),
        1..=2 => good(stream),
        5 => goaway(1),
        _ => Vec::new(),
    });
    let mut spec = Spec { connect: Some(address), operations: Some(6), connections: 2, ..streams(address) };
    spec.set_option("streams", 4);
    spec.timeout_ns = Nanos(600_000_000);
    let done = Engine::start(&spec).done();
    assert_eq!(done.operations + done.errors.total(), 6, "{:?}", done.errors);
}

#[test]
fn a_response_and_a_goodbye_in_one_read_fail_nothing() {
    let keeps = AtomicBool::new(true);
    let address = responses(move |number, stream| match number {
        _ if !keeps.load(Ordering::SeqCst) => good(stream),
        10 => {
            keeps.store(false, Ordering::SeqCst);
            [good(1), goaway(1)].concat()
        }
        _ => Vec::new(),
    });
    for spec in both_loops(&streams(address)) {
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (OPERATIONS, 0), "{:?}", done.errors);
    }
}

/// A server whose first connection says goodbye in front of its only response, in the same read or not.
fn goodbye_first(response: fn(u32) -> Vec<u8>, is_one_read: bool) -> SocketAddr {
    let keeps = AtomicBool::new(true);
    responses(move |number, stream| match number {
        _ if !keeps.load(Ordering::SeqCst) => response(stream),
        9 if !is_one_read => goaway(1),
        10 => {
            keeps.store(false, Ordering::SeqCst);
            if is_one_read {
                return [goaway(1), response(1)].concat();
            }
            std::thread::sleep(Duration::from_millis(50));
            response(1)
        }
        _ => Vec::new(),
    })
}

#[test]
fn a_goodbye_in_front_of_the_first_response_fails_nothing() {
    for is_one_read in [true, false] {
        for spec in both_loops(&streams(goodbye_first(good, is_one_read))) {
            let done = Engine::start(&spec).done();
            assert_eq!((done.operations, done.errors.total()), (OPERATIONS, 0), "{:?}", done.errors);
        }
        let mut call = Spec { expect: None, ..streams(goodbye_first(called, is_one_read)) };
        call.set_option("grpc", "yes");
        let done = Engine::start(&call).done();
        assert_eq!((done.operations, done.errors.total()), (OPERATIONS, 0), "{:?}", done.errors);
    }
}

/// A server of HTTP/3 that works on the first stream of each connection alone, and says so in the datagram
/// with the response. The state machine of a client tells of new streams first: here of that with the
/// goodbye.
fn goodbye_of_quic(identity: &Tls) -> SocketAddr {
    const SETTINGS_AND_GOAWAY: &[u8] = &[0, 4, 0, 7, 1, 4];
    let good = [&[1, 3, 0, 0, 0xc0 | 25, 0, 5], &page(5)[..]].concat();
    turning(serving(identity, "h3"), Duration::from_secs(20), move |connection, _| {
        while let Some(id) = connection.streams().accept(Dir::Bi) {
            if u64::from(id) == 0 {
                let control = connection.streams().open(Dir::Uni).unwrap();
                connection.send_stream(control).write(SETTINGS_AND_GOAWAY).unwrap();
                connection.send_stream(id).write(&good).unwrap();
                connection.send_stream(id).finish().unwrap();
            }
        }
    })
}

#[test]
fn a_goodbye_in_the_datagram_of_the_first_response_fails_nothing() {
    let (identity, tls) = good_certificates();
    for rate in [None, Some(300.0)] {
        let spec = h3_client(&tls, goodbye_of_quic(&identity), 5, 8, 4);
        let done = Engine::start(&Spec { rate, connections: 1, ..spec }).done();
        assert_eq!((done.operations, done.errors.total()), (8, 0), "{rate:?}: {:?}", done.errors);
        assert!(done.streams.unwrap().goaways.contains_key("goaway"), "{rate:?}");
    }
}

/// A server that answers one request of each connection, and ends it 20 ms later with these bytes.
fn ending_idle(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = [0; 9];
                let mut asked = stream.read_exact(&mut [0; 24]).is_ok();
                asked &= stream.write_all(&frame(4, 0, 0, &[])).is_ok();
                while asked && head[3] != 1 {
                    asked = stream.read_exact(&mut head).is_ok();
                    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                    asked &= stream.read_exact(&mut vec![0; length]).is_ok();
                }
                if asked && stream.write_all(&good(1)).is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
                    // Bytes that are left unread would make a reset of the end.
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                }
            });
        }
    });
    address
}

/// The open loop leaves a connection idle for longer than its server does.
#[test]
fn an_idle_connection_of_http_2_that_ends_costs_no_request() {
    let goodbye: &'static [u8] = goaway(1).leak();
    for (bytes, name) in [(goodbye, "GOAWAY and FIN"), (&[], "FIN")] {
        let spec = Spec { rate: Some(10.0), operations: Some(6), ..streams(ending_idle(bytes)) };
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (6, 0), "{name}: {:?}", done.causes);
    }
}

/// A server of HTTP/1.1 that keeps the second request of its first connection, and then closes it.
fn keeping_requests() -> SocketAddr {
    let keeps = AtomicBool::new(true);
    scripted(move |mut stream| {
        let keeps = keeps.swap(false, Ordering::SeqCst);
        loop {
            let _ = stream.write_all(&ok(&page(5)));
            if !read_request(&mut stream) {
                return;
            }
            if keeps {
                return std::thread::sleep(KEPT);
            }
        }
    })
}

#[test]
fn a_request_that_a_server_has_kept_has_that_time_when_it_is_sent_again() {
    for spec in both_loops(&Spec { connections: 1, ..client("rr", keeping_requests(), 5, OPERATIONS) }) {
        let done = Engine::start(&Spec { connect: Some(keeping_requests()), ..spec }).done();
        assert_kept(&done, 1, "http");
        assert_eq!(done.closed_idle, 1);
    }
}

#[test]
fn pipelined_requests_that_are_not_answered_have_the_time_that_they_were_kept() {
    let keeps = AtomicBool::new(true);
    let address = scripted(move |mut stream| {
        if keeps.swap(false, Ordering::SeqCst) {
            (1..4).for_each(|_| assert!(read_request(&mut stream)));
            std::thread::sleep(KEPT);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        let _ = stream.write_all(&ok(b""));
        while read_request(&mut stream) && stream.write_all(&ok(b"")).is_ok() {}
    });
    let mut spec = Spec { connections: 1, ..client("rr", address, 0, OPERATIONS) };
    spec.set_option("pipeline", 4);
    assert_kept(&Engine::start(&spec).done(), 4, "pipelined");
}

/// A server of WebSocket that keeps the second message of its first connection, and then closes it in order.
fn keeping_messages() -> SocketAddr {
    let keeps = AtomicBool::new(true);
    opened(move |mut stream| {
        let keeps = keeps.swap(false, Ordering::SeqCst);
        let mut message = [0; 7];
        for number in 0.. {
            if stream.read_exact(&mut message).is_err() {
                return;
            }
            if keeps && number == 1 {
                std::thread::sleep(KEPT);
                let _ = stream.write_all(&[0x88, 2, 3, 0xe8]);
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
                return;
            }
            let _ = stream.write_all(&[0x82, 1, message[6] ^ message[2]]);
        }
    })
}

#[test]
fn a_message_that_a_server_has_kept_has_that_time_when_it_is_sent_again() {
    let (_, tls) = good_certificates();
    let mut spec = session("websocket", "rr", keeping_messages(), &tls);
    (spec.connections, spec.operations, spec.size) = (1, Some(OPERATIONS), 1);
    for spec in both_loops(&spec) {
        let done = Engine::start(&Spec { connect: Some(keeping_messages()), ..spec }).done();
        assert_kept(&done, 1, "websocket");
    }
}
