//! TLS with servers of others: every cipher suite of TLS 1.3, and servers that signed their own certificates.

use crate::certified::server_config;
use crate::common::{Engine, client, good_certificates, local, ok, server, tls_failure};
use linerate_contract::{Done, ErrorKind, Layer, Spec, Tls, TlsFailure};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A server that answers requests and echoes all else.
pub(crate) fn echoing(config: Arc<ServerConfig>) -> SocketAddr {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    let response = if bytes.starts_with(b"GET ") { ok(b"") } else { bytes[..count].into() };
                    if stream.write_all(&response).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn done(layer: &str, address: SocketAddr, tls: &Tls) -> Done {
    let mut spec =
        Spec { layer: layer.parse().unwrap(), tls: Some(tls.clone()), ..client("rr", address, 0, 10) };
    (spec.size, spec.connections, spec.expect) = (64, 1, None);
    Engine::start(&spec).done()
}

#[test]
fn a_server_may_have_any_cipher_suite_of_tls_1_3() {
    let (certified, trusted) = good_certificates();
    for name in ["TLS13_AES_128_GCM_SHA256", "TLS13_AES_256_GCM_SHA384", "TLS13_CHACHA20_POLY1305_SHA256"] {
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites.retain(|suite| format!("{:?}", suite.suite()) == name);
        let config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certified.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(certified.key.as_bytes()).unwrap(),
            )
            .unwrap();
        let address = echoing(Arc::new(config));
        for layer in ["tls", "https"] {
            let done = done(layer, address, &trusted);
            assert_eq!((done.operations, done.errors.total()), (10, 0), "{layer} {name}: {done:?}");
            assert!(done.tls.unwrap().contains(&name.replace("TLS13", "TLS")));
        }
    }
}

/// A certificate for this name that signs itself, in both roles.
fn own_authority(name: &str, last_year: i32) -> (Tls, Tls) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(last_year, 1, 1));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let trusted = Tls { authority: certificate.clone(), name: "linerate.test".into(), ..Tls::default() };
    (Tls { certificate, key: key.serialize_pem(), ..Tls::default() }, trusted)
}

#[test]
fn a_server_that_signs_its_own_certificate_is_its_authority() {
    let (_, others) = good_certificates();
    for layer in ["tls", "https"] {
        let (own, trusted) = own_authority("linerate.test", 4000);
        let address = echoing(server_config(&own));
        let good = done(layer, address, &trusted);
        assert_eq!((good.operations, good.errors.total()), (10, 0), "{layer}: {:?}", tls_failure(&good));
        let untrusted = done(layer, address, &others);
        assert_eq!(tls_failure(&untrusted), Some(TlsFailure::UnknownAuthority), "{layer}");
        for (name, year, failure) in
            [("another.test", 4000, TlsFailure::OtherName), ("linerate.test", 2001, TlsFailure::Expired)]
        {
            let (own, trusted) = own_authority(name, year);
            let bad = done(layer, echoing(server_config(&own)), &trusted);
            assert_eq!((bad.operations, tls_failure(&bad)), (0, Some(failure)), "{layer}");
        }
    }
}

#[test]
fn full_and_resumed_handshakes_are_counted() {
    let (certified, trusted) = good_certificates();
    let address = echoing(server_config(&certified));
    for (workload, all) in [("crr", 10), ("rr", 1)] {
        let spec =
            Spec { layer: Layer::Https, tls: Some(trusted.clone()), ..client(workload, address, 0, 10) };
        let done = Engine::start(&Spec { connections: 1, ..spec }).done();
        let counts = done.handshakes.unwrap();
        assert_eq!((done.operations, counts.full + counts.resumed), (10, all), "{workload}: {counts:?}");
        assert_eq!(counts.resumed > 0, workload == "crr", "{counts:?}");
    }
}

/// Over QUIC and over TCP, whose server makes its own records.
#[test]
fn sessions_are_resumed_at_the_latest_after_the_first_handshake_of_each_connection_or_never() {
    let (own, trust) = good_certificates();
    for layer in ["quic", "h3", "https", "h2"] {
        for (tickets, asked, full, resumed) in [
            ("resumed", "resumed", 3, 57),
            ("resumed", "full", 60, 0),
            // A server without tickets: what is not resumed fails.
            ("full", "resumed", 3, 0),
        ] {
            let mut serving = Spec { layer: layer.parse().unwrap(), tls: Some(own.clone()), ..server(64) };
            serving.set_option("handshake", tickets);
            let (_server, address) = Engine::serving(&serving);
            let mut spec = client("crr", address, 64, 60);
            (spec.layer, spec.tls, spec.connections, spec.size) =
                (layer.parse().unwrap(), Some(trust.clone()), 3, 64);
            spec.set_option("handshake", asked);
            let done = Engine::start(&spec).done();
            let failed = done.errors.0.get(&ErrorKind::TlsFailed).copied().unwrap_or(0);
            assert_eq!((done.operations, failed), (full + resumed, 60 - full - resumed), "{layer} {tickets}");
            let counts = done.handshakes.unwrap();
            // The first ticket may come before the last connection has begun.
            let is_early = resumed > 0 && (1..full).contains(&counts.full);
            assert!(counts.full == full || is_early, "{layer} {tickets} {asked}: {counts:?}");
            assert_eq!(counts.full + counts.resumed, full + resumed, "{layer} {tickets} {asked}");
        }
    }
}

/// A server of TLS that echoes a message on each connection and then ends it.
#[test]
fn sessions_of_tls_are_resumed_when_a_connection_is_opened_again() {
    let (own, trust) = good_certificates();
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let config = server_config(&own);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let mut bytes = [0; 64];
            let _ = stream.read_exact(&mut bytes).and_then(|()| stream.write_all(&bytes));
        }
    });
    for (asked, resumes) in [("full", false), ("resumed", true)] {
        let mut spec = Spec { layer: Layer::Tls, tls: Some(trust.clone()), ..client("rr", address, 0, 10) };
        (spec.size, spec.connections, spec.expect) = (64, 1, None);
        spec.set_option("handshake", asked);
        let done = Engine::start(&spec).done();
        let counts = done.handshakes.unwrap();
        assert_eq!((done.operations, counts.full + counts.resumed), (10, 10), "{:?}", done.errors);
        assert_eq!(counts.full, if resumes { 1 } else { 10 }, "{:?}", done.errors);
    }
}
