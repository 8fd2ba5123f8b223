//! Clients over HTTP/2 that are hostile to a server.

use crate::Row;
use crate::clients::{Attack, Held, attacked_by_many, many};
use crate::common::good_certificates;
use crate::subject::MOST_MEMORY;
use linerate_contract::Tls;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Connections at the same time.
const MANY: u64 = 4_000;

/// Over TLS a handshake takes long without optimisation; the bounds are those of as many connections.
const MANY_OVER_TLS: usize = 1_000;

const CLIENTS: &[(&str, Attack)] = &[
    ("leave a block of fields unfinished, 4,000 of them", blocks),
    ("leave a frame unfinished, 4,000 of them", frames),
    ("ping and read nothing, 4,000 of them", pings),
    ("are refused streams and read nothing, 4,000 of them", refusals),
    ("ask on 256 streams and read nothing, 4,000 of them", requests),
    ("fill the table of fields, 4,000 of them", tables),
];

/// Bytes behind the settings of a client.
type Sent = fn() -> Vec<u8>;

/// Attacks over TLS.
const OVER_TLS: &[(&str, Sent)] =
    &[("leave a block of fields unfinished", block), ("ping and read nothing", ping), ("are idle", Vec::new)];

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for layer in ["h2c", "grpc"] {
        for (what, attack) in CLIENTS {
            let run = move || {
                attacked_by_many(layer, &Tls::default(), &Tls::default(), *attack, MOST_MEMORY);
            };
            rows.push(Row::new(format!("{layer}: clients that {what}"), run));
        }
    }
    let run = || attacked_by_many("h2c", &Tls::default(), &Tls::default(), idle, MOST_MEMORY);
    rows.push(Row::new("h2c: clients that are idle, 15,000 of them".into(), run));
    let (identity, tls) = good_certificates();
    for (what, bytes) in OVER_TLS {
        let (identity, tls) = (identity.clone(), tls.clone());
        let run = move || {
            let attack = |to| many_over_tls(to, &tls, &begun(&bytes()));
            attacked_by_many("h2", &identity, &tls, attack, MOST_MEMORY);
        };
        rows.push(Row::new(format!("h2: clients that {what}, {MANY_OVER_TLS} of them"), run));
    }
    rows
}

/// The preface and empty settings of a client, and what follows.
fn begun(frames: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, &[])[..], frames].concat()
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// Nearly 64 KiB in HEADERS and three CONTINUATION frames.
fn blocks(to: SocketAddr) -> Held {
    many(to, MANY, &begun(&block()))
}

fn block() -> Vec<u8> {
    let part = [0; 16_000];
    [frame(1, 0, 1, &part), frame(9, 0, 1, &part).repeat(3)].concat()
}

/// As many as there may be.
fn idle(to: SocketAddr) -> Held {
    many(to, 15_000, &begun(&[]))
}

fn frames(to: SocketAddr) -> Held {
    let whole = frame(1, 4, 1, &[0; 16_384]);
    many(to, MANY, &begun(&whole[..16_300]))
}

fn pings(to: SocketAddr) -> Held {
    many(to, MANY, &begun(&ping()))
}

fn ping() -> Vec<u8> {
    frame(6, 0, 0, &[0; 8]).repeat(900)
}

/// Fields without a method, so that each stream is ended.
fn refusals(to: SocketAddr) -> Held {
    let streams: Vec<u8> = (0..4_000).flat_map(|number| frame(1, 5, 2 * number + 1, &[0x84])).collect();
    many(to, MANY, &begun(&streams))
}

/// GET / over http, on as many streams as there may be.
fn requests(to: SocketAddr) -> Held {
    let streams: Vec<u8> =
        (0..256).flat_map(|number| frame(1, 5, 2 * number + 1, &[0x82, 0x84, 0x86])).collect();
    many(to, MANY, &begun(&streams))
}

/// Fields of 4 KiB that the server is to keep.
fn tables(to: SocketAddr) -> Held {
    let field = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4_000]].concat();
    many(to, MANY, &begun(&frame(1, 5, 1, &[&[0x82, 0x84, 0x86][..], &field].concat())))
}

/// Connections with a whole handshake and these bytes.
fn many_over_tls(to: SocketAddr, tls: &Tls, bytes: &[u8]) -> Held {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(tls.authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    let name = ServerName::try_from("linerate.test").unwrap();
    let connected = |_| {
        let socket = TcpStream::connect(to).ok()?;
        let mut stream =
            StreamOwned::new(ClientConnection::new(config.clone(), name.clone()).unwrap(), socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        stream.sock.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        let _ = stream.write_all(bytes);
        Some(stream.sock)
    };
    (0..MANY_OVER_TLS).map_while(connected).collect()
}
