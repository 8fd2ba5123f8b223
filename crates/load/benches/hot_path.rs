//! The engine's own cost per operation, in nanoseconds: parsing a response, verifying its content, recording
//! its latency, reading the clock. The rest of an operation is in the kernel.

#![allow(missing_docs, reason = "criterion's macros make a public function")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use linerate_contract::{Recorder, crc32, page};
use linerate_load::clock;
use linerate_proto::http::response::{LastHead, Parser, ParserState};
use std::hint::black_box;

/// The head of nginx 1.22.
const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 21:10:21 GMT\r\n\
    Content-Type: text/plain\r\nContent-Length: 4096\r\nLast-Modified: Sat, 21 Nov 2026 21:10:20 GMT\r\n\
    Connection: keep-alive\r\nETag: \"6b0208bc-1000\"\r\nAccept-Ranges: bytes\r\n\r\n";

fn parser(c: &mut Criterion) {
    let body = page(4096);
    let response = [HEAD.as_bytes(), &body].concat();
    let chunked = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n".as_slice(),
        &body,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let mut group = c.benchmark_group("response");
    group.throughput(Throughput::Elements(1));
    // A new head is parsed; a repeated one is compared.
    let two = [response.clone(), [HEAD.replace("10:21", "10:22").as_bytes(), &body].concat()];
    let cases = [
        ("nginx 4 KiB, another head each time", [&two[0], &two[1]]),
        ("nginx 4 KiB, the same head", [&response, &response]),
        ("chunked 4 KiB, the same head", [&chunked, &chunked]),
    ];
    for (name, bytes) in cases {
        group.bench_function(name, |b| {
            let mut last = LastHead::default();
            let mut turn = 0;
            b.iter(|| {
                turn ^= 1;
                let mut parser = Parser::default();
                let state = parser.feed(black_box(bytes[turn]), &mut last, |_, data| {
                    black_box(data);
                });
                assert_eq!(state, Ok(ParserState::Complete { rest: 0 }));
            });
        });
    }
    group.bench_function("content by comparison, 4 KiB", |b| {
        b.iter(|| black_box(&response[HEAD.len()..]) == body)
    });
    group.bench_function("content by CRC-32, 4 KiB", |b| b.iter(|| crc32(black_box(&body))));
    group.finish();
}

fn record(c: &mut Criterion) {
    let mut recorder = Recorder::default();
    let mut nanos = 1_u64;
    c.bench_function("record", |b| {
        b.iter(|| {
            // Spread over 10 us to 1 ms, like latencies.
            nanos = nanos.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            recorder.record(black_box(10_000 + (nanos >> 44)));
        });
    });
    c.bench_function("clock", |b| b.iter(clock::now));
}

criterion_group!(benches, parser, record);
criterion_main!(benches);
