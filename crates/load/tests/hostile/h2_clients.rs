//! Clients over HTTP/2 that are hostile to a server.

use crate::Row;
use crate::clients::{Attack, Held, attacked_by_many, many};
use crate::subject::MOST_MEMORY;
use linerate_contract::Tls;
use std::net::SocketAddr;

/// Connections at the same time.
const MANY: u64 = 4_000;

const CLIENTS: &[(&str, Attack)] = &[
    ("leave a block of fields unfinished, 4,000 of them", blocks),
    ("leave a frame unfinished, 4,000 of them", frames),
    ("ping and read nothing, 4,000 of them", pings),
    ("are refused streams and read nothing, 4,000 of them", refusals),
    ("ask on 256 streams and read nothing, 4,000 of them", requests),
    ("fill the table of fields, 4,000 of them", tables),
];

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
    rows
}

/// The preface and empty settings of a client, and what follows.
fn begun(frames: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, &[])[..], frames].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// Nearly 64 KiB in HEADERS and three CONTINUATION frames.
fn blocks(to: SocketAddr) -> Held {
    let part = [0; 16_000];
    let next = frame(9, 0, 1, &part);
    many(to, MANY, &begun(&[frame(1, 0, 1, &part), next.repeat(3)].concat()))
}

fn frames(to: SocketAddr) -> Held {
    let whole = frame(1, 4, 1, &[0; 16_384]);
    many(to, MANY, &begun(&whole[..16_300]))
}

fn pings(to: SocketAddr) -> Held {
    many(to, MANY, &begun(&frame(6, 0, 0, &[0; 8]).repeat(900)))
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
