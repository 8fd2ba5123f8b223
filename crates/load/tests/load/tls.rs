//! HTTPS: the client against a blocking rustls server, a blocking rustls client against the server, and both
//! ends of the engine.

use crate::common::{
    Engine, answering, client, good_certificates, in_some_try, local, ok, read_request, scripted, server,
    tls_failure,
};
use crate::trust::echoing;
use linerate_contract::{ErrorKind, Layer, Request, Spec, Tls, TlsFailure, page};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

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
    let layer = Layer::Https;
    Spec { layer, request: Some(request), ..client(workload, address, SIZE, operations) }
}

#[test]
fn pages_come_whole_over_both_versions_of_tls() {
    for versions in [&[&rustls::version::TLS12][..], &[&rustls::version::TLS13]] {
        let address = https(versions);
        for (workload, rate) in [("rr", None), ("crr", None), ("rr", Some(500.0)), ("crr", Some(500.0))] {
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
    let known = secure("rr", https(rustls::ALL_VERSIONS), 10, false);
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
    let spec = secure("crr", address, 10, true);
    fails_as(ErrorKind::TlsFailed, &spec);
    assert_eq!(tls_failure(&Engine::start(&spec).done()), Some(TlsFailure::NotTls));
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
    let spec = Spec { request: Some(request), expect: None, connections: 1, ..client("rr", address, 0, 2) };
    assert_eq!(Engine::start(&spec).done().operations, 2);
}

#[test]
fn redirects_are_good_responses_and_server_errors_are_not() {
    let good = answering("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n");
    let spec = |address| Spec { expect: None, ..client("crr", address, 0, 10) };
    assert_eq!(Engine::start(&spec(good)).done().operations, 10);
    fails_as(
        ErrorKind::WrongStatus,
        &spec(answering("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")),
    );
}

/// The engine's own server, where it is, and whom its clients trust.
fn own(size: usize, threads: u32) -> (Engine, SocketAddr, Tls) {
    let (certified, trusted) = good_certificates();
    let spec = Spec { layer: Layer::Https, tls: Some(certified), threads, ..server(size) };
    let (engine, address) = Engine::serving(&spec);
    (engine, address, trusted)
}

#[test]
fn the_engines_own_server_answers_its_own_client_whatever_the_shape() {
    for (size, threads) in [(0, 1), (4096, 2), (65_536, 1), (3_000_000, 1)] {
        let (_server, address, trusted) = own(size, threads);
        for (workload, rate) in [("rr", None), ("crr", None), ("rr", Some(500.0)), ("crr", Some(500.0))] {
            let client = client(workload, address, size, 50);
            let spec = Spec { layer: Layer::Https, tls: Some(trusted.clone()), rate, ..client };
            let done = Engine::start(&spec).done();
            let what = format!("{workload} {size} {rate:?}: {:?}", done.errors);
            assert_eq!((done.operations, done.verified), (50, 50), "{what}");
            assert_eq!(done.bytes.0, 50 * size as u64, "{what}");
            let tls = done.tls.unwrap();
            assert!(tls.starts_with("TLSv1.3 TLS_AES_128_GCM_SHA256 rustls 0."), "{tls}");
        }
    }
}

#[test]
fn no_request_waits_for_an_acknowledgement_that_is_delayed() {
    let (_server, address, trusted) = own(SIZE, 1);
    let mut spec = Spec { layer: Layer::Https, tls: Some(trusted), ..client("crr", address, SIZE, 50) };
    spec.connections = 1;
    let median = || Engine::start(&spec).done().latency.unwrap().percentile(50.0).unwrap();
    // The kernel delays one by 40 ms at least; a handshake takes two.
    assert!(in_some_try(|| median() < 30_000_000));
}

#[test]
fn an_untrusted_certificate_fails_unless_certificates_are_not_checked() {
    let (_server, address, _) = own(SIZE, 1);
    let (_, another) = good_certificates();
    let untrusted = Spec { tls: Some(another), ..secure("crr", address, 10, false) };
    fails_as(ErrorKind::TlsFailed, &untrusted);
    assert_eq!(tls_failure(&Engine::start(&untrusted).done()), Some(TlsFailure::UnknownAuthority));
    let done = Engine::start(&secure("crr", address, 10, true)).done();
    assert_eq!((done.operations, done.errors.total()), (10, 0));
}

/// Echoes to clients with a certificate that `authority` has signed.
fn echoing_to_known_clients(own: &Tls, authority: &str) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
        )
        .unwrap();
    echoing(Arc::new(config))
}

