//! Servers of HTTP/2 that are hostile to a client: with prior knowledge, over TLS, and as servers of gRPC.

use crate::Row;
use crate::certified::server_config;
use crate::common::good_certificates;
use crate::h2_clients::frame;
use crate::servers::{Behaviour, Peer, serve, wait};
use crate::subject::{client, fails};
use linerate_contract::ErrorKind::{
    self, ConnectTimeout, EmptyResponse, Malformed, Reset, Timeout, Truncated,
};
use linerate_contract::Request;
use rustls::ServerConfig;
use std::sync::Arc;

const LAYERS: [&str; 3] = ["h2c", "h2", "grpc"];

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 77;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Fields of 16,000 bytes: 4,000 times the status 200.
const FIELDS: [u8; 16_000] = [0x88; 16_000];

/// Name, behaviour, and the kinds of failure that are right.
const SERVERS: &[(&str, Behaviour, &[ErrorKind])] = &[
    ("never sends its settings", |_| wait(), &[Timeout, ConnectTimeout]),
    ("lets no stream begin", |peer| begin(peer, &[0, 3, 0, 0, 0, 0]), &[Timeout, ConnectTimeout]),
    ("sends settings without end", |peer| flood(peer, &[], &frame(SETTINGS, 0, 0, &[])), &[Malformed]),
    ("sends large settings without end", |peer| flood(peer, &[], &large_settings()), &[Malformed, Timeout]),
    ("sends pings without end", |peer| flood(peer, &[], &frame(PING, 0, 0, &[0; 8])), &[Malformed]),
    ("sends priorities without end", |peer| flood(peer, &[], &frame(2, 0, 1, &[0; 5])), &[Malformed]),
    (
        "sends unknown frames without end",
        |peer| flood(peer, &[], &frame(UNKNOWN, 0, 0, &[0; 99])),
        &[Malformed],
    ),
    (
        "widens windows without end",
        |peer| flood(peer, &[], &frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        &[Malformed],
    ),
    (
        "widens a window beyond the largest",
        |peer| flood(peer, &[], &frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        &[Malformed],
    ),
    (
        "has fields without end",
        |peer| flood(peer, &frame(HEADERS, 0, 1, &FIELDS), &frame(CONTINUATION, 0, 1, &FIELDS)),
        &[Malformed],
    ),
    (
        "has empty parts of fields without end",
        |peer| flood(peer, &frame(HEADERS, 0, 1, &[0x88]), &frame(CONTINUATION, 0, 1, &[])),
        &[Malformed],
    ),
    (
        "has a short block with long fields",
        |peer| flood(peer, &frame(HEADERS, END_HEADERS, 1, &long_fields()), &[]),
        &[Malformed],
    ),
    (
        "changes the table of fields without end",
        |peer| flood(peer, &[], &frame(HEADERS, END_HEADERS, 1, &interim_with_a_new_field())),
        &[Timeout],
    ),
    (
        "has trailers without end",
        |peer| {
            let head = [frame(HEADERS, END_HEADERS, 1, &[0x88]), frame(HEADERS, END_STREAM, 1, &FIELDS)];
            flood(peer, &head.concat(), &frame(CONTINUATION, 0, 1, &FIELDS));
        },
        &[Malformed],
    ),
    (
        "has trailers that end no stream",
        |peer| {
            let part = frame(HEADERS, END_HEADERS, 1, &[0x88]);
            flood(peer, &part, &frame(HEADERS, END_HEADERS, 1, b"\0\x01x\x01y"));
        },
        &[Malformed, Timeout],
    ),
    (
        "has a body without end",
        |peer| flood(peer, &frame(HEADERS, END_HEADERS, 1, &[0x88]), &frame(DATA, 0, 1, &[0; 16_000])),
        &[Timeout],
    ),
    (
        "has empty data without end",
        |peer| flood(peer, &frame(HEADERS, END_HEADERS, 1, &[0x88]), &frame(DATA, 0, 1, &[])),
        &[Malformed],
    ),
    (
        "has padding without end",
        |peer| {
            let padded = frame(DATA, 8, 1, &[&[255][..], &[0; 255]].concat());
            flood(peer, &frame(HEADERS, END_HEADERS, 1, &[0x88]), &padded);
        },
        &[Timeout, Malformed],
    ),
    (
        "cuts a body",
        |peer| flood(peer, &[frame(HEADERS, END_HEADERS, 1, &[0x88]), frame(DATA, 0, 1, b"x")].concat(), &[]),
        &[Truncated, Reset],
    ),
    (
        "has a frame above the limit",
        |peer| flood(peer, &[1, 0, 0, 0, 0, 0, 0, 0, 1], &[0; 4_096]),
        &[Malformed],
    ),
    (
        "begins streams of its own",
        |peer| flood(peer, &[], &frame(HEADERS, END_HEADERS | END_STREAM, 2, &[0x88])),
        &[Malformed],
    ),
    (
        "pushes",
        |peer| flood(peer, &[], &frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82, 0x84, 0x86])),
        &[Malformed],
    ),
    (
        "resets a stream without end",
        |peer| flood(peer, &[], &frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        &[Reset, Malformed],
    ),
    ("resets each stream", |peer| answer(peer, |stream| frame(RST_STREAM, 0, stream, &[0; 4])), &[Reset]),
    ("says goodbye to each connection", |peer| flood(peer, &goodbye(0), &[]), &[EmptyResponse]),
    ("says goodbye without end", |peer| flood(peer, &[], &goodbye(0x7fff_ffff)), &[Malformed, EmptyResponse]),
    (
        "says goodbye to all but the first stream, and no more",
        |peer| {
            flood(peer, &goodbye(1), &[]);
            wait();
        },
        &[Timeout, EmptyResponse],
    ),
];

pub(crate) fn rows() -> Vec<Row> {
    let (identity, tls) = good_certificates();
    let mut config = ServerConfig::clone(&server_config(&identity));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);
    let mut rows = Vec::new();
    for layer in LAYERS {
        let of_layer = (layer == "h2").then(|| config.clone());
        for (what, behave, kinds) in SERVERS {
            let (config, tls) = (of_layer.clone(), tls.clone());
            let run = move || {
                let mut spec = client(layer, "rr", serve(config.clone(), *behave), &tls);
                // Twice as many as may be under way.
                (spec.operations, spec.connections) = (Some(20), 1);
                spec.set_option("streams", 10);
                fails(&spec, kinds);
            };
            rows.push(Row::new(format!("{layer}: a server that {what}"), run));
        }
        let (config, tls) = (of_layer, tls.clone());
        let run = move || {
            let no_window: Behaviour = |peer| begin(peer, &[0, 4, 0, 0, 0, 0]);
            let mut spec = client(layer, "rr", serve(config.clone(), no_window), &tls);
            // Of a call in Base64.
            let body = b"Ym9keQ==".to_vec().into();
            spec.request = Some(Request { body, ..Request::default() });
            fails(&spec, &[Timeout]);
        };
        rows.push(Row::new(format!("{layer}: a server that has a window of zero"), run));
    }
    rows
}

