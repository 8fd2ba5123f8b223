//! TLS and WebSocket, and counted streams, as processes on loopback: exact counts, and
//! every fault of a peer.

use crate::common::{Engine, certificates, good_certificates, in_some_try, local, read_request, scripted};
use linerate_contract::{Bytes, ErrorKind, Nanos, Request, Role, Spec, Tls};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LAYERS: [&str; 3] = ["tls", "websocket", "wss"];
const DIRECTIONS: [&str; 2] = ["client-writes", "client-reads"];

fn server(layer: &str, workload: &str, tls: &Tls) -> Spec {
    let mut spec = Spec::new(Role::Server, layer.parse().unwrap(), workload.parse().unwrap());
    (spec.listen, spec.tls) = (Some(local()), Some(tls.clone()));
    spec
}

pub(crate) fn client(layer: &str, workload: &str, address: SocketAddr, tls: &Tls) -> Spec {
    let mut spec = Spec::new(Role::Client, layer.parse().unwrap(), workload.parse().unwrap());
    (spec.connect, spec.tls) = (Some(address), Some(tls.clone()));
    spec
}

fn transfer(mut spec: Spec, direction: &str, size: u64, bytes: u64, transfers: u64) -> Spec {
    spec.options.insert("direction".into(), direction.into());
    spec.options.insert("transfers".into(), transfers.to_string());
    (spec.size, spec.bytes) = (size, Some(bytes));
    spec
}

#[test]
fn messages_come_back_exactly_as_often_as_asked() {
    let (server_tls, client_tls) = good_certificates();
    for layer in LAYERS {
        let (_server, address) = Engine::serving(&server(layer, "rr", &server_tls));
        for (connections, threads, size) in [(1, 1, 1), (4, 1, 1024), (5, 2, 65_536)] {
            let mut spec = client(layer, "rr", address, &client_tls);
            (spec.connections, spec.threads, spec.size, spec.operations) =
                (connections, threads, size, Some(101));
            for rate in [None, Some(5000.0)] {
                let done = Engine::start(&Spec { rate, ..spec.clone() }).done();
                assert_eq!(
                    (done.operations, done.errors.total(), done.verified),
                    (101, 0, 101),
                    "{layer} {size}"
                );
                assert_eq!(done.bytes, Bytes(101 * size));
                assert_eq!(done.latency.unwrap().total(), 101);
                let tls = done.tls.unwrap_or_default();
                assert_eq!(
                    tls.starts_with("TLSv1.3 TLS_AES_128_GCM_SHA256 rustls 0."),
                    layer != "websocket",
                    "{tls}"
                );
            }
        }
    }
}

#[test]
fn transfers_arrive_whole_both_ways() {
    let (server_tls, client_tls) = good_certificates();
    for layer in ["tcp", "tls", "websocket", "wss"] {
        for direction in DIRECTIONS {
            for size in [1, 1000, 65_536, 1 << 20] {
                let bytes = if size == 1 { 1_000 } else { 1_100_001 };
                let spec = transfer(server(layer, "stream", &server_tls), direction, size, 0, 1);
                let (_server, address) = Engine::serving(&spec);
                for (connections, transfers) in [(1, 1), (1, 3), (2, 2)] {
                    let client = client(layer, "stream", address, &client_tls);
                    let mut spec = transfer(client, direction, size, bytes, transfers);
                    (spec.connections, spec.threads) = (connections, connections);
                    let done = Engine::start(&spec).done();
                    let all = transfers * u64::from(connections);
                    let what = format!("{layer} {direction} {size} {:?}", done.errors);
                    assert_eq!((done.bytes, done.verified), (Bytes(all * bytes), all * bytes), "{what}");
                    assert_eq!(
                        (done.operations, done.errors.total()),
                        (all * bytes.div_ceil(size), 0),
                        "{what}"
                    );
                    assert_eq!(done.latency.unwrap().total(), all);
                }
            }
        }
    }
}

