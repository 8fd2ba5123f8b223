//! UDP and KCP as processes on loopback: exact counts, and every fault of a peer or the path.

use crate::common::{Engine, dead_port, in_some_try, local};
use linerate_contract::datagram::{Datagram, Report};
use linerate_contract::{Bytes, Done, ErrorKind, Nanos, Role, Spec, Workload};
use nix::sys::signal::Signal;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const SECOND: Nanos = Nanos(1_000_000_000);
const MODES: [&str; 3] = ["single", "batch", "gso"];

fn spec(role: Role, layer: &str, size: u64, options: &[(&str, &str)]) -> Spec {
    let mut spec = Spec::new(role, layer.parse().unwrap(), Workload::Stream);
    spec.size = size;
    spec.options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    spec
}

fn server(layer: &str, size: u64, options: &[(&str, &str)]) -> Spec {
    Spec { listen: Some(local()), ..spec(Role::Server, layer, size, options) }
}

fn client(layer: &str, address: SocketAddr, size: u64, options: &[(&str, &str)]) -> Spec {
    Spec { connect: Some(address), ..spec(Role::Client, layer, size, options) }
}

#[test]
fn every_datagram_is_accounted_for_in_every_mode() {
    for mode in MODES {
        for (size, connections, threads) in [(64, 1, 1), (1_472, 4, 1), (1_472, 3, 2), (65_507, 2, 1)] {
            let options = [("mode", mode)];
            let (_server, address) = Engine::serving(&server("udp", size, &options));
            let mut spec = client("udp", address, size, &options);
            (spec.connections, spec.threads) = (connections, threads);
            // So few that a socket's buffer has room for all: a machine that stands still must not lose any.
            let (each, rate) = if size > 10_000 { (1, 20.0) } else { (20, 2_000.0) };
            (spec.bytes, spec.rate) = (Some(each * size - 1), Some(rate));
            let done = Engine::start(&spec).done();
            let datagrams = done.datagrams.unwrap();
            let all = each * u64::from(connections);
            assert_eq!((datagrams.sent, datagrams.received, datagrams.lost), (all, all, 0), "{mode} {size}");
            assert_eq!((datagrams.damaged, datagrams.duplicates, datagrams.reordered), (0, 0, 0));
            assert_eq!((done.operations, done.bytes, done.errors.total()), (all, Bytes(all * size), 0));
            assert!(done.end_ns > done.start_ns && done.cpu_ns > Nanos::ZERO);
        }
    }
}

fn echo(role: Role, size: u64) -> Spec {
    Spec { workload: Workload::Rr, ..spec(role, "udp", size, &[]) }
}

#[test]
fn datagrams_come_back_as_they_went() {
    for (size, connections, threads) in [(1, 1, 1), (1_472, 3, 2), (65_507, 1, 1)] {
        let (_server, address) = Engine::serving(&Spec { listen: Some(local()), ..echo(Role::Server, size) });
        let mut spec = Spec { connect: Some(address), ..echo(Role::Client, size) };
        (spec.connections, spec.threads, spec.operations) = (connections, threads, Some(300));
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.bytes, done.errors.total()), (300, Bytes(300 * size), 0), "{size}");
        assert_eq!((done.verified, done.latency.unwrap().total()), (300, 300));
    }
}

/// A server that answers each datagram by `response`, if it does.
fn answering(response: fn(&[u8]) -> Option<Vec<u8>>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_000];
        while let Ok((n, from)) = socket.recv_from(&mut buffer) {
            if let Some(response) = response(&buffer[..n]) {
                let _ = socket.send_to(&response, from);
            }
        }
    });
    address
}

#[test]
fn an_echo_that_is_none_is_a_failure_of_its_kind() {
    let longer = |bytes: &[u8]| Some([bytes, b"x"].concat());
    let other = |bytes: &[u8]| Some(bytes.iter().rev().copied().collect());
    for (address, kind) in [
        (answering(longer), ErrorKind::WrongLength),
        (answering(other), ErrorKind::WrongContent),
        (answering(|_| None), ErrorKind::Timeout),
        (dead_port(), ErrorKind::ConnectRefused),
    ] {
        let mut spec = Spec { connect: Some(address), operations: Some(3), ..echo(Role::Client, 100) };
        if kind == ErrorKind::Timeout {
            spec.timeout_ns = Nanos(200_000_000);
        }
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.0.get(&kind)), (0, Some(&3)), "{:?}", done.errors);
    }
}

/// A server that needs 5 ms for each response, and sends each response `copies` times.
fn duplicating(copies: usize) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_000];
        while let Ok((n, from)) = socket.recv_from(&mut buffer) {
            std::thread::sleep(Duration::from_millis(5));
            (0..copies).for_each(|_| drop(socket.send_to(&buffer[..n], from)));
        }
    });
    address
}