/// Sends these settings, and nothing more.
fn begin(peer: &mut dyn Peer, settings: &[u8]) {
    let _ = peer.write_all(&frame(SETTINGS, 0, 0, settings)).and_then(|()| peer.flush());
    wait();
}

/// Sends settings, reads until the first request, and sends `first`, and `again` until the client has gone.
fn flood(peer: &mut dyn Peer, first: &[u8], again: &[u8]) {
    if request(peer, true).is_none() {
        return;
    }
    let _ = peer.write_all(first).and_then(|()| peer.flush());
    let again = again.repeat(100_000_usize.div_ceil(again.len().max(1)).min(10_000));
    while !again.is_empty() && peer.write_all(&again).is_ok() {}
}

/// Responds to each request.
fn answer(peer: &mut dyn Peer, response: fn(u32) -> Vec<u8>) {
    let mut is_first = true;
    while let Some(stream) = request(peer, std::mem::take(&mut is_first)) {
        if peer.write_all(&response(stream)).and_then(|()| peer.flush()).is_err() {
            return;
        }
    }
}

/// Reads until the next request and returns its stream; at first with the prefaces of both ends.
fn request(peer: &mut dyn Peer, is_first: bool) -> Option<u32> {
    if is_first {
        peer.read_exact(&mut [0; 24]).ok()?;
        peer.write_all(&frame(SETTINGS, 0, 0, &[])).and_then(|()| peer.flush()).ok()?;
    }
    loop {
        let mut head = [0; 9];
        peer.read_exact(&mut head).ok()?;
        let [a, b, c, kind, _, stream @ ..] = head;
        peer.read_exact(&mut vec![0; u32::from_be_bytes([0, a, b, c]) as usize]).ok()?;
        if kind == HEADERS {
            return Some(u32::from_be_bytes(stream));
        }
    }
}

fn goodbye(last: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// Settings that change the windows of all streams, 2,000 times.
fn large_settings() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[[0, 4, 0, 0, 0, 9], [0, 4, 0, 0, 0, 8]].concat().repeat(1_000))
}

/// One field of 4,000 bytes for the table, and 1,000 times the same by its number.
fn long_fields() -> Vec<u8> {
    [&[0x88, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4_000], &[0xbe; 1_000]].concat()
}

/// Status 103, a table of 0 and then of 4,096 bytes, and a field that fills it.
fn interim_with_a_new_field() -> Vec<u8> {
    let sizes = [0x20, 0x3f, 0xe1, 0x1f];
    [&sizes[..], &[8, 3, b'1', b'0', b'3', 0x40, 1, b'x', 0x7f, 0xa1, 0x1e], &[b'y'; 4_000]].concat()
}
