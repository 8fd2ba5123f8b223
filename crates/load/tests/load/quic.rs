//! The protocol of performance tests over QUIC: the engine against itself.

use crate::common::{Engine, client, good_certificates, server};
use linerate_contract::{Bytes, ErrorKind, Layer, Nanos, Spec};

#[test]
fn requests_and_responses_have_the_lengths_that_are_asked_for() {
    let (own, trust) = good_certificates();
    let serving = Spec { layer: Layer::Quic, tls: Some(own), ..server(0) };
    let (_server, address) = Engine::serving(&serving);
    for (size, response, operations) in [(8, 0, 100), (512, 4_000, 300), (100_000, 1, 40), (8, 2_000_000, 10)]
    {
        let mut spec = client("rr", address, size, operations);
        (spec.layer, spec.tls, spec.expect) = (Layer::Quic, Some(trust.clone()), None);
        (spec.connections, spec.size) = (2, size as u64);
        spec.set_option("streams", 4);
        spec.set_option("response", response);
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (operations, 0), "{:?}", done.errors);
        assert_eq!(done.bytes, Bytes(operations * response.max(size as u64)));
    }
}

/// Responses that come faster than they are read, and a pause after each.
#[test]
fn a_client_that_waits_for_the_next_response_sleeps() {
    let (own, trust) = good_certificates();
    let serving = Spec { layer: Layer::Quic, tls: Some(own), ..server(0) };
    let (_server, address) = Engine::serving(&serving);
    let mut spec = client("rr", address, 8, 20);
    (spec.layer, spec.tls, spec.expect) = (Layer::Quic, Some(trust), None);
    (spec.connections, spec.size) = (1, 8);
    spec.set_option("response", 3_000_000);
    // A datagram for each call of the kernel, so that no turn takes all.
    spec.set_option("mode", "single");
    // A slow machine sleeps between responses that come less often.
    let sleeps = [20.0, 8.0, 3.0].into_iter().any(|rate| {
        let done = Engine::start(&Spec { rate: Some(rate), ..spec.clone() }).done();
        assert_eq!((done.operations, done.errors.total()), (20, 0), "{:?}", done.errors);
        done.cpu_ns.0 < done.end_ns.since(done.start_ns).0 * 3 / 4
    });
    assert!(sleeps);
}

#[test]
fn a_peer_of_another_protocol_is_an_error_of_tls() {
    let (own, trust) = good_certificates();
    let serving = Spec { layer: Layer::H3, tls: Some(own), ..server(10) };
    let (_server, address) = Engine::serving(&serving);
    let mut spec = client("rr", address, 8, 2);
    (spec.layer, spec.tls, spec.expect) = (Layer::Quic, Some(trust), None);
    (spec.connections, spec.size, spec.timeout_ns) = (1, 8, Nanos(2_000_000_000));
    let done = Engine::start(&spec).done();
    assert_eq!(done.errors.0.get(&ErrorKind::TlsFailed), Some(&2), "{:?}", done.errors);
}

#[test]
fn a_connection_for_each_request_has_a_handshake_each_and_one_stream() {
    let (own, trust) = good_certificates();
    for layer in ["quic", "h3"] {
        let serving = Spec { layer: layer.parse().unwrap(), tls: Some(own.clone()), ..server(700) };
        let (_server, address) = Engine::serving(&serving);
        let mut spec = client("crr", address, 700, 90);
        (spec.layer, spec.tls, spec.connections, spec.size) =
            (layer.parse().unwrap(), Some(trust.clone()), 3, 700);
        let done = Engine::start(&spec).done();
        assert_eq!((done.operations, done.errors.total()), (90, 0), "{layer}: {:?}", done.errors);
        assert_eq!(done.connect.map(|handshakes| handshakes.total()), Some(90), "{layer}");
        assert_eq!(done.streams.unwrap().most, 1, "{layer}");
        spec.set_option("streams", 2);
        let mut refused = Engine::start(&spec);
        refused.wait();
        let text = refused.stderr();
        assert!(text.contains("\"options.streams\" must be 1, not \"2\""), "{layer}: {text}");
    }
}
