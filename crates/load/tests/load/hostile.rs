//! Peers that send garbage, close anywhere, never read, or send without end: the process survives, operations
//! fail by kind and in time, others are served, and memory is bounded.

use crate::certified::server_config;
use crate::common::{Engine, client, good_certificates, local, ok};
use linerate_contract::{Done, ErrorKind, Nanos, Role, Spec, Tls, Workload, page};
use linerate_proto::websocket::upgrade;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rustls::ServerConnection;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TIMEOUT: Nanos = Nanos(500_000_000);
/// Longer than the timeout and all closing handshakes, on a busy machine.
const PROMPT: Duration = Duration::from_secs(30);
/// A process of this test uses less than 20 MiB at its start; a flood unbounded in memory is hundreds.
const MOST_MEMORY: u64 = 96 << 20;

fn garbage(seed: u64, length: usize) -> Vec<u8> {
    let (mut random, mut bytes) = (Pcg64Mcg::seed_from_u64(seed), vec![0; length]);
    random.fill_bytes(&mut bytes);
    bytes
}

/// A server that lets `behave` deal with each connection, in a thread each; at once.
fn hostile(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let behave = Arc::new(behave);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let behave = behave.clone();
            std::thread::spawn(move || behave(stream));
        }
    });
    address
}

/// Reads a request's head.
fn head(stream: &mut TcpStream) -> Vec<u8> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    head
}

/// Writes `bytes` until the peer is gone.
fn flood(mut to: impl Write, bytes: &[u8]) {
    while to.write_all(bytes).is_ok() {}
}

fn asking(layer: &str, address: SocketAddr, tls: &Tls) -> Spec {
    let mut spec = Spec::new(Role::Client, layer.parse().unwrap(), Workload::Rr);
    (spec.connect, spec.tls) = (Some(address), Some(tls.clone()));
    (spec.operations, spec.connections, spec.size) = (Some(2), 1, 1000);
    spec
}

/// Where operations wait for a response in vain.
fn impatient(layer: &str, address: SocketAddr, tls: &Tls) -> Spec {
    Spec { timeout_ns: TIMEOUT, ..asking(layer, address, tls) }
}

/// The result of a client, which ends soon and uses little memory.
fn prompt(spec: &Spec) -> Done {
    let start = Instant::now();
    let mut engine = Engine::start(spec);
    let most = engine.most_memory_until_end();
    let done = engine.done();
    assert!(start.elapsed() < PROMPT, "{:?}: {:?}", start.elapsed(), done.errors);
    assert!(most < MOST_MEMORY, "{most} bytes");
    done
}

fn kinds(done: &Done) -> Vec<ErrorKind> {
    done.errors.0.keys().copied().collect()
}

#[test]
fn garbage_fails_every_operation_of_a_client_by_kind() {
    let (_, tls) = good_certificates();
    for layer in ["http", "https", "tcp", "tls", "websocket", "wss"] {
        for seed in 0..4 {
            let address = hostile(move |mut stream| {
                let _ = stream.write_all(&garbage(seed, 100_000 >> (6 * seed)));
                let _ = stream.read(&mut [0; 10_000]);
            });
            let done = prompt(&impatient(layer, address, &tls));
            assert_eq!((done.operations, done.errors.total()), (0, 2), "{layer} {seed}: {:?}", done.errors);
        }
    }
}

#[test]
fn a_close_at_any_byte_of_the_response_fails_the_operation_by_kind() {
    let response = ok(&page(10));
    for cut in 0..=response.len() {
        let part = response[..cut].to_vec();
        let address = hostile(move |mut stream| {
            head(&mut stream);
            let _ = stream.write_all(&part);
        });
        let done = prompt(&client("crr", address, 10, 1));
        let kind = if cut == 0 { ErrorKind::EmptyResponse } else { ErrorKind::Truncated };
        let expected = if cut == response.len() { vec![] } else { vec![kind] };
        assert_eq!(kinds(&done), expected, "{cut} bytes");
    }
    let (_, tls) = good_certificates();
    for cut in (0..=129 + 4 + 1000).filter(|cut| *cut < 140 || *cut > 1120) {
        let address = hostile(move |mut stream| {
            let response = upgrade::respond(&head(&mut stream)).unwrap();
            let whole = [&response[..], &[0x82, 126, 3, 0xe8], &page(1000)].concat();
            let _ = stream.write_all(&whole[..cut.min(response.len())]);
            if cut > response.len() {
                let _ = stream.read_exact(&mut [0; 1008]);
                let _ = stream.write_all(&whole[response.len()..cut]);
            }
        });
        let done = prompt(&Spec { operations: Some(1), ..asking("websocket", address, &tls) });
        let complete = usize::from(cut == 129 + 4 + 1000);
        assert_eq!((done.operations as usize, kinds(&done).len()), (complete, 1 - complete), "{cut} bytes");
    }
}