#[test]
fn a_duplicated_response_does_not_count_for_the_next_operation() {
    for size in [1, 5, 64] {
        let address = duplicating(3);
        let spec = Spec { connect: Some(address), operations: Some(40), ..echo(Role::Client, size) };
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (40, 0), "{size}: {:?}", done.errors);
        let latency = done.latency.unwrap();
        assert!(latency.min >= 5_000_000, "{size}: a response before its time: {latency:?}");
    }
}

#[test]
fn a_flood_ends_by_time_and_what_was_lost_is_told() {
    for mode in MODES {
        let options = [("mode", mode)];
        let (_server, address) = Engine::serving(&server("udp", 1_472, &options));
        let mut spec = client("udp", address, 1_472, &options);
        spec.duration_ns = Some(Nanos(200_000_000));
        let start = Instant::now();
        let done = Engine::start(&spec).done();
        assert!(start.elapsed() < Duration::from_secs(10));
        let datagrams = done.datagrams.unwrap();
        assert!(datagrams.sent > 0 && datagrams.received > 0);
        assert_eq!(datagrams.lost, datagrams.sent - datagrams.received);
        assert_eq!((done.operations, done.errors.total()), (datagrams.received, 0));
    }
}

#[test]
fn an_open_loop_sends_what_its_rate_says() {
    let (_server, address) = Engine::serving(&server("udp", 200, &[]));
    let mut spec = client("udp", address, 200, &[]);
    (spec.duration_ns, spec.rate, spec.connections) = (Some(Nanos(500_000_000)), Some(4_000.0), 2);
    let done = Engine::start(&spec).done();
    let sent = done.datagrams.unwrap().sent;
    let schedule = done.schedule.unwrap();
    assert_eq!(sent + schedule.unsent, 2_000);
    assert_eq!(schedule.delay.total(), sent);
}

/// A peer that answers HELLO, and END with a report as `report` makes it of what it saw.
fn scripted(report: impl Fn(&[Vec<u8>]) -> Option<Report> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind(local()).unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut buffer, mut seen) = ([0; 65_536], Vec::new());
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let response = match Datagram::parse(&buffer[..length]) {
                Some(Datagram::Hello) => Datagram::Welcome,
                Some(Datagram::End { .. }) => match report(&seen) {
                    Some(report) => Datagram::Report(report),
                    None => continue,
                },
                _ => {
                    seen.push(buffer[..length].to_vec());
                    continue;
                }
            };
            socket.send_to(&response.to_bytes(), from).unwrap();
        }
    });
    address
}

fn short(address: SocketAddr) -> Spec {
    let mut spec = client("udp", address, 1_472, &[]);
    (spec.bytes, spec.timeout_ns) = (Some(10_000), Nanos(5 * SECOND.0));
    spec
}

#[test]
fn a_path_that_swallows_large_datagrams_is_seen_and_ends_in_time() {
    // As behind a router with a small MTU whose ICMP is filtered: control passes, payload does not.
    let address = scripted(|_| Some(Report::default()));
    let done = Engine::start(&short(address)).done();
    let datagrams = done.datagrams.unwrap();
    assert_eq!((datagrams.sent, datagrams.received, datagrams.lost), (7, 0, 7));
    assert_eq!(done.operations, 0);
}

#[test]
fn a_receiver_that_vanishes_ends_its_flows_with_a_reason_and_in_time() {
    let impatient = |address| Spec { timeout_ns: Nanos(300_000_000), ..short(address) };
    let never_reports = scripted(|_| None);
    // A machine that stands still may have its timeout before the start.
    let has_timeout = in_some_try(|| {
        let errors = Engine::start(&impatient(never_reports)).done().errors.0;
        let late = [ErrorKind::Timeout, ErrorKind::ConnectTimeout].map(|kind| errors.get(&kind).copied());
        assert!(matches!(late, [Some(1), None] | [None, Some(1)]), "{errors:?}");
        errors.contains_key(&ErrorKind::Timeout)
    });
    assert!(has_timeout);

    let says_nothing = UdpSocket::bind(local()).unwrap();
    let done = Engine::start(&impatient(says_nothing.local_addr().unwrap())).done();
    assert_eq!(done.errors.0.get(&ErrorKind::ConnectTimeout), Some(&1), "{:?}", done.errors);

    let done = Engine::start(&short(dead_port())).done();
    assert_eq!(done.errors.0.get(&ErrorKind::ConnectRefused), Some(&1), "{:?}", done.errors);

    for layer in ["udp", "kcp"] {
        let sampled = Spec { sample_ns: Some(Nanos(50_000_000)), ..server(layer, 1_472, &[]) };
        let (mut server, address) = Engine::serving(&sampled);
        let mut spec = client(layer, address, 1_472, &[]);
        (spec.duration_ns, spec.timeout_ns) = (Some(Nanos(60 * SECOND.0)), SECOND);
        let client = Engine::start(&spec);
        server.under_way();
        server.signal(Signal::SIGKILL);
        server.wait();
        let start = Instant::now();
        let done = client.done();
        assert!(start.elapsed() < Duration::from_secs(30), "{layer}");
        assert_eq!(done.errors.total(), 1, "{layer}: {:?}", done.errors);
    }
}

