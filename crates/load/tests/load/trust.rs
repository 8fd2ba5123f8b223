//! TLS with servers of others: every version and cipher suite, and servers that signed their own
//! certificates.

use crate::certified::{config, server_config};
use crate::common::{Engine, client, good_certificates, local, ok, server, tls_failure, with};
use crate::terminating::terminating;
use linerate_contract::{Done, ErrorKind, Layer, Role, Spec, Tls, TlsFailure, Workload};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedCipherSuite};
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

/// Suites of both versions for certificates with a key of ECDSA.
fn suites() -> impl Iterator<Item = SupportedCipherSuite> {
    let all = rustls::crypto::ring::ALL_CIPHER_SUITES.iter().copied();
    all.filter(|suite| !format!("{:?}", suite.suite()).contains("_RSA_"))
}

#[test]
fn a_server_may_have_either_version_of_tls_and_any_cipher_suite() {
    let (certified, trusted) = good_certificates();
    assert_eq!(suites().count(), 6);
    for suite in suites() {
        let (version, name) = (suite.version(), format!("{:?}", suite.suite()).replace("TLS13", "TLS"));
        for layer in ["tls", "wss", "https", "h2"] {
            // Records of 16 KiB in both directions, except for short requests.
            let size = 40_000;
            let plain = match layer {
                "tls" => Layer::Tcp,
                "wss" => Layer::WebSocket,
                "https" => Layer::Http,
                _ => Layer::H2c,
            };
            let (_server, behind) = Engine::serving(&Spec { layer: plain, ..server(size) });
            let protocols = if layer == "h2" { &["h2"][..] } else { &[] };
            let config = config(&certified, &[version], |other| *other == suite, protocols);
            let address = terminating(Arc::new(config), behind);
            let mut spec = client("rr", address, size, 10);
            (spec.layer, spec.tls, spec.size) = (layer.parse().unwrap(), Some(trusted.clone()), size as u64);
            let done = Engine::start(&spec).done();
            assert_eq!((done.operations, done.errors.total()), (10, 0), "{layer} {name}: {done:?}");
            let told = done.tls.unwrap();
            let number = if name.contains("_WITH_") { "TLSv1.2" } else { "TLSv1.3" };
            assert!(told.starts_with(&format!("{number} {name} ")), "{layer}: {told}");
        }
    }
}

#[test]
fn transfers_over_tls_1_2_arrive_whole_both_ways() {
    let (certified, trusted) = good_certificates();
    let bytes = 1_100_001;
    for suite in suites().filter(|suite| suite.tls13().is_none()) {
        let config = Arc::new(config(&certified, &[&rustls::version::TLS12], |other| *other == suite, &[]));
        for (layer, plain) in [(Layer::Tls, Layer::Tcp), (Layer::Wss, Layer::WebSocket)] {
            for direction in ["client-writes", "client-reads"] {
                let transfer = |role, layer| {
                    let mut spec = with(Spec::new(role, layer, Workload::Stream), "direction", direction);
                    spec.set_option("transfers", "2");
                    (spec.size, spec.bytes, spec.connections) = (65_536, Some(bytes), 2);
                    spec
                };
                let serving = Spec { listen: Some(local()), ..transfer(Role::Server, plain) };
                let (_server, behind) = Engine::serving(&serving);
                let mut spec = transfer(Role::Client, layer);
                (spec.connect, spec.tls) = (Some(terminating(config.clone(), behind)), Some(trusted.clone()));
                let done = Engine::start(&spec).done();
                let what = format!("{suite:?} {layer} {direction}: {done:?}");
                assert_eq!((done.errors.total(), done.verified), (0, 4 * bytes), "{what}");
            }
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

/// A server of TLS 1.2 has the session in a ticket of its handshake (RFC 5077).
#[test]
fn sessions_of_tls_1_2_are_resumed_or_never() {
    let (certified, trusted) = good_certificates();
    let (_server, behind) = Engine::serving(&Spec { layer: Layer::Http, ..server(64) });
    let mut config = config(&certified, &[&rustls::version::TLS12], |_| true, &[]);
    config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
    let config = Arc::new(config);
    for (asked, full, resumed) in [("full", 60, 0), ("resumed", 3, 57)] {
        let mut spec = client("crr", terminating(config.clone(), behind), 64, 60);
        (spec.layer, spec.tls, spec.connections) = (Layer::Https, Some(trusted.clone()), 3);
        spec.set_option("handshake", asked);
        let done = Engine::start(&spec).done();
        let counts = done.handshakes.unwrap();
        assert_eq!((done.operations, done.errors.total()), (60, 0), "{asked}: {done:?}");
        assert_eq!(counts.full + counts.resumed, full + resumed, "{asked}: {counts:?}");
        assert!(counts.full <= full && (asked == "resumed" || counts.full == full), "{asked}: {counts:?}");
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
