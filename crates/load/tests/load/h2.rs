//! HTTP/2: the engine against itself, and against servers that do what they like. Other programs are in
//! `h2_others`.

mod grpc;
mod paced;

use crate::common::{
    Engine, assert_times_out, client, dead_port, good_certificates, local, scripted, server,
};
use linerate_contract::{Bytes, Done, ErrorKind, Nanos, Request, Spec, page};
use nix::sys::socket::{MsgFlags, send};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A client of `layer` with this many streams on each connection.
pub(crate) fn h2_client(
    layer: &str,
    address: SocketAddr,
    size: usize,
    operations: u64,
    streams: u32,
) -> Spec {
    let mut spec = client("rr", address, size, operations);
    spec.layer = layer.parse().unwrap();
    spec.set_option("streams", streams);
    spec
}

fn h2_server(layer: &str, size: usize) -> Spec {
    Spec { layer: layer.parse().unwrap(), ..server(size) }
}

/// All operations are good, and compared.
pub(crate) fn assert_good(done: &Done, operations: u64, size: u64) {
    let counted = (done.operations, done.errors.total(), done.verified, done.in_flight);
    assert_eq!(counted, (operations, 0, operations, 0), "{:?}", done.errors);
    assert_eq!((done.bytes, done.statuses.get("200")), (Bytes(operations * size), Some(&operations)));
    assert_eq!(done.latency.as_ref().unwrap().total(), operations);
}

#[test]
fn exactly_the_requested_operations_run_and_all_are_compared() {
    let (server_tls, client_tls) = good_certificates();
    for (layer, size) in [("h2c", 0), ("h2c", 100), ("h2c", 4_096), ("h2c", 300_000), ("h2", 4_096)] {
        let mut server = h2_server(layer, size);
        server.tls = (layer == "h2").then(|| server_tls.clone());
        let (_server, address) = Engine::serving(&server);
        for (connections, threads, streams, operations) in
            [(1, 1, 1, 1), (1, 1, 10, 500), (3, 2, 7, 501), (10, 1, 100, 2_000), (4, 1, 3, 5)]
        {
            let operations = if size > 10_000 { operations / 10 + 1 } else { operations };
            let mut spec = h2_client(layer, address, size, operations, streams);
            (spec.connections, spec.threads) = (connections, threads);
            spec.tls = (layer == "h2").then(|| client_tls.clone());
            let done = Engine::start(&spec).done();
            assert_good(&done, operations, size as u64);
            let most = done.streams.unwrap().most;
            assert!((1..=streams).contains(&most), "{most} of {streams}");
        }
    }
}

#[test]
fn streams_are_under_way_at_the_same_time_and_end_with_the_window() {
    let (_server, address) = Engine::serving(&h2_server("h2c", 10));
    let mut spec = h2_client("h2c", address, 10, 1, 64);
    (spec.connections, spec.operations, spec.duration_ns) = (2, None, Some(Nanos(300_000_000)));
    let done = Engine::start(&spec).done();
    assert_eq!((done.errors.total(), done.streams.unwrap().most), (0, 64), "{:?}", done.errors);
    assert!(done.operations > 0 && done.in_flight <= 128, "{} {}", done.operations, done.in_flight);
}

#[test]
fn a_body_is_sent_and_a_wrong_response_fails_its_stream_alone() {
    let (_server, address) = Engine::serving(&h2_server("h2c", 10));
    assert_a_wrong_response_fails_its_stream_alone(h2_client("h2c", address, 10, 50, 4));
}

/// Checks 50 operations on one connection: a body is sent, and a wrong response fails its stream alone.
pub(crate) fn assert_a_wrong_response_fails_its_stream_alone(mut spec: Spec) {
    spec.connections = 1;
    spec.request =
        Some(Request { method: Some("POST".into()), body: "x".repeat(90_000).into(), ..Request::default() });
    let done = Engine::start(&spec).done();
    assert_eq!(done.errors.0.get(&ErrorKind::WrongStatus), Some(&50), "{:?}", done.errors);
    assert_eq!(done.statuses.get("400"), Some(&50));
    spec.expect = None;
    spec.request = Some(Request { method: Some("HEAD".into()), ..Request::default() });
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.bytes, done.errors.total()), (50, Bytes(0), 0));
}

