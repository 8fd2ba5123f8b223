//! Clients over a stream of bytes that are hostile to a server.

use crate::Row;
use crate::common::{good_certificates, read_request};
use crate::subject::{MOST_MEMORY, Served};
use linerate_contract::Tls;
use linerate_proto::websocket::upgrade;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ALL: &[&str] = &["http", "https", "tcp", "tls", "websocket", "wss"];
const TLS: &[&str] = &["https", "tls", "wss"];
const PLAIN: &[&str] = &["http", "tcp", "websocket"];

/// Connections of an attack that stay while an honest client works.
pub(crate) type Held = Vec<TcpStream>;
pub(crate) type Attack = fn(SocketAddr) -> Held;

/// Name, layers, workload, attack, and the most memory of the server.
const CLIENTS: &[(&str, &[&str], &str, Attack, u64)] = &[
    ("send garbage and close", ALL, "rr", garbage, MOST_MEMORY),
    ("reset their connections", ALL, "rr", resets, MOST_MEMORY),
    ("say nothing, 300 of them", ALL, "rr", |to| (0..300).map(|_| connect(to)).collect(), MOST_MEMORY),
    ("send one byte each, 300 of them", ALL, "rr", one_byte, MOST_MEMORY),
    ("close their sending side", ALL, "rr", half_closed, MOST_MEMORY),
    ("send without end and read nothing", PLAIN, "rr", |to| never_read(to, &[b'G'; 4_096]), MOST_MEMORY),
    ("ask without end and read nothing", &["http"], "rr", |to| never_read(to, REQUEST), MOST_MEMORY),
    ("have heads without end, 20 of them", &["http", "websocket"], "rr", heads, MOST_MEMORY),
    ("ask for a body without end", &["http"], "rr", bodies, MOST_MEMORY),
    ("leave 200 messages of 16 MiB unfinished", &["websocket"], "rr", unfinished, MOST_MEMORY),
    ("had messages of 16 MiB and are idle, 8 of them", &["websocket"], "rr", idle, MOST_MEMORY),
    ("send pings and read nothing", &["websocket"], "rr", pings, MOST_MEMORY),
    ("send frames that are none", &["websocket"], "rr", broken_frames, MOST_MEMORY),
    ("begin transfers of 2^64 bytes", &["tcp", "tls"], "stream", transfers, MOST_MEMORY),
];

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
/// The header of a handshake record, and the start of a ClientHello of 508 bytes.
const HALF_OF_A_HELLO: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 7, 7, 7];

pub(crate) fn rows() -> Vec<Row> {
    let (identity, tls) = good_certificates();
    let mut rows = Vec::new();
    for (what, layers, workload, attack, most) in CLIENTS {
        for layer in *layers {
            let (identity, tls) = (identity.clone(), tls.clone());
            let run = move || attacked(layer, workload, &identity, &tls, *attack, *most);
            rows.push(Row::new(format!("{layer}: clients that {what}"), run));
        }
    }
    let run = {
        let (identity, tls) = (identity.clone(), tls.clone());
        move || attacked_by_many("tls", &identity, &tls, half_open, 256 << 20)
    };
    rows.push(Row::new("tls: clients that leave 19,000 handshakes half open".into(), run));
    for layer in TLS {
        let (identity, tls) = (identity.clone(), tls.clone());
        let run = move || attacked(layer, "rr", &identity, &tls, half_hellos, MOST_MEMORY);
        rows.push(Row::new(format!("{layer}: clients that send half of a handshake"), run));
    }
    rows
}

/// Rows with thousands of connections take turns: this process has their descriptors, too.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn attacked_by_many(
    layer: &str,
    identity: &Tls,
    tls: &Tls,
    attack: impl Fn(SocketAddr) -> Held,
    most: u64,
) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    attacked(layer, "rr", identity, tls, attack, most);
}

fn attacked(
    layer: &str,
    workload: &str,
    identity: &Tls,
    tls: &Tls,
    attack: impl Fn(SocketAddr) -> Held,
    most: u64,
) {
    let mut served = Served::start(layer, workload, identity);
    let held = attack(served.address);
    served.still_serves(tls, most);
    drop(held);
    served.still_serves(tls, most);
    served.has_given_back();
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    stream
}

fn sending(to: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = connect(to);
    let _ = stream.write_all(bytes);
    stream
}

fn garbage(to: SocketAddr) -> Held {
    for number in 0..100_u32 {
        let bytes: Vec<u8> = (0..3_000).map(|at| (number.wrapping_mul(at) >> 3) as u8).collect();
        let start = upgrade::request("test", "/", [1; 16], &[]).unwrap();
        let cut = start.len() * (number % 10) as usize / 9;
        drop(sending(to, &[&start[..cut], &bytes[..(31 * number) as usize % 3_000]].concat()));
    }
    Held::new()
}

