//! Servers over a stream of bytes that are hostile to a client.

use crate::Row;
use crate::certified::server_config;
use crate::common::{good_certificates, local};
use crate::subject::{client, fails};
use linerate_contract::{ErrorKind, page};
use linerate_proto::websocket::upgrade;
use nix::sys::socket::{setsockopt, sockopt};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use ErrorKind::{
    ConnectTimeout, EmptyResponse, Malformed, Reset, Timeout, TlsFailed, Truncated, WrongContent,
    WrongLength, WrongStatus,
};

const ALL: &[&str] = &["http", "https", "tcp", "tls", "websocket", "wss"];
const HTTP: &[&str] = &["http", "https"];
const HTTPS: &[&str] = &["https"];
const TLS: &[&str] = &["https", "tls", "wss"];
const WEBSOCKET: &[&str] = &["websocket", "wss"];

/// A connection, with or without TLS.
pub(crate) trait Peer: Read + Write {
    fn socket(&self) -> &TcpStream;
}

impl Peer for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Peer for StreamOwned<ServerConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// The behaviour of a server once connected; with TLS after the handshake.
pub(crate) type Behaviour = fn(&mut dyn Peer);

/// Name, layers, behaviour, and the kinds of failure that are right.
const SERVERS: &[(&str, &[&str], Behaviour, &[ErrorKind])] = &[
    ("closes at once", ALL, |_| {}, &[EmptyResponse, Truncated, Reset]),
    ("resets the connection", ALL, reset, &[Reset, EmptyResponse, Truncated, TlsFailed]),
    ("never answers", ALL, |_| wait(), &[Timeout, ConnectTimeout]),
    (
        "sends garbage",
        ALL,
        |peer| send(peer, &garbage()),
        &[Malformed, WrongLength, WrongContent, EmptyResponse],
    ),
    (
        "sends garbage without end",
        ALL,
        |peer| flood(peer, &garbage()),
        &[Malformed, WrongLength, WrongContent],
    ),
    (
        "sends a byte each 20 ms",
        ALL,
        |peer| drip(peer, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"),
        &[Timeout, ConnectTimeout, WrongContent],
    ),
    ("has a head without end", HTTP, |peer| http(peer, "HTTP/1.1 200 OK\r\nX: ", "xxxxxxxx"), &[Malformed]),
    ("has headers without end", HTTP, |peer| http(peer, "HTTP/1.1 200 OK\r\n", "X: y\r\n"), &[Malformed]),
    ("has a body without end", HTTP, |peer| http(peer, "HTTP/1.1 200 OK\r\n\r\n", "abcd"), &[Timeout]),
    ("has interim responses without end", HTTP, |peer| http(peer, "", "HTTP/1.1 100 C\r\n\r\n"), &[Timeout]),
    (
        "has chunks without end",
        HTTP,
        |peer| http(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;x=y\r\na\r\n"),
        &[Timeout],
    ),
    (
        "has a chunk extension without end",
        HTTP,
        |peer| http(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "xxxx"),
        &[Malformed],
    ),
    (
        "answers with less than its length",
        HTTP,
        |peer| http(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", ""),
        &[Truncated],
    ),
    (
        "has a length that is no number",
        HTTP,
        |peer| http(peer, "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ""),
        &[Malformed],
    ),
    (
        "has a length of 2^64",
        HTTP,
        |peer| http(peer, "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", ""),
        &[Malformed],
    ),
    (
        "answers with status 000",
        HTTP,
        |peer| http(peer, "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", ""),
        &[Malformed],
    ),
    (
        "changes the protocol without a request for it",
        HTTP,
        |peer| http(peer, "HTTP/1.1 101 Switching Protocols\r\n\r\n", ""),
        &[WrongStatus],
    ),
    (
        "has a length beside chunks and an empty coding",
        HTTP,
        |peer| {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding:\r\n";
            http(peer, &format!("{head}Content-Length: 3\r\n\r\nabc"), "");
        },
        &[Malformed],
    ),
    (
        "has chunks and a length in HTTP/1.0",
        HTTP,
        |peer| {
            let head = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n";
            http(peer, &format!("{head}\r\n1\r\na\r\n0\r\n\r\n"), "");
        },
        &[Malformed],
    ),
    (
        "cuts a body without length",
        HTTPS,
        |peer| http(peer, "HTTP/1.1 200 OK\r\n\r\nthe first half", ""),
        &[Truncated],
    ),
    ("accepts with another key", WEBSOCKET, |peer| send(peer, &upgrade_with([9; 16])), &[Malformed]),
    (
        "upgrades with a head without end",
        WEBSOCKET,
        |peer| http(peer, "HTTP/1.1 101 Switching Protocols\r\nX: ", "xxxxxxxx"),
        &[Malformed],
    ),
    ("echoes without the end of the message", WEBSOCKET, |peer| frames(peer, &echo(0x02), b""), &[Timeout]),
    ("echoes text for binary", WEBSOCKET, |peer| frames(peer, &echo(0x81), b""), &[Malformed]),
    ("sends a masked frame", WEBSOCKET, |peer| frames(peer, &[0x82, 0x81, 0, 0, 0, 0, 1], b""), &[Malformed]),
    (
        "announces a message above the limit",
        WEBSOCKET,
        |peer| frames(peer, &[0x82, 127, 0, 0, 0, 0, 0xff, 0, 0, 0], b""),
        &[Malformed],
    ),
    (
        "sends pings without end",
        WEBSOCKET,
        |peer| frames(peer, b"", &[&[0x89, 125][..], &[0; 125]].concat().repeat(100)),
        &[Timeout],
    ),
    (
        "sends empty fragments without end",
        WEBSOCKET,
        |peer| frames(peer, &[0x02, 0], &[0x00, 0].repeat(10_000)),
        &[Timeout],
    ),
];

/// Behaviours of a server that has TLS and does them in place of the handshake.
const BEFORE_TLS: &[(&str, Behaviour, &[ErrorKind])] = &[
    ("closes before the handshake", |_| {}, &[TlsFailed, EmptyResponse, Reset]),
    ("never begins the handshake", |_| wait(), &[Timeout, ConnectTimeout]),
    ("has garbage for a handshake", |peer| flood(peer, &garbage()), &[TlsFailed]),
    (
        "sends a byte of the handshake each 20 ms",
        |peer| drip(peer, &[22, 3, 3, 64, 0, 2]),
        &[Timeout, ConnectTimeout],
    ),
];

pub(crate) fn rows() -> Vec<Row> {
    let (identity, tls) = good_certificates();
    let config = server_config(&identity);
    let mut rows = Vec::new();
    let mut add = |layer: &'static str, what: &str, config: Option<Arc<ServerConfig>>, behave, kinds| {
        let tls = tls.clone();
        let run = move || fails(&client(layer, "rr", serve(config.clone(), behave), &tls), kinds);
        rows.push(Row::new(format!("{layer}: a server that {what}"), run));
    };
    for (what, layers, behave, kinds) in SERVERS {
        for layer in *layers {
            add(layer, what, TLS.contains(layer).then(|| config.clone()), *behave, *kinds);
        }
    }
    for (what, behave, kinds) in BEFORE_TLS {
        for layer in TLS {
            add(layer, what, None, *behave, *kinds);
        }
    }
    rows
}

/// A server with a thread for each connection.
pub(crate) fn serve(config: Option<Arc<ServerConfig>>, behave: Behaviour) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || {
                let Some(config) = config else { return behave(&mut stream) };
                let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                while tls.conn.is_handshaking() {
                    if tls.conn.complete_io(&mut tls.sock).is_err() {
                        return;
                    }
                }
                behave(&mut tls);
            });
        }
    });
    address
}