#[test]
fn transfers_for_a_time_are_finished_and_the_server_serves_one_client_after_the_other() {
    let (server_tls, client_tls) = good_certificates();
    for layer in LAYERS {
        for direction in DIRECTIONS {
            let spec = transfer(server(layer, "stream", &server_tls), direction, 65_536, 0, 1);
            let (_server, address) = Engine::serving(&spec);
            // 1 ms is less than the time of the long transfers.
            for (bytes, duration) in [(10_001, 100_000_000), (5_000_001, 1_000_000), (10_001, 100_000_000)] {
                let client = client(layer, "stream", address, &client_tls);
                let mut spec = transfer(client, direction, 65_536, bytes, 3);
                (spec.connections, spec.duration_ns) = (2, Some(Nanos(duration)));
                let has_as_many = in_some_try(|| {
                    let done = Engine::start(&spec).done();
                    let transfers = done.latency.unwrap().total();
                    let what = format!("{layer} {direction} {transfers} {:?}", done.errors);
                    assert_eq!((done.bytes, done.errors.total()), (Bytes(transfers * bytes), 0), "{what}");
                    assert_eq!(done.operations, transfers * bytes.div_ceil(65_536), "{what}");
                    assert!(done.end_ns >= done.start_ns + Nanos(duration) && transfers >= 2, "{what}");
                    if duration == 1_000_000 { transfers == 2 } else { transfers > 6 }
                });
                assert!(has_as_many, "{layer} {direction} {bytes} for {duration} ns");
            }
        }
    }
}

/// Operations and errors of a client of one connection and one operation.
fn outcome(layer: &str, workload: &str, address: SocketAddr, tls: &Tls) -> (u64, Vec<ErrorKind>) {
    let mut spec = transfer(client(layer, workload, address, tls), "client-reads", 1000, 100_000, 1);
    spec.operations = Some(1);
    let start = Instant::now();
    let done = Engine::start(&spec).done();
    // Nothing here waits for a timeout.
    assert!(start.elapsed() < Duration::from(spec.timeout_ns));
    (done.operations, done.errors.0.into_keys().collect())
}

#[test]
fn a_certificate_that_is_wrong_expired_or_of_another_authority_is_a_failure_of_tls() {
    let (good, trusted) = good_certificates();
    let (other_name, trusts_other_name) = certificates("example.test", 4000);
    let (expired, trusts_expired) = certificates("linerate.test", 2020);
    let (_, trusts_another) = good_certificates();
    for (what, server_tls, client_tls) in [
        ("another name", &other_name, &trusts_other_name),
        ("expired", &expired, &trusts_expired),
        ("another authority", &good, &trusts_another),
    ] {
        for layer in ["tls", "wss"] {
            let (_server, address) = Engine::serving(&server(layer, "rr", server_tls));
            assert_eq!(outcome(layer, "rr", address, client_tls), (0, vec![ErrorKind::TlsFailed]), "{what}");
        }
    }
    let (_server, address) = Engine::serving(&server("tls", "rr", &good));
    assert_eq!(outcome("tls", "rr", address, &trusted), (1, vec![]));
    // Servers of other layers: one that speaks no TLS, and one that does not speak WebSocket inside of it.
    let (_plain, plain) = Engine::serving(&server("websocket", "rr", &good));
    assert_eq!(outcome("tls", "rr", plain, &trusted), (0, vec![ErrorKind::TlsFailed]));
}

#[test]
fn a_peer_that_never_answers_is_a_timeout() {
    let silent = TcpListener::bind(local()).unwrap();
    let address = silent.local_addr().unwrap();
    let (_, tls) = good_certificates();
    for layer in LAYERS {
        for workload in ["rr", "stream"] {
            let mut spec = transfer(client(layer, workload, address, &tls), "client-reads", 1000, 100_000, 1);
            (spec.operations, spec.timeout_ns) = (Some(1), Nanos(300_000_000));
            let done = Engine::start(&spec).done();
            let late = [ErrorKind::Timeout, ErrorKind::ConnectTimeout].map(|kind| done.errors.0.get(&kind));
            assert!(done.operations == 0 && done.errors.total() == 1, "{layer}: {:?}", done.errors);
            assert!(late.iter().flatten().count() == 1, "{layer}: {:?}", done.errors);
        }
    }
}

/// A server that opens the WebSocket as it should and then does this.
pub(crate) fn opened(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let behave = std::sync::Arc::new(behave);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let behave = behave.clone();
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                if let Ok(response) = linerate_proto::websocket::upgrade::respond(&head) {
                    let _ = stream.write_all(&response);
                    behave(stream);
                }
            });
        }
    });
    address
}

