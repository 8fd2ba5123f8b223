//! TCP as processes on loopback: exact counts, and every fault of a peer.

use crate::common::{Engine, assert_times_out, dead_port, in_some_try, local, tcp_client as client, with};
use linerate_contract::{Bytes, ErrorKind, Event, Layer, Nanos, Role, Spec, Workload};
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const MESSAGES: [&str; 3] = ["rr", "crr", "fanout"];
const DIRECTIONS: [&str; 3] = ["client-writes", "client-reads", "both"];

fn server(workload: &str) -> Spec {
    let mut spec = Spec::new(Role::Server, Layer::Tcp, workload.parse().unwrap());
    spec.listen = Some(local());
    spec
}

/// A server that treats every connection so.
fn scripted(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(behave));
    address
}

#[test]
fn messages_come_back_exactly_as_often_as_asked() {
    for workload in MESSAGES {
        let mut spec = server(workload);
        spec.threads = 2;
        let (_server, address) = Engine::serving(&spec);
        for (connections, threads, size) in [(1, 1, 1), (4, 1, 64), (5, 2, 1024), (3, 1, 65_536)] {
            let mut spec = client(workload, address, size, 301);
            (spec.connections, spec.threads) = (connections, threads);
            let done = Engine::start(&spec).done();
            assert_eq!((done.operations, done.errors.total(), done.verified), (301, 0, 301), "{workload}");
            let each = if workload == "fanout" { size * u64::from(connections) } else { size };
            assert_eq!(done.bytes, Bytes(301 * each));
            assert_eq!(done.latency.unwrap().total(), 301);
            assert!(done.end_ns > done.start_ns && done.cpu_ns > Nanos::ZERO);
        }
    }
}

#[test]
fn a_client_sends_no_more_messages_than_it_counts() {
    let (sender, received) = std::sync::mpsc::channel();
    let address = scripted(move |mut stream| {
        let (mut all, mut buffer) = (0, [0; 64]);
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            all += count;
            let _ = stream.write_all(&buffer[..count]);
        }
        let _ = sender.send(all);
    });
    assert_eq!(Engine::start(&client("rr", address, 64, 5)).done().operations, 5);
    assert_eq!(received.recv_timeout(Duration::from_secs(5)), Ok(5 * 64));
}

#[test]
fn a_window_of_time_ends_by_itself() {
    for workload in MESSAGES {
        let (_server, address) = Engine::serving(&server(workload));
        let mut spec = client(workload, address, 64, 0);
        (spec.operations, spec.duration_ns) = (None, Some(Nanos(100_000_000)));
        assert!(in_some_try(|| {
            let done = Engine::start(&spec).done();
            assert_eq!((done.end_ns.since(done.start_ns), done.errors.total()), (Nanos(100_000_000), 0));
            done.operations > 0
        }));
    }
}

#[test]
fn streams_arrive_whole_in_every_direction() {
    for direction in DIRECTIONS {
        for size in [1, 1000, 65_536, 200_000] {
            let mut spec = with(server("stream"), "direction", direction);
            spec.size = size;
            let (mut server, address) = Engine::serving(&spec);
            for (connections, threads) in [(1, 1), (3, 2)] {
                let bytes = if size == 1 { 5_000 } else { 3_000_001 };
                let mut spec = with(client("stream", address, size, 0), "direction", direction);
                (spec.operations, spec.bytes) = (None, Some(bytes));
                (spec.connections, spec.threads) = (connections, threads);
                let done = Engine::start(&spec).done();
                let all = bytes * u64::from(connections) * if direction == "both" { 2 } else { 1 };
                assert_eq!(
                    (done.bytes, done.verified, done.errors.total()),
                    (Bytes(all), all, 0),
                    "{direction}"
                );
                let sides = if direction == "both" { 2 } else { 1 };
                assert_eq!(done.operations, sides * u64::from(connections) * bytes.div_ceil(size));
                assert_eq!(done.latency.unwrap().total(), u64::from(connections));
                // The server's end of each connection, which is there by now.
                for _ in 0..connections {
                    assert!(matches!(server.event(), Some(Event::Tcp(info)) if info.cwnd > 0));
                }
            }
        }
    }
}