#[test]
fn what_a_receiver_damaged_is_no_good_datagram() {
    // The server has another size in its spec: every datagram has the wrong length.
    let (_server, address) = Engine::serving(&server("udp", 1_000, &[]));
    let done = Engine::start(&short(address)).done();
    let datagrams = done.datagrams.unwrap();
    assert_eq!((datagrams.received, datagrams.damaged, datagrams.lost), (0, 7, 7));
}

#[test]
fn a_port_that_is_taken_and_a_buffer_that_is_refused_are_said() {
    let taken = UdpSocket::bind(local()).unwrap();
    for layer in ["udp", "kcp"] {
        let mut spec = server(layer, 1_472, &[]);
        spec.listen = Some(taken.local_addr().unwrap());
        let mut engine = Engine::start(&spec);
        assert_eq!(engine.wait().code(), Some(1));
        let said = engine.stderr();
        assert!(said.contains(&spec.listen.unwrap().to_string()) && said.contains("in use"), "{said}");

        let mut engine = Engine::start(&server(layer, 1_472, &[("buffer", "1000000000")]));
        assert_eq!(engine.wait().code(), Some(1));
        let said = engine.stderr();
        assert!(said.contains("buffer") && said.contains("rmem_max"), "{said}");
    }
}

#[test]
fn garbage_from_strangers_changes_nothing() {
    for layer in ["udp", "kcp"] {
        let (mut server, address) = Engine::serving(&server(layer, 1_472, &[]));
        let stranger = UdpSocket::bind(local()).unwrap();
        for length in [0, 1, 7, 8, 16, 24, 25, 64, 1_472, 60_000] {
            for byte in [0, 0x51, 0xff] {
                stranger.send_to(&vec![byte; length], address).unwrap();
            }
        }
        let mut spec = client(layer, address, 1_472, &[]);
        spec.bytes = Some(14_720);
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (10, 0), "{layer}");
        server.signal(Signal::SIGTERM);
        assert!(server.wait().success());
    }
}

#[test]
fn kcp_carries_every_byte_and_ends_by_bytes_or_by_time() {
    for (options, connections, threads) in [
        (vec![], 1, 1),
        (vec![("mode", "gso"), ("mtu", "1400")], 3, 2),
        (vec![("mode", "single"), ("mtu", "9000"), ("window", "256")], 2, 1),
        (vec![("interval_us", "1000"), ("nodelay", "0"), ("nc", "0")], 1, 1),
    ] {
        let (_server, address) = Engine::serving(&server("kcp", 63_488, &options));
        let mut spec = client("kcp", address, 63_488, &options);
        (spec.connections, spec.threads, spec.bytes) = (connections, threads, Some(1_000_001));
        let done = Engine::start(&spec).done();
        let all = 1_000_001 * u64::from(connections);
        assert_eq!((done.bytes, done.verified, done.errors.total()), (Bytes(all), all, 0), "{options:?}");
        (spec.bytes, spec.duration_ns) = (None, Some(Nanos(200_000_000)));
        let done: Done = Engine::start(&spec).done();
        assert!(done.bytes.0 > 0 && done.errors.total() == 0, "{options:?}: {:?}", done.errors);
    }
}

#[test]
fn what_is_missing_in_a_spec_is_said_with_status_2_and_what_is_not_done_with_127() {
    let timed = |mut spec: Spec| {
        spec.duration_ns = Some(SECOND);
        spec
    };
    for wrong in [
        client("udp", local(), 1_472, &[]),
        client("kcp", local(), 1_472, &[]),
        timed(client("udp", local(), 63, &[])),
        timed(client("udp", local(), 65_508, &[])),
        timed(client("kcp", local(), 0, &[])),
        timed(client("kcp", local(), 63_488, &[("mtu", "7")])),
        server("udp", 0, &[]),
        server("udp", 64, &[("every", "0")]),
    ] {
        assert_eq!(Engine::start(&wrong).wait().code(), Some(2), "{}", wrong.to_json());
    }
    for unsupported in [
        timed(client("udp", local(), 1_472, &[("mode", "carrier-pigeon")])),
        timed(client("udp", local(), 1_472, &[("direction", "both")])),
        timed(client("kcp", local(), 1_472, &[("direction", "client-reads")])),
    ] {
        assert_eq!(Engine::start(&unsupported).wait().code(), Some(127), "{}", unsupported.to_json());
    }
}