#[test]
fn a_server_that_breaks_the_protocol_is_named_and_told() {
    let (_, tls) = good_certificates();
    for (what, bytes, kind, code) in [
        ("a reserved bit", &[0xc2, 0][..], ErrorKind::Malformed, 1002_u16),
        ("a masked frame", &[0x82, 0x80, 1, 2, 3, 4], ErrorKind::Malformed, 1002),
        ("an opcode of nothing", &[0x83, 0], ErrorKind::Malformed, 1002),
        ("a continuation of nothing", &[0x80, 0], ErrorKind::Malformed, 1002),
        ("text that is none", &[0x81, 1, 0xff], ErrorKind::Malformed, 1007),
        ("a message beyond the limit", &[0x82, 127, 0, 0, 0, 0, 2, 0, 0, 0], ErrorKind::Malformed, 1009),
        ("another message", &[0x82, 1, b'!'], ErrorKind::WrongContent, 0),
        ("a close frame", &[0x88, 2, 3, 0xe9], ErrorKind::EmptyResponse, 1001),
    ] {
        let (sender, received) = std::sync::mpsc::channel();
        let address = opened(move |mut stream| {
            let mut request = [0; 1008];
            let _ = stream.read_exact(&mut request);
            let _ = stream.write_all(bytes);
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            let _ = sender.send(rest);
        });
        assert_eq!(outcome("websocket", "rr", address, &tls), (0, vec![kind]), "{what}");
        let received = received.recv_timeout(Duration::from_secs(5)).unwrap();
        if code > 0 && kind == ErrorKind::Malformed {
            // A masked close frame with the code.
            let [0x88, 0x82, a, b, _, _, high, low] = received[..] else { panic!("{what}: {received:x?}") };
            assert_eq!(u16::from_be_bytes([high ^ a, low ^ b]), code, "{what}");
        }
    }
}

#[test]
fn a_server_that_refuses_or_vanishes_is_named() {
    let (_, tls) = good_certificates();
    let refusing = scripted(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read(&mut [0]);
    });
    assert_eq!(outcome("websocket", "rr", refusing, &tls), (0, vec![ErrorKind::WrongStatus]));
    let silent = scripted(drop);
    assert_eq!(outcome("websocket", "rr", silent, &tls), (0, vec![ErrorKind::EmptyResponse]));
    let halfway = opened(|mut stream| {
        // Half of a fragmented response, with a ping in between, and away.
        let _ = stream.read_exact(&mut [0; 1008]);
        let _ = stream.write_all(&[0x02, 1, linerate_contract::page(1)[0], 0x89, 0, 0x00, 1]);
        // What is left unread would make it a reset.
        let _ = stream.read_exact(&mut [0; 6]);
    });
    assert_eq!(outcome("websocket", "rr", halfway, &tls), (0, vec![ErrorKind::Truncated]));
    let resetting = opened(|stream| {
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    });
    assert_eq!(outcome("websocket", "stream", resetting, &tls), (0, vec![ErrorKind::Reset]));
}

#[test]
fn a_transfer_that_moves_slowly_is_no_timeout_and_one_that_stands_still_is() {
    let (_, tls) = good_certificates();
    for (pause, expected) in [(150, 100), (1_500, 0)] {
        let address = opened(move |mut stream| {
            // A message with the number of a transfer, and content of 100 bytes in five pieces.
            let _ = stream.read_exact(&mut [0; 14]);
            for piece in linerate_contract::page(100).chunks(20) {
                let _ = stream.write_all(&[&[0x82, 20], piece].concat());
                std::thread::sleep(Duration::from_millis(pause));
            }
            let _ = stream.read(&mut [0; 100]);
        });
        let mut spec = transfer(client("websocket", "stream", address, &tls), "client-reads", 20, 100, 1);
        spec.timeout_ns = Nanos(500_000_000);
        let done = Engine::start(&spec).done();
        assert_eq!(done.bytes, Bytes(expected), "{pause} ms: {:?}", done.errors);
        assert_eq!(done.errors.0.contains_key(&ErrorKind::Timeout), expected == 0, "{:?}", done.errors);
    }
}