#[test]
fn a_server_that_never_reads_or_answers_is_a_timeout() {
    let (_, tls) = good_certificates();
    for layer in ["http", "https", "tcp", "tls", "websocket", "wss"] {
        let address = hostile(|stream| {
            std::thread::sleep(PROMPT);
            drop(stream);
        });
        let done = prompt(&Spec { size: 65_536, ..impatient(layer, address, &tls) });
        let late = [ErrorKind::Timeout, ErrorKind::ConnectTimeout];
        assert!(done.operations == 0 && kinds(&done).iter().all(|kind| late.contains(kind)), "{layer}");
    }
}

#[test]
fn a_response_without_end_is_a_timeout_or_malformed_and_uses_no_memory() {
    let (_, tls) = good_certificates();
    for (what, start, piece, kind) in [
        (
            "chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1;x=y\r\na\r\n",
            ErrorKind::Timeout,
        ),
        ("a body", "HTTP/1.1 200 OK\r\n\r\n", "abcdefgh", ErrorKind::Timeout),
        ("interim responses", "", "HTTP/1.1 100 Continue\r\n\r\n", ErrorKind::Timeout),
        ("a header", "HTTP/1.1 200 OK\r\nX: ", "xxxxxxxx", ErrorKind::Malformed),
        (
            "an extension",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            "xxxxxx",
            ErrorKind::Malformed,
        ),
    ] {
        let address = hostile(move |mut stream| {
            head(&mut stream);
            let _ = stream.write_all(start.as_bytes());
            flood(stream, piece.repeat(10_000).as_bytes());
        });
        let ask = if kind == ErrorKind::Timeout { impatient } else { asking };
        let done = prompt(&ask("http", address, &tls));
        assert_eq!((done.operations, kinds(&done)), (0, vec![kind]), "{what}");
    }
}

#[test]
fn pings_without_end_from_a_server_that_never_reads_are_a_timeout() {
    let (_, tls) = good_certificates();
    let address = hostile(|mut stream| {
        let response = upgrade::respond(&head(&mut stream)).unwrap();
        let _ = stream.write_all(&response);
        flood(stream, &[&[0x89, 125][..], &[0; 125]].concat().repeat(1000));
    });
    let done = prompt(&impatient("websocket", address, &tls));
    assert_eq!((done.operations, kinds(&done)), (0, vec![ErrorKind::Timeout]));
}

/// A server that completes TLS handshakes, and then this.
fn secured(identity: &Tls, behave: fn(ServerConnection, TcpStream)) -> SocketAddr {
    let config = server_config(identity);
    hostile(move |mut stream| {
        let mut connection = ServerConnection::new(config.clone()).unwrap();
        while connection.is_handshaking() {
            if connection.complete_io(&mut stream).is_err() {
                return;
            }
        }
        behave(connection, stream);
    })
}

#[test]
fn records_without_end_fail_the_operation_by_kind() {
    let (identity, tls) = good_certificates();
    let key_updates: fn(ServerConnection, TcpStream) = |mut connection, mut stream| {
        while connection.refresh_traffic_keys().is_ok() && connection.write_tls(&mut stream).is_ok() {}
    };
    let data: fn(ServerConnection, TcpStream) = |mut connection, mut stream| {
        while connection.writer().write_all(&[b'x'; 100]).is_ok() && connection.write_tls(&mut stream).is_ok()
        {
        }
    };
    let garbage: fn(ServerConnection, TcpStream) = |_, mut stream| {
        let _ = stream.write_all(&[&[23, 3, 3, 0, 100][..], &garbage(1, 100)].concat());
        let _ = stream.read_to_end(&mut Vec::new());
    };
    for (what, behave, kind) in [
        ("KeyUpdates", key_updates, &[ErrorKind::TlsFailed][..]),
        ("garbage", garbage, &[ErrorKind::TlsFailed]),
        ("data", data, &[ErrorKind::WrongContent, ErrorKind::WrongLength, ErrorKind::Malformed]),
    ] {
        for layer in ["https", "tls", "wss"] {
            let done = prompt(&asking(layer, secured(&identity, behave), &tls));
            assert!(
                done.operations == 0 && kinds(&done).iter().all(|k| kind.contains(k)),
                "{layer} {what}: {done:?}"
            );
        }
    }
}
