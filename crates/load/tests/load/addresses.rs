//! Where connections come from, and how fast they may send.

use crate::common::{Engine, client, good_certificates, local, ok, read_request, server, tcp_client, with};
use crate::h3::{h3_client, h3_server};
use linerate_contract::{Layer, Nanos, Role, Spec, Workload, page};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

const SOURCES: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 21)),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 22)),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 23)),
];

#[test]
fn connections_come_from_each_source_in_turn() {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let peers = seen.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            peers.lock().unwrap().insert(stream.peer_addr().unwrap().ip());
            std::thread::spawn(
                move || while read_request(&mut stream) && stream.write_all(&ok(&page(9))).is_ok() {},
            );
        }
    });
    for workload in ["rr", "crr"] {
        let spec = Spec { sources: SOURCES.into(), ..client(workload, address, 9, 30) };
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (30, 0), "{:?}", done.causes);
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), SOURCES.into(), "{workload}");
    }
}

#[test]
fn datagrams_come_from_each_source_in_turn() {
    let socket = UdpSocket::bind(local()).unwrap();
    let address = socket.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let peers = seen.clone();
    std::thread::spawn(move || {
        let mut datagram = [0; 64];
        while let Ok((length, from)) = socket.recv_from(&mut datagram) {
            peers.lock().unwrap().insert(from.ip());
            let _ = socket.send_to(&datagram[..length], from);
        }
    });
    let mut spec = Spec { layer: Layer::Udp, sources: SOURCES.into(), ..tcp_client("rr", address, 64, 30) };
    spec.connections = 3;
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.total()), (30, 0), "{:?}", done.causes);
    assert_eq!(*seen.lock().unwrap(), SOURCES.into());
    let (own, trust) = good_certificates();
    let (_server, address) = Engine::serving(&h3_server(&own, 9));
    let spec = Spec { sources: SOURCES.into(), connections: 4, ..h3_client(&trust, address, 9, 20, 1) };
    assert_eq!(Engine::start(&spec).done().operations, 20);
}

#[test]
fn a_source_that_is_not_of_this_machine_is_refused() {
    for layer in ["http", "udp"] {
        let mut spec = Spec { layer: layer.parse().unwrap(), ..client("rr", local(), 9, 1) };
        (spec.sources, spec.size) = (vec!["192.0.2.77".parse().unwrap()], 9);
        let mut engine = Engine::start(&spec);
        let status = engine.wait().code();
        let text = if status == Some(0) { String::new() } else { engine.stderr() };
        assert!(
            status == Some(2) && text.contains("192.0.2.77 cannot be bound"),
            "{layer}: {status:?} {text}"
        );
    }
}

/// Several servers of one name, with the same port.
#[test]
fn connections_go_to_each_address_in_turn_and_are_counted() {
    for layer in ["http", "h2c", "websocket", "tcp"] {
        let layer = layer.parse::<Layer>().unwrap();
        let mut port = 0;
        let servers = [41, 42, 43].map(|last| {
            let listen = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), port));
            let serving = Engine::serving(&Spec { layer, listen: Some(listen), ..server(9) });
            port = serving.1.port();
            serving
        });
        let addresses = [0, 1, 2].map(|at: usize| servers[at].1);
        let workloads: &[_] = if layer == Layer::Http { &[("rr", 2), ("crr", 10)] } else { &[("rr", 2)] };
        for (workload, each) in workloads {
            let spec = client(workload, addresses[0], 9, 30);
            let mut spec = Spec { layer, further: addresses[1..].into(), connections: 6, size: 9, ..spec };
            let done = Engine::start(&spec).done();
            assert_eq!((done.operations, done.errors.total()), (30, 0), "{layer}: {:?}", done.causes);
            let all = addresses.map(|address| (address.to_string(), *each));
            assert_eq!(done.by_address, all.into(), "{layer} {workload}");
            spec.further = Vec::new();
            assert!(Engine::start(&spec).done().by_address.is_empty());
        }
    }
    let mut other = client("rr", local(), 9, 1);
    other.further = vec!["[::1]:80".parse().unwrap()];
    assert_eq!(Engine::start(&other).wait().code(), Some(2));
}

#[test]
fn a_stream_is_sent_no_faster_than_its_pace() {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = stream.write_all(&(bytes.len() as u64 - 8).to_le_bytes());
        bytes.len()
    });
    let mut spec = Spec::new(Role::Client, Layer::Tcp, Workload::Stream);
    (spec.connect, spec.size, spec.duration_ns) = (Some(address), 16_384, Some(Nanos(1_000_000_000)));
    let spec = with(with(spec, "direction", "client-writes"), "pace", "2000000");
    let done = Engine::start(&spec).done();
    assert_eq!(done.errors.total(), 0, "{:?}", done.causes);
    // What is in the socket's buffer when the time is over is sent behind it.
    let bytes = reader.join().unwrap();
    assert!((500_000..9_000_000).contains(&bytes), "{bytes} bytes in a second and a buffer");
}
