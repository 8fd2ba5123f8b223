//! Handshakes of both ends with a changed byte, and bytes to one end: no panic, and both ends agree.
//!
//! `scripts/fuzz tls_handshake`

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_contract::{Layer, Role, Spec, Tls, Workload};
use linerate_load::layer::wire::Wires;
use linerate_load::layer::wire::tls::{TlsAcceptor, TlsConnector};
use std::sync::LazyLock;

static ENDS: LazyLock<(TlsAcceptor, TlsConnector)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(["linerate.test".to_owned()]).unwrap();
    let (authority, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let mut spec = Spec::new(Role::Server, Layer::Tls, Workload::Rr);
    let certificate = authority.clone();
    spec.tls = Some(Tls { certificate, key, authority, name: "linerate.test".into() });
    (TlsAcceptor::new(&spec).unwrap(), TlsConnector::new(&spec).unwrap())
});

fuzz_target!(|input: &[u8]| linerate_load::fuzz::tls_handshake(&ENDS.0, &ENDS.1, input));
