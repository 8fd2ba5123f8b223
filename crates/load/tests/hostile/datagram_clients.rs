//! Clients of datagrams that are hostile to a server.

use crate::Row;
use crate::common::local;
use crate::subject::{MOST_MEMORY, Served};
use linerate_contract::Tls;
use linerate_contract::datagram::Datagram;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

type Attack = fn(SocketAddr);

const CLIENTS: &[(&str, &str, &str, Attack)] = &[
    ("udp", "stream", "send garbage", garbage),
    ("udp", "rr", "send garbage", garbage),
    ("kcp", "stream", "send garbage", garbage),
    ("udp", "stream", "open 10,000 flows", flows),
    ("kcp", "stream", "send segments above the MTU in 60 conversations of one socket", large),
    ("kcp", "stream", "open 2,000 conversations of one socket", conversations),
    ("kcp", "stream", "scatter segments over 1,000 sessions", scattered),
];

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (layer, workload, what, attack) in CLIENTS {
        let run = move || {
            let mut served = Served::start(layer, workload, &Tls::default());
            attack(served.address);
            served.still_serves(&Tls::default(), MOST_MEMORY);
        };
        rows.push(Row::new(format!("{layer} {workload}: clients that {what}"), run));
    }
    for (layer, workload) in [("udp", "stream"), ("udp", "rr"), ("kcp", "stream")] {
        let run = move || no_response_to_itself(layer, workload);
        rows.push(Row::new(format!("{layer} {workload}: a client with the address of the server"), run));
    }
    rows
}

fn garbage(to: SocketAddr) {
    let stranger = UdpSocket::bind(local()).unwrap();
    for length in [0, 1, 7, 8, 16, 23, 24, 25, 64, 1_000, 1_472, 60_000] {
        for byte in [0, 0x51, 0xff] {
            stranger.send_to(&vec![byte; length], to).unwrap();
        }
    }
}

fn flows(to: SocketAddr) {
    for _ in 0..10_000 {
        let stranger = UdpSocket::bind(local()).unwrap();
        stranger.send_to(&Datagram::Hello.to_bytes(), to).unwrap();
    }
    // The server has taken them all.
    std::thread::sleep(Duration::from_millis(300));
    drained(to);
}

/// Sends until a response shows that the server has handled what came before.
fn drained(to: SocketAddr) {
    let probe = UdpSocket::bind(local()).unwrap();
    probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let probing = || {
        let _ = probe.send_to(&Datagram::End { sent: 0 }.to_bytes(), to);
        probe.recv(&mut [0; 100]).is_ok()
    };
    let _ = (0..10).any(|_| probing());
}

fn segment(conv: u32, number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; 24 + length];
    bytes[..4].copy_from_slice(&conv.to_le_bytes());
    bytes[4] = 81;
    bytes[12..16].copy_from_slice(&number.to_le_bytes());
    bytes[20..24].copy_from_slice(&(length as u32).to_le_bytes());
    bytes
}

fn large(to: SocketAddr) {
    let stranger = UdpSocket::bind(local()).unwrap();
    for conv in 1..=60 {
        for number in 1..200 {
            stranger.send_to(&segment(conv, number, 60_000), to).unwrap();
        }
    }
}

fn conversations(to: SocketAddr) {
    let stranger = UdpSocket::bind(local()).unwrap();
    for conv in 1..=2_000 {
        stranger.send_to(&segment(conv, 0, 100), to).unwrap();
        if conv % 50 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Each socket has eight sessions; every segment waits for the first, which never comes.
fn scattered(to: SocketAddr) {
    let sockets: Vec<_> = (0..125).map(|_| UdpSocket::bind(local()).unwrap()).collect();
    for number in 1..60 {
        for socket in &sockets {
            for conv in 1..=8 {
                socket.send_to(&segment(conv, number, 1_300), to).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One datagram with a forged source must not keep a server busy.
fn no_response_to_itself(layer: &str, workload: &str) {
    let mut served = Served::start(layer, workload, &Tls::default());
    let port = served.address.port();
    let Ok(raw) = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Udp) else {
        return println!("skipped: no raw socket without a namespace");
    };
    let body = if layer == "kcp" { segment(1, 0, 100) } else { Datagram::Hello.to_bytes() };
    let header = [port, port, 8 + body.len() as u16, 0].map(u16::to_be_bytes).concat();
    let to = SockaddrIn::new(127, 0, 0, 1, 0);
    sendto(raw.as_raw_fd(), &[header, body].concat(), &to, MsgFlags::empty()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let before = served.cpu();
    std::thread::sleep(Duration::from_secs(1));
    assert!(served.cpu() - before < 0.3, "{} s of CPU time in a second", served.cpu() - before);
    served.still_serves(&Tls::default(), MOST_MEMORY);
}