#[test]
fn a_server_of_tls_that_does_not_agree_to_http2_is_a_failure_of_tls() {
    let (server_tls, client_tls) = good_certificates();
    let server = Spec { tls: Some(server_tls), ..h2_server("https", 10) };
    let (_server, address) = Engine::serving(&server);
    let spec = Spec { tls: Some(client_tls), connections: 1, ..h2_client("h2", address, 10, 3, 1) };
    let done = Engine::start(&spec).done();
    assert_eq!(done.errors.0.get(&ErrorKind::TlsFailed), Some(&3), "{:?}", done.errors);
    assert!(format!("{:?}", done.causes).contains("does not agree to HTTP/2"), "{:?}", done.causes);
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// Status 200 with the page of 5 bytes.
pub(crate) fn good(stream: u32) -> Vec<u8> {
    [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, &page(5))].concat()
}

/// A server that sends its settings, and to the n-th request of a connection what `response` makes of n and
/// its stream.
pub(crate) fn responses(response: impl Fn(u32, u32) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let response = std::sync::Arc::new(response);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let response = response.clone();
            std::thread::spawn(move || serve(stream, &*response));
        }
    });
    address
}

fn serve(mut stream: TcpStream, response: &dyn Fn(u32, u32) -> Vec<u8>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    stream.read_exact(&mut [0; 24]).ok()?;
    stream.write_all(&frame(4, 0, 0, &[])).ok()?;
    let mut number = 0;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).ok()?;
        if head[3] == 1 {
            number += 1;
            let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            stream.write_all(&response(number, id)).ok()?;
        }
    }
}

fn asking(response: impl Fn(u32, u32) -> Vec<u8> + Send + Sync + 'static, operations: u64) -> Spec {
    Spec { connections: 1, ..h2_client("h2c", responses(response), 5, operations, 4) }
}

fn against(response: impl Fn(u32, u32) -> Vec<u8> + Send + Sync + 'static, operations: u64) -> Done {
    Engine::start(&asking(response, operations)).done()
}

/// After ten responses a GOAWAY, and nothing more.
fn goodbye_after_ten(number: u32, stream: u32) -> Vec<u8> {
    match number {
        ..10 => good(stream),
        10 => [good(stream), frame(7, 0, 0, &[stream.to_be_bytes(), [0; 4]].concat())].concat(),
        _ => Vec::new(),
    }
}

#[test]
fn what_a_server_that_says_goodbye_has_not_looked_at_is_sent_again() {
    let done = against(goodbye_after_ten, 95);
    assert_good(&done, 95, 5);
    assert_eq!(done.streams.unwrap().goaways.get("no_error"), Some(&9));
}

#[test]
fn streams_that_a_server_ends_have_failed_and_are_counted_by_code() {
    let done = against(
        |number, stream| match number % 4 {
            0 => frame(3, 0, stream, &[0, 0, 0, 7]),
            1 => [frame(1, 4, stream, &[0x88]), frame(3, 0, stream, &[0, 0, 0, 99])].concat(),
            _ => good(stream),
        },
        100,
    );
    assert_eq!((done.operations, done.errors.0.get(&ErrorKind::Reset)), (50, Some(&50)), "{:?}", done.errors);
    let resets = done.streams.unwrap().resets;
    assert_eq!((resets["refused_stream"], resets["unknown"]), (25, 25));
}

