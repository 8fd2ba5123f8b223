//! Clients of linerate's servers that send garbage, close anywhere, never read, or send without
//! end, while a good client works: it is served, and memory is bounded.

use crate::common::{Engine, client, good_certificates, local};
use linerate_contract::{Nanos, Role, Spec, Tls, Workload};
use linerate_proto::websocket::upgrade;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// As for clients: the buffers of some dozen connections, and no more.
const MOST_MEMORY: u64 = 128 << 20;

fn serving(layer: &str, tls: &Tls) -> (Engine, SocketAddr) {
    let mut spec = Spec::new(Role::Server, layer.parse().unwrap(), Workload::Rr);
    (spec.listen, spec.tls, spec.size) = (Some(local()), Some(tls.clone()), 4096);
    Engine::serving(&spec)
}

/// Completes operations, each within ten seconds: without optimisation a turn of a flood takes half a second.
fn works(layer: &str, address: SocketAddr, tls: &Tls) {
    let mut spec = client("rr", address, 4096, 10);
    (spec.layer, spec.tls, spec.timeout_ns) =
        (layer.parse().unwrap(), Some(tls.clone()), Nanos(10_000_000_000));
    spec.size = 4096;
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.errors.total()), (10, 0), "{layer}: {:?}", done.errors);
}

fn upgraded(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&upgrade::request("test", "/", [1; 16], &[]).unwrap()).unwrap();
    assert!(crate::common::read_request(&mut stream));
    stream
}

#[test]
fn garbage_and_closes_anywhere_end_their_own_connection_only() {
    let (identity, tls) = good_certificates();
    for layer in ["http", "https", "tcp", "tls", "websocket", "wss"] {
        let (mut engine, address) = serving(layer, &identity);
        let mut random = Pcg64Mcg::seed_from_u64(7);
        for number in 0..100 {
            let mut bytes = vec![0; (random.next_u64() % 3_000) as usize];
            random.fill_bytes(&mut bytes);
            let mut stream = TcpStream::connect(address).unwrap();
            if number % 2 == 0 {
                let start = upgrade::request("test", "/", [1; 16], &[]).unwrap();
                let cut = (random.next_u64() % (start.len() as u64 + 1)) as usize;
                let _ = stream.write_all(&start[..cut]);
            }
            let _ = stream.write_all(&bytes);
            if number % 3 == 0 {
                let _ = stream.shutdown(Shutdown::Write);
                stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
                let _ = stream.read(&mut [0; 100]);
            }
        }
        works(layer, address, &tls);
        assert!(engine.most_memory() < MOST_MEMORY, "{layer}: {}", engine.most_memory());
    }
}

#[test]
fn clients_that_never_read_are_not_answered_without_end() {
    let (identity, tls) = good_certificates();
    let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1_000);
    let message = [&[0x82, 0xfe, 0x10, 0, 0, 0, 0, 0][..], &[0; 4096]].concat().repeat(10);
    let ping = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[0; 125]].concat().repeat(300);
    for (layer, bytes) in
        [("http", &request), ("tcp", &request), ("websocket", &message), ("websocket", &ping)]
    {
        let (mut engine, address) = serving(layer, &identity);
        let mut streams: Vec<_> =
            (0..3)
                .map(|_| {
                    if layer == "websocket" {
                        upgraded(address)
                    } else {
                        TcpStream::connect(address).unwrap()
                    }
                })
                .collect();
        for stream in &mut streams {
            stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            // Until the server does not read any more either.
            while stream.write_all(bytes).is_ok() {}
        }
        works(layer, address, &tls);
        assert!(engine.most_memory() < MOST_MEMORY, "{layer}: {}", engine.most_memory());
    }
}

/// A client that sends without end and reads all responses.
fn flood(stream: TcpStream, bytes: Vec<u8>) {
    let mut reader = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while matches!(reader.read(&mut buffer), Ok(1..)) {}
    });
    std::thread::spawn(move || {
        let mut stream = stream;
        while stream.write_all(&bytes).is_ok() {}
    });
}

#[test]
fn a_client_that_sends_without_end_does_not_occupy_the_server() {
    let (identity, tls) = good_certificates();
    let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1_000);
    let ping = [0x89, 0x80, 0, 0, 0, 0].repeat(10_000);
    for (layer, bytes) in [("http", request), ("tcp", vec![1; 1 << 20]), ("websocket", ping)] {
        let (mut engine, address) = serving(layer, &identity);
        for _ in 0..2 {
            let stream =
                if layer == "websocket" { upgraded(address) } else { TcpStream::connect(address).unwrap() };
            flood(stream, bytes.clone());
        }
        works(layer, address, &tls);
        assert!(engine.most_memory() < MOST_MEMORY, "{layer}: {}", engine.most_memory());
    }
}