#[test]
fn transfers_follow_one_another_on_a_connection_in_every_direction() {
    for direction in DIRECTIONS {
        let options = |spec| with(with(spec, "direction", direction), "transfers", "5");
        let mut spec = options(server("stream"));
        spec.size = 1000;
        let (mut server, address) = Engine::serving(&spec);
        let mut spec = options(client("stream", address, 1000, 0));
        (spec.operations, spec.bytes, spec.connections) = (None, Some(100_001), 2);
        let done = Engine::start(&spec).done();
        let sides = if direction == "both" { 2 } else { 1 };
        let all = sides * 2 * 5 * 100_001;
        assert_eq!((done.bytes, done.verified, done.errors.total()), (Bytes(all), all, 0), "{direction}");
        assert_eq!((done.operations, done.latency.unwrap().total()), (sides * 2 * 5 * 101, 10));
        for _ in 0..2 {
            assert!(
                matches!(server.event(), Some(Event::Tcp(info)) if info.cwnd > 0),
                "one event a connection"
            );
        }
        // Transfers of these bytes until the time is over.
        spec.duration_ns = Some(Nanos(100_000_000));
        let has_more = in_some_try(|| {
            let done = Engine::start(&spec).done();
            assert!(done.bytes.0 >= sides * 2 * 100_001 && done.bytes.0.is_multiple_of(100_001));
            assert!(done.end_ns >= done.start_ns + Nanos(100_000_000) && done.errors.total() == 0);
            done.bytes.0 > all
        });
        assert!(has_more, "{direction}");
    }
}

#[test]
fn the_bytes_of_every_direction_are_those_of_the_contract() {
    let page = linerate_contract::page(3000);
    let (mut number, mut content) = ([0; 8], vec![0; 3000]);
    for direction in DIRECTIONS {
        let mut spec = with(server("stream"), "direction", direction);
        spec.size = 1000;
        let (_server, address) = Engine::serving(&spec);
        let mut peer = TcpStream::connect(address).unwrap();
        for length in [3000_usize, 1, 2500] {
            peer.write_all(&(length as u64).to_le_bytes()).unwrap();
            if direction != "client-reads" {
                let mut wrong = page[..length].to_vec();
                wrong[0] ^= 1;
                peer.write_all(&wrong).unwrap();
            }
            if direction != "client-writes" {
                peer.read_exact(&mut content[..length]).unwrap();
                assert_eq!(content[..length], page[..length]);
            }
            if direction != "client-reads" {
                peer.read_exact(&mut number).unwrap();
                assert_eq!(u64::from_le_bytes(number), length as u64 - 1, "{direction}");
            }
        }
    }
    // By time: the end of the stream ends the transfer.
    let mut spec = with(server("stream"), "direction", "client-writes");
    spec.size = 1000;
    let (_server, address) = Engine::serving(&spec);
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&[&u64::MAX.to_le_bytes()[..], &page].concat()).unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    let mut response = Vec::new();
    peer.read_to_end(&mut response).unwrap();
    assert_eq!(response, 3000_u64.to_le_bytes());
}

#[test]
fn an_end_inside_a_transfer_is_truncated() {
    for direction in DIRECTIONS {
        // All that the client sends is read: a peer that closes with unread bytes resets the connection.
        let sent = if direction == "client-reads" { 8 } else { 108 };
        let address = scripted(move |mut stream| {
            let _ = stream.read_exact(&mut vec![0; sent]);
        });
        let mut spec = with(client("stream", address, 64, 0), "direction", direction);
        (spec.operations, spec.bytes) = (None, Some(100));
        let errors = Engine::start(&spec).done().errors;
        assert_eq!(errors.0.keys().collect::<Vec<_>>(), [&ErrorKind::Truncated], "{direction}");
    }
}

#[test]
fn a_server_of_any_direction_follows_its_clients() {
    let mut spec = with(server("stream"), "direction", "any");
    spec.size = 65_536;
    let (_server, address) = Engine::serving(&spec);
    for direction in ["client-writes", "client-reads"] {
        for bytes in [1, 7, 8, 9, 3_000_001] {
            let mut spec = with(client("stream", address, 1_000, 0), "direction", direction);
            (spec.operations, spec.bytes, spec.connections) = (None, Some(bytes), 3);
            let done = Engine::start(&spec).done();
            assert_eq!((done.bytes, done.errors.total()), (Bytes(3 * bytes), 0), "{direction} {bytes}");
        }
    }
}

#[test]
fn every_operation_against_a_dead_port_is_refused() {
    for workload in MESSAGES {
        let done = Engine::start(&client(workload, dead_port(), 64, 20)).done();
        assert_eq!((done.operations, done.errors.0[&ErrorKind::ConnectRefused]), (0, 20), "{workload}");
    }
    let mut spec = with(client("stream", dead_port(), 64, 0), "direction", "both");
    spec.bytes = Some(1000);
    assert_eq!(Engine::start(&spec).done().errors.0[&ErrorKind::ConnectRefused], 1);
}