#[test]
fn each_way_of_failing_has_its_kind() {
    type Response = fn(u32, u32) -> Vec<u8>;
    let rows: [(ErrorKind, Response); 5] = [
        (ErrorKind::Malformed, |_, _| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        (ErrorKind::Malformed, |_, stream| frame(0, 1, stream, b"no head")),
        (ErrorKind::WrongLength, |_, stream| {
            [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, b"abcd")].concat()
        }),
        (ErrorKind::WrongContent, |_, stream| {
            [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, b".....")].concat()
        }),
        (ErrorKind::WrongStatus, |_, stream| frame(1, 5, stream, &[0x8d])),
    ];
    for (kind, response) in rows {
        let done = against(response, 8);
        assert_eq!((done.operations, done.errors.0.get(&kind)), (0, Some(&8)), "{kind:?}: {:?}", done.errors);
    }
    let silent = asking(|_, _| Vec::new(), 8);
    assert_times_out(&Spec { timeout_ns: Nanos(400_000_000), ..silent }, 8);
    let mut spec = h2_client("h2c", dead_port(), 5, 7, 4);
    spec.connections = 2;
    assert_eq!(Engine::start(&spec).done().errors.0.get(&ErrorKind::ConnectRefused), Some(&7));
}

/// A server whose last bytes and whose end are one segment: half of a response, and nothing to the others.
fn ends_with_its_last_bytes(mut stream: TcpStream) -> Option<()> {
    // The rest of the preface.
    stream.read_exact(&mut [0; 6]).ok()?;
    stream.write_all(&frame(4, 0, 0, &[])).ok()?;
    let mut requests = 0;
    while requests < 4 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        stream.read_exact(&mut vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize]).ok()?;
        requests += u32::from(head[3] == 1);
    }
    let last = [frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b"ab")].concat();
    let more = MsgFlags::from_bits_retain(libc::MSG_MORE);
    send(stream.as_raw_fd(), &last, more).ok()?;
    stream.shutdown(Shutdown::Write).ok()?;
    std::io::copy(&mut stream, &mut std::io::sink()).ok().map(drop)
}

#[test]
fn the_end_of_a_connection_behind_its_last_bytes_is_seen_at_once() {
    for rate in [None, Some(400.0)] {
        let address = scripted(|stream| _ = ends_with_its_last_bytes(stream));
        let spec = h2_client("h2c", address, 5, 8, 4);
        let done = Engine::start(&Spec { rate, connections: 1, ..spec }).done();
        assert_eq!(done.errors.0.get(&ErrorKind::Truncated), Some(&8), "{rate:?}: {:?}", done.errors);
    }
}

#[test]
fn a_slow_stream_does_not_hold_up_the_others() {
    // The first request is never answered, and fails alone; its connection is replaced.
    let is_first = AtomicBool::new(true);
    let response = move |_, stream| match is_first.swap(false, Ordering::Relaxed) {
        true => Vec::new(),
        false => good(stream),
    };
    let mut spec = asking(response, 2_000);
    spec.timeout_ns = Nanos(2_000_000_000);
    let done = Engine::start(&spec).done();
    // Others of the four are late, too, where the machine stands still at that moment.
    let late = done.errors.0.get(&ErrorKind::Timeout).copied().unwrap_or(0);
    assert!((1..=4).contains(&late), "{:?}", done.errors);
    assert_eq!((done.operations, done.errors.total()), (2_000 - late, late), "{:?}", done.errors);
}

#[test]
fn a_server_that_lets_no_stream_begin_or_says_goodbye_at_once_is_not_asked_for_ever() {
    let none = |number, _| match number {
        1 => [frame(7, 0, 0, &[0; 8]), Vec::new()].concat(),
        _ => Vec::new(),
    };
    let done = against(none, 6);
    assert_eq!((done.operations, done.errors.total()), (0, 6), "{:?}", done.errors);
}

#[test]
fn the_server_tells_a_client_that_breaks_the_protocol_and_serves_the_others() {
    let (_server, address) = Engine::serving(&h2_server("h2c", 10));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&[frame(4, 0, 0, &[]), frame(6, 0, 0, &[0; 7])].concat()).unwrap();
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    assert!(response.ends_with(&frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 6])), "{response:?}");
    assert_good(&Engine::start(&h2_client("h2c", address, 10, 20, 3)).done(), 20, 10);
}
