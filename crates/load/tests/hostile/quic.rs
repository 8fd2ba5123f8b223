//! Peers over QUIC that are hostile: a state machine of their own, with a socket.

use crate::Row;
use crate::common::{Engine, good_certificates};
use crate::quic_peer::{Peer, serving, trusting, turning};
use crate::subject::{MOST_MEMORY, Served, client, fails, result};
use bytes::Bytes;
use linerate_contract::{ErrorKind, Nanos, Spec, Tls};
use quinn_proto::{ClientConfig, Connection, Dir, StreamId, VarInt};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An attack; the peers that it returns stay while an honest client works.
type Attack = fn(SocketAddr, &ClientConfig) -> Vec<Peer>;

/// How long a server is there.
const PRESENT: Duration = Duration::from_secs(15);

/// The most memory of a server with 4,000 connections: the state of one in the libraries has 18 KiB.
const IDLE_MEMORY: u64 = 96 << 20;

/// Name, layers, attack, and the most memory of the server.
const CLIENTS: &[(&str, &[&str], Attack, u64)] = &[
    ("leave 256 heads unfinished, 20 of them", &["h3"], heads, MOST_MEMORY),
    ("begin 6,000 handshakes and go on with none", &["h3", "quic"], handshakes, MOST_MEMORY),
    ("are idle, 4,000 of them", &["h3", "quic"], idle, IDLE_MEMORY),
    ("begin streams with one direction without end", &["h3", "quic"], streams, MOST_MEMORY),
];

pub(crate) fn rows() -> Vec<Row> {
    let (identity, tls) = good_certificates();
    let mut rows = Vec::new();
    for (what, layers, attack, most) in CLIENTS {
        for layer in *layers {
            let (identity, tls) = (identity.clone(), tls.clone());
            let run = move || {
                let mut served = Served::start(layer, "rr", &identity);
                let held = attack(served.address, &trusting(&tls, layer));
                served.still_serves(&tls, *most);
                drop(held);
                served.still_serves(&tls, *most);
                served.has_given_back();
            };
            rows.push(Row::new(format!("{layer}: clients that {what}"), run));
        }
    }
    for layer in ["h3", "quic"] {
        let of_flood = (identity.clone(), tls.clone());
        let run = move || {
            let address = flooding(&of_flood.0, layer);
            let mut spec = client(layer, "rr", address, &of_flood.1);
            spec.timeout_ns = Nanos(3_000_000_000);
            result(&spec);
        };
        rows.push(Row::new(format!("{layer}: a server that fills streams of its own"), run));
        let of_streams = (identity.clone(), tls.clone());
        let run = move || {
            let address = turning(serving(&of_streams.0, layer), PRESENT, |connection, _| begin(connection));
            let spec = client(layer, "rr", address, &of_streams.1);
            fails(&Spec { timeout_ns: Nanos(2_000_000_000), ..spec }, &[ErrorKind::Timeout]);
        };
        rows.push(Row::new(format!("{layer}: a server that begins streams without end"), run));
        let (identity, tls) = (identity.clone(), tls.clone());
        let run = move || {
            let mut config = serving(&identity, layer);
            let transport = Arc::get_mut(&mut config.transport).unwrap();
            transport.max_idle_timeout(Some(VarInt::from_u32(50).into()));
            let spec = client(layer, "rr", turning(config, PRESENT, |_, _| {}), &tls);
            let done = Engine::start(&spec).done();
            let cause = done.causes.0.get(&ErrorKind::Reset).map(|cause| cause.text.as_str());
            assert!(cause.is_some_and(|text| text.contains("idle timeout")), "{:?}", done.causes);
            assert_eq!(done.errors.0.get(&ErrorKind::Timeout), None, "{:?}", done.errors);
        };
        rows.push(Row::new(format!("{layer}: a server with an idle timeout of 50 ms"), run));
    }
    rows
}

/// The first bytes of a frame of fields with 65,535 bytes, on as many streams as there may be.
fn heads(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let head = [&[1, 0x80, 0, 0xff, 0xff][..], &[0; 65_000]].concat();
    let mut sent = HashMap::<(usize, StreamId), usize>::new();
    let mut held = Vec::new();
    for number in 0..20 {
        let mut peer = Peer::new(None);
        peer.connect(to, config);
        peer.until_quiet(Duration::from_millis(200), |connection, _| {
            while let Some(id) = connection.streams().open(Dir::Bi) {
                sent.insert((number, id), 0);
            }
            for ((_, id), count) in sent.iter_mut().filter(|((of, _), _)| *of == number) {
                while let Ok(written @ 1..) = connection.send_stream(*id).write(&head[*count..]) {
                    *count += written;
                }
            }
        });
        held.push(peer);
    }
    held
}

/// From one socket; the responses are never read.
fn handshakes(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let mut peer = Peer::new(None);
    for number in 0..6_000 {
        peer.connect(to, config);
        peer.send();
        peer.connections.clear();
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    vec![peer]
}

/// All connected at the same time: 100 of each socket, so that none is silent for as long as the idle timeout
/// before the last one begins.
fn idle(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let peer = |_| {
        let mut peer = Peer::new(None);
        (0..100).for_each(|_| peer.connect(to, config));
        let begun = Instant::now();
        while peer.connections.values().any(Connection::is_handshaking) && begun.elapsed() < PRESENT {
            peer.turn(&mut |_, _| {});
        }
        peer.until_quiet(Duration::from_millis(30), |_, _| {});
        peer
    };
    let held: Vec<Peer> = (0..40).map(peer).collect();
    let connections = held.iter().flat_map(|peer| peer.connections.values());
    let open = connections.filter(|connection| !connection.is_handshaking() && !connection.is_closed());
    assert_eq!(open.count(), 4_000, "connections");
    held
}

/// A server that sends on streams of its own as much as it may.
fn flooding(identity: &Tls, layer: &str) -> SocketAddr {
    let (piece, mut streams) = (Bytes::from(vec![0; 1 << 20]), Vec::new());
    turning(serving(identity, layer), PRESENT, move |connection, _| {
        streams.extend(std::iter::from_fn(|| connection.streams().open(Dir::Bi)));
        for id in &streams {
            while connection.send_stream(*id).write_chunks(&mut [piece.clone()]).is_ok() {}
        }
    })
}

/// Streams of an unknown kind, as many at a time as there may be, for two seconds.
fn streams(to: SocketAddr, config: &ClientConfig) -> Vec<Peer> {
    let mut peer = Peer::new(None);
    peer.connect(to, config);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        peer.turn(&mut |connection, _| {
            if begun.elapsed() < Duration::from_secs(2) {
                begin(connection);
            }
        });
    }
    vec![peer]
}

/// Begins and ends all streams with one direction that there may be now; a type of 0x21 is reserved (RFC
/// 9114, section 6.2.3).
fn begin(connection: &mut Connection) {
    while let Some(id) = connection.streams().open(Dir::Uni) {
        let _ = connection.send_stream(id).write(&[0x21; 1_000]);
        let _ = connection.send_stream(id).finish();
    }
}