#[test]
fn a_client_with_a_certificate_is_known_and_one_without_is_told_so() {
    let ((certified, trusted), (own, authority)) = (good_certificates(), good_certificates());
    let address = echoing_to_known_clients(&certified, &authority.authority);
    for layer in ["https", "tls"] {
        let spec = |tls: Tls| {
            let mut spec =
                Spec { layer: layer.parse().unwrap(), tls: Some(tls), ..client("rr", address, 0, 10) };
            (spec.size, spec.connections, spec.expect) = (64, 1, None);
            spec
        };
        let known = Tls { certificate: own.certificate.clone(), key: own.key.clone(), ..trusted.clone() };
        let done = Engine::start(&spec(known)).done();
        assert_eq!((done.operations, tls_failure(&done)), (10, None), "{layer}: {:?}", done.errors);
        let done = Engine::start(&spec(trusted.clone())).done();
        assert_eq!(
            (done.operations, tls_failure(&done)),
            (0, Some(TlsFailure::ClientCertificate)),
            "{layer}"
        );
    }
}

/// A blocking client whose handshake is still to come.
fn blocking(address: SocketAddr, trusted: &Tls) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.authority.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(trusted.name.clone()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, TcpStream::connect(address).unwrap())
}

/// All that comes until the server says goodbye: without its `close_notify` this fails.
fn rest(mut stream: impl Read) -> Vec<u8> {
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    response
}

fn count(response: &[u8], what: &str) -> usize {
    response.windows(what.len()).filter(|window| *window == what.as_bytes()).count()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const LAST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

#[test]
fn the_server_answers_requests_ahead_of_their_turn_and_in_pieces_and_says_goodbye() {
    let size = 1_000_000;
    let (_server, address, trusted) = own(size, 1);
    let mut stream = blocking(address, &trusted);
    stream.write_all(&[&GET.repeat(9)[..], LAST].concat()).unwrap();
    // The server fills both buffers of the way, and has to wait in the middle of a record.
    std::thread::sleep(Duration::from_millis(200));
    let response = rest(stream);
    assert_eq!(count(&response, "200 OK"), 10);
    assert!(response.len() > 10 * size && response.ends_with(&page(size)));

    let mut stream = blocking(address, &trusted);
    for piece in LAST.chunks(10) {
        // Each is a record.
        stream.write_all(piece).unwrap();
        stream.flush().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(count(&rest(stream), "200 OK"), 1);
}

#[test]
fn the_server_refuses_over_tls_what_it_refuses_without() {
    let (_server, address, trusted) = own(7, 1);
    let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 20_000]].concat();
    for (request, good) in [(&[GET, b"POST / HTTP/1.1\r\n\r\n"].concat(), 1), (&long, 0)] {
        let mut stream = blocking(address, &trusted);
        stream.write_all(request).unwrap();
        let response = rest(stream);
        assert_eq!((count(&response, "200 OK"), count(&response, "400 Bad Request")), (good, 1));
    }
}

#[test]
fn a_peer_that_requests_some_key_updates_is_served_and_one_that_requests_many_is_closed() {
    let (_server, address, trusted) = own(4096, 1);
    // 1,200 is more than responses fit into the server's output buffer, in one piece.
    for (updates, responses) in [(20, 1), (1_200, 0)] {
        let mut stream = blocking(address, &trusted);
        stream.write_all(GET).unwrap();
        let mut response = [0; 4096];
        stream.read_exact(&mut response).unwrap();
        let mut requests = Vec::new();
        for _ in 0..updates {
            stream.conn.refresh_traffic_keys().unwrap();
            stream.conn.write_tls(&mut requests).unwrap();
        }
        // It may be closed already.
        let _ = stream.sock.write_all(&requests).and_then(|()| stream.write_all(LAST));
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(count(&rest, "200 OK"), responses, "{updates}");
    }
    let mut another = blocking(address, &trusted);
    another.write_all(LAST).unwrap();
    assert_eq!(count(&rest(another), "200 OK"), 1, "the server has survived");
}

#[test]
fn peers_that_speak_no_tls_or_vanish_end_their_own_connections() {
    let (_server, address, trusted) = own(7, 1);
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(GET).unwrap();
    let mut response = Vec::new();
    // An alert or a reset, but no page.
    let _ = plain.read_to_end(&mut response);
    assert_eq!(count(&response, "200 OK"), 0);
    let mut silent = blocking(address, &trusted);
    silent.write_all(&GET[..5]).unwrap();
    silent.flush().unwrap();
    drop(silent.sock);
    let spec = Spec { layer: Layer::Https, tls: Some(trusted), ..client("rr", address, 7, 20) };
    assert_eq!(Engine::start(&spec).done().operations, 20);
}