/// Longer than any timeout of a row.
pub(crate) fn wait() {
    std::thread::sleep(Duration::from_secs(3));
}

fn garbage() -> Vec<u8> {
    (0..20_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Sends after the request, and waits for the client's end.
fn send(peer: &mut dyn Peer, bytes: &[u8]) {
    let _ = peer.read(&mut [0; 4_096]);
    let _ = peer.write_all(bytes).and_then(|()| peer.flush());
    let _ = peer.socket().set_read_timeout(Some(Duration::from_secs(3)));
    let _ = peer.read(&mut [0; 4_096]);
}

fn flood(peer: &mut dyn Peer, bytes: &[u8]) {
    let _ = peer.read(&mut [0; 4_096]);
    while peer.write_all(bytes).is_ok() {}
}

fn drip(peer: &mut dyn Peer, bytes: &[u8]) {
    let _ = peer.socket().set_nodelay(true);
    for byte in bytes {
        if peer.write_all(&[*byte]).and_then(|()| peer.flush()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    wait();
}

fn reset(peer: &mut dyn Peer) {
    let _ = peer.read(&mut [0; 16]);
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = setsockopt(peer.socket(), sockopt::Linger, &linger);
}

/// Reads the request's head, answers, repeats `again` until the client has gone; without it, closes.
fn http(peer: &mut dyn Peer, response: &str, again: &str) {
    head(peer);
    let _ = peer.write_all(response.as_bytes()).and_then(|()| peer.flush());
    let again = again.repeat(10_000);
    while !again.is_empty() && peer.write_all(again.as_bytes()).is_ok() {}
}

fn head(peer: &mut dyn Peer) -> Vec<u8> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && matches!(peer.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    head
}

fn upgrade_with(nonce: [u8; 16]) -> Vec<u8> {
    upgrade::respond(&upgrade::request("other", "/", nonce, &[]).unwrap()).unwrap_or_default()
}

/// Upgrades, takes the client's message, sends `first`, and `again` until the client has gone.
fn frames(peer: &mut dyn Peer, first: &[u8], again: &[u8]) {
    let response = upgrade::respond(&head(peer)).unwrap_or_default();
    let _ = peer.write_all(&response).and_then(|()| peer.flush());
    let _ = peer.read_exact(&mut [0; 1_008]);
    let _ = peer.write_all(first).and_then(|()| peer.flush());
    if again.is_empty() {
        return wait();
    }
    while peer.write_all(again).is_ok() {}
}

/// A frame with the message of the client; `head`: its first byte.
fn echo(head: u8) -> Vec<u8> {
    [&[head, 126, 3, 0xe8][..], &page(1_000)].concat()
}