fn resets(to: SocketAddr) -> Held {
    for _ in 0..200 {
        let stream = sending(to, REQUEST);
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream, sockopt::Linger, &linger).unwrap();
    }
    Held::new()
}

fn one_byte(to: SocketAddr) -> Held {
    (0..300).map(|_| sending(to, b"G")).collect()
}

fn half_closed(to: SocketAddr) -> Held {
    let streams: Held = (0..50).map(|_| sending(to, b"GET")).collect();
    streams.iter().for_each(|stream| stream.shutdown(std::net::Shutdown::Write).unwrap());
    streams
}

/// Three connections, until the server reads no more either.
fn never_read(to: SocketAddr, bytes: &[u8]) -> Held {
    let mut streams: Held = (0..3).map(|_| connect(to)).collect();
    for stream in &mut streams {
        while stream.write_all(&bytes.repeat(100)).is_ok() {}
    }
    streams
}

fn heads(to: SocketAddr) -> Held {
    let head = b"GET / HTTP/1.1\r\nX: ".to_vec();
    (0..20).map(|_| sending(to, &[head.clone(), vec![b'x'; 200_000]].concat())).collect()
}

fn bodies(to: SocketAddr) -> Held {
    let head = b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999\r\n\r\n".to_vec();
    (0..20).map(|_| sending(to, &[head.clone(), vec![b'x'; 1_000_000]].concat())).collect()
}

fn upgraded(to: SocketAddr) -> TcpStream {
    let mut stream = sending(to, &upgrade::request("test", "/", [1; 16], &[]).unwrap());
    assert!(read_request(&mut stream));
    // Without optimisation, a message of 16 MiB takes a second.
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The head of a masked binary message of 16 MiB; the mask is 0.
const LONGEST: &[u8] = &[0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

fn unfinished(to: SocketAddr) -> Held {
    let piece = vec![0; 1 << 20];
    let mut streams: Held = (0..200).map(|_| upgraded(to)).collect();
    for stream in &mut streams {
        // The server closes those for which it has no room.
        let _ = stream.write_all(LONGEST);
        (0..15).all(|_| stream.write_all(&piece).is_ok());
    }
    streams
}

fn idle(to: SocketAddr) -> Held {
    let message = [LONGEST, &vec![0; 16 << 20]].concat();
    let whole = |_| {
        let mut stream = upgraded(to);
        let mut writer = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| writer.write_all(&message).unwrap());
            stream.read_exact(&mut vec![0; 10 + (16 << 20)]).unwrap();
        });
        stream
    };
    (0..8).map(whole).collect()
}

fn pings(to: SocketAddr) -> Held {
    let mut stream = upgraded(to);
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let ping = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[0; 125]].concat().repeat(300);
    while stream.write_all(&ping).is_ok() {}
    vec![stream]
}

fn broken_frames(to: SocketAddr) -> Held {
    let frames: [&[u8]; 6] = [
        &[0x82, 0x05, 1, 2, 3, 4, 5],                         // without a mask
        &[0x80, 0x81, 0, 0, 0, 0, 1],                         // a continuation of nothing
        &[0xf2, 0x81, 0, 0, 0, 0, 1],                         // reserved bits
        &[0x89, 0xfe, 0, 126, 0, 0, 0, 0],                    // a long ping
        &[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // a length of 64 bits
        &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff],                // text that is none
    ];
    for frame in frames {
        let mut stream = upgraded(to);
        stream.write_all(frame).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        assert_eq!(response.first(), Some(&0x88), "a close frame");
    }
    Held::new()
}

fn half_hellos(to: SocketAddr) -> Held {
    (0..100).map(|_| sending(to, HALF_OF_A_HELLO)).collect()
}

/// As many as this process and the server have descriptors for, which have the same limit.
fn half_open(to: SocketAddr) -> Held {
    many(to, 19_000, HALF_OF_A_HELLO)
}

/// Up to `most` connections, each with these first bytes.
pub(crate) fn many(to: SocketAddr, most: u64, bytes: &[u8]) -> Held {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    // The other rows have theirs at the same time.
    let count = hard.saturating_sub(2_000).min(most);
    (0..count)
        .map_while(|_| TcpStream::connect(to).ok())
        .map(|mut stream| {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(20)));
            let _ = stream.write_all(bytes);
            stream
        })
        .collect()
}

fn transfers(to: SocketAddr) -> Held {
    (0..20).map(|_| sending(to, &[&[0xff; 8][..], &[b'x'; 100_000]].concat())).collect()
}