#[test]
fn servers_that_misbehave_are_errors_of_their_own_kinds() {
    let read = |stream: &mut TcpStream| stream.read(&mut [0; 64]).unwrap_or(0);
    type Behaviour = Box<dyn Fn(TcpStream) + Send + Sync>;
    let cases: Vec<(ErrorKind, Behaviour)> = vec![
        (
            ErrorKind::EmptyResponse,
            Box::new(move |mut s| {
                read(&mut s);
            }),
        ),
        (
            ErrorKind::Truncated,
            Box::new(move |mut s| {
                read(&mut s);
                let _ = s.write_all(&linerate_contract::page(10));
            }),
        ),
        (
            ErrorKind::WrongContent,
            Box::new(move |mut s| {
                read(&mut s);
                let _ = s.write_all(&[b'!'; 64]);
            }),
        ),
        (
            ErrorKind::WrongLength,
            Box::new(move |mut s| {
                read(&mut s);
                let _ = s.write_all(&linerate_contract::page(65));
            }),
        ),
    ];
    for (kind, behave) in cases {
        let address = scripted(behave);
        for workload in MESSAGES {
            let done = Engine::start(&client(workload, address, 64, 5)).done();
            let seen = format!("{workload}: {:?}", done.errors);
            assert_eq!((done.operations, done.errors.total()), (0, 5), "{seen}");
            assert!(done.errors.0.contains_key(&kind), "{kind:?} is not in {seen}");
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_a_timeout() {
    let held = std::sync::Mutex::new(Vec::new());
    let address = scripted(move |stream| held.lock().unwrap().push(stream));
    for workload in MESSAGES {
        let mut spec = client(workload, address, 64, 2);
        spec.timeout_ns = Nanos(100_000_000);
        assert_times_out(&spec, 2);
    }
    for direction in DIRECTIONS {
        let mut spec = with(client("stream", address, 64, 0), "direction", direction);
        (spec.bytes, spec.timeout_ns) = (Some(100), Nanos(100_000_000));
        assert_times_out(&spec, 1);
    }
}

#[test]
fn servers_survive_peers_that_vanish_and_end_on_sigterm() {
    for (workload, direction) in [("rr", ""), ("stream", "both"), ("stream", "client-reads")] {
        let mut spec = with(server(workload), "direction", direction);
        spec.size = 1000;
        let (mut server, address) = Engine::serving(&spec);
        for _ in 0..20 {
            let mut peer = TcpStream::connect(address).unwrap();
            let _ = peer.write_all(&1_000_000_000_u64.to_le_bytes());
            // Closing with input unread resets the connection.
            let _ = peer.read(&mut [0; 1]);
        }
        let mut spec = with(client(workload, address, 1000, 10), "direction", direction);
        spec.bytes = Some(10_000);
        let done = Engine::start(&spec).done();
        assert_eq!(done.errors.total(), 0, "{workload} {direction}");
        let stop = Instant::now();
        server.signal(Signal::SIGTERM);
        assert!(server.wait().success() && stop.elapsed() < Duration::from_secs(15));
    }
}

#[test]
fn what_is_missing_in_a_spec_is_said_with_status_2() {
    let address = local();
    let wrong = [
        client("rr", address, 0, 1),
        client("rr", address, 70_000, 1),
        client("stream", address, 64, 1),
        with(client("stream", address, 64, 1), "direction", "both"),
        with(client("stream", address, 64, 1), "direction", "sideways"),
        Spec::new(Role::Server, Layer::Tcp, Workload::Rr),
    ];
    for spec in wrong {
        assert_eq!(Engine::start(&spec).wait().code(), Some(2), "{}", spec.to_json());
    }
    for (role, layer, workload) in [(Role::Client, "tcp", "dispatch"), (Role::Server, "udp", "crr")] {
        assert_eq!(
            Engine::start(&Spec::new(role, layer.parse().unwrap(), workload.parse().unwrap())).wait().code(),
            Some(127)
        );
    }
}

#[test]
fn streams_by_time_and_in_every_mode_count_what_arrived() {
    for mode in ["plain", "sendfile", "splice", "zerocopy", "truncate"] {
        for direction in ["client-writes", "client-reads"] {
            let with_options = |spec| with(with(spec, "direction", direction), "mode", mode);
            let mut spec = with_options(server("stream"));
            spec.size = 63_488;
            let (_server, address) = Engine::serving(&spec);
            let mut spec = with_options(client("stream", address, 63_488, 0));
            (spec.operations, spec.bytes) = (None, Some(3_000_001));
            let done = Engine::start(&spec).done();
            assert_eq!((done.bytes, done.errors.total()), (Bytes(3_000_001), 0), "{mode} {direction}");
            assert_eq!(done.verified > 0, mode != "truncate");
            (spec.bytes, spec.duration_ns, spec.connections) = (None, Some(Nanos(200_000_000)), 2);
            let moves = in_some_try(|| {
                let done = Engine::start(&spec).done();
                assert_eq!(done.errors.total(), 0, "{mode} {direction}: {:?}", done.errors);
                let window = done.end_ns.since(done.start_ns);
                assert!((200_000_000..20_000_000_000).contains(&window.0), "{window:?}");
                let info = done.tcp.unwrap().client.unwrap();
                done.bytes.0 > 0 && info.rtt_us > 0 && info.cwnd > 0
            });
            assert!(moves, "{mode} {direction}");
        }
    }
}