#[test]
fn fragments_and_pings_within_a_response_are_taken() {
    let (_, tls) = good_certificates();
    let (sender, received) = std::sync::mpsc::channel();
    let address = opened(move |mut stream| {
        let mut request = [0; 1008];
        stream.read_exact(&mut request).unwrap();
        let page = linerate_contract::page(1000);
        let mut response = vec![0x02, 100];
        response.extend_from_slice(&page[..100]);
        response.extend_from_slice(&[0x89, 3, b'y', b'o', b'u', 0x00, 0]);
        response.extend_from_slice(&[0x80, 126, 3, 132]);
        response.extend_from_slice(&page[100..]);
        for piece in response.chunks(7) {
            stream.write_all(piece).unwrap();
        }
        // A pong with the same payload, then the close frame.
        let mut rest = [0; 17];
        stream.read_exact(&mut rest).unwrap();
        stream.write_all(&[0x88, 2, 3, 0xe8]).unwrap();
        sender.send(rest).unwrap();
    });
    assert_eq!(outcome("websocket", "rr", address, &tls), (1, vec![]));
    let received = received.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(received[..2], [0x8a, 0x83]);
    assert_eq!([received[6] ^ received[2], received[7] ^ received[3], received[8] ^ received[4]], *b"you");
    assert_eq!(
        [received[9], received[10], received[15] ^ received[11], received[16] ^ received[12]],
        [0x88, 0x82, 3, 0xe8]
    );
}

#[test]
fn a_server_reports_the_error_of_a_client_and_continues() {
    let (server_tls, client_tls) = good_certificates();
    let (_server, address) = Engine::serving(&server("websocket", "rr", &server_tls));
    let connect = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream
            .write_all(&linerate_proto::websocket::upgrade::request("test", "/", [1; 16], &[]).unwrap())
            .unwrap();
        assert!(read_request(&mut stream));
        stream
    };
    for (bytes, code) in [
        (&[0x82, 0x00][..], 1002_u16),
        (&[0x81, 0x81, 0, 0, 0, 0, 0xff], 1007),
        (&[0x82, 0xff, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0], 1009),
        (&[0x88, 0x82, 0, 0, 0, 0, 3, 0xe8], 1000),
    ] {
        let mut stream = connect();
        stream.write_all(bytes).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert_eq!(received, [&[0x88, 2], &code.to_be_bytes()[..]].concat());
    }
    // Text comes back as text, fragments as one message, a ping before it as a pong.
    let mut stream = connect();
    stream.write_all(&[0x01, 0x82, 0, 0, 0, 0, b'h', b'i']).unwrap();
    stream.write_all(&[0x89, 0x80, 0, 0, 0, 0, 0x80, 0x81, 0, 0, 0, 0, b'!']).unwrap();
    let mut back = [0; 7];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"\x8a\x00\x81\x03hi!");
    let mut refused = TcpStream::connect(address).unwrap();
    refused.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    let mut received = String::new();
    refused.read_to_string(&mut received).unwrap();
    assert!(received.starts_with("HTTP/1.1 400 "), "{received}");
    assert_eq!(outcome("websocket", "rr", address, &client_tls), (1, vec![]));
}

#[test]
fn what_is_missing_or_not_supported_is_said() {
    let (_, tls) = good_certificates();
    let address = local();
    let without = Spec { tls: None, size: 1, operations: Some(1), ..client("tls", "rr", address, &tls) };
    let no_key = server("wss", "rr", &Tls { key: String::new(), ..Tls::default() });
    let large = transfer(client("wss", "stream", address, &tls), "client-writes", (1 << 20) + 1, 1, 1);
    let none = transfer(client("tls", "stream", address, &tls), "client-writes", 1, 1, 0);
    for spec in [without, no_key, large, none] {
        assert_eq!(Engine::start(&spec).wait().code(), Some(2), "{}", spec.to_json());
    }
    let both = transfer(client("websocket", "stream", address, &tls), "both", 1, 1, 1);
    assert_eq!(Engine::start(&both).wait().code(), Some(127));
}

#[test]
fn a_path_or_host_that_would_end_the_request_line_is_refused() {
    for (path, host) in [("/a\r\nX: y", "h"), ("a", "h"), ("/a b", "h"), ("/", "h\r\nX: y")] {
        let mut spec = client("websocket", "rr", local(), &Tls::default());
        (spec.operations, spec.size, spec.path) = (Some(1), 10, Some(path.into()));
        spec.request = Some(Request { host: Some(host.into()), ..Request::default() });
        assert_eq!(Engine::start(&spec).wait().code(), Some(2), "{path:?} {host:?}");
    }
}
