//! HTTPS: against a blocking server of rustls, with a certificate made on the spot.

use crate::common::{Engine, answering, client, local, ok, read_request, scripted};
use linerate_contract::{ErrorKind, Request, Spec, page};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

const SIZE: usize = 40_000;

/// Answers every request of every connection with the page.
fn https(versions: &[&'static rustls::SupportedProtocolVersion]) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || {
                let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                let mut request = Vec::new();
                let mut byte = [0];
                while let Ok(1) = stream.read(&mut byte) {
                    request.push(byte[0]);
                    if request.ends_with(b"\r\n\r\n") {
                        request.clear();
                        if stream.write_all(&ok(&page(SIZE))).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

fn secure(workload: &str, address: SocketAddr, operations: u64, insecure: bool) -> Spec {
    let request = Request { host: Some("localhost:8443".into()), insecure, ..Request::default() };
    let layer = "https".into();
    Spec { layer, request: Some(request), ..client(workload, address, SIZE, operations) }
}

#[test]
fn pages_come_whole_over_both_versions_of_tls() {
    for versions in [&[&rustls::version::TLS12][..], &[&rustls::version::TLS13]] {
        let address = https(versions);
        for (workload, rate) in [("http", None), ("crr", None), ("http", Some(500.0)), ("crr", Some(500.0))] {
            let done = Engine::start(&Spec { rate, ..secure(workload, address, 50, true) }).done();
            assert_eq!((done.operations, done.verified), (50, 50), "{workload} {rate:?}: {:?}", done.errors);
        }
    }
}

/// All of ten operations must fail as `kind`.
fn fails_as(kind: ErrorKind, spec: &Spec) {
    let done = Engine::start(spec).done();
    assert_eq!((done.operations, done.errors.0.get(&kind)), (0, Some(&10)), "{:?}", done.errors);
}

#[test]
fn an_unknown_certificate_and_a_server_without_tls_are_failures_of_tls() {
    let known = secure("http", https(rustls::ALL_VERSIONS), 10, false);
    let mut engine = Engine::start(&known);
    if engine.wait().code() == Some(127) {
        // A machine without root certificates says so.
        assert!(engine.stderr().contains("ca-certificates"));
    } else {
        fails_as(ErrorKind::TlsFailed, &known);
    }
    let plain = std::net::TcpListener::bind(local()).unwrap();
    let address = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    fails_as(ErrorKind::TlsFailed, &secure("crr", address, 10, true));
}

#[test]
fn requests_are_sent_as_asked() {
    let address = scripted(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        // HEAD: no body; the next request comes on the same connection.
        if read_request(&mut stream) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        }
        let _ = stream.read(&mut [0]);
    });
    let request = Request { method: Some("HEAD".into()), ..Request::default() };
    let spec = Spec { request: Some(request), expect: None, connections: 1, ..client("http", address, 0, 2) };
    assert_eq!(Engine::start(&spec).done().operations, 2);
}

#[test]
fn redirects_are_good_answers_and_server_errors_are_not() {
    let good = answering("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n");
    let spec = |address| Spec { expect: None, ..client("crr", address, 0, 10) };
    assert_eq!(Engine::start(&spec(good)).done().operations, 10);
    fails_as(
        ErrorKind::WrongStatus,
        &spec(answering("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")),
    );
}
