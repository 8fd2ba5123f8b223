//! Streams of QUIC in any order, at both ends of HTTP/3 and of performance tests: no panic, each operation
//! ends once, and what is kept is counted.
//!
//! `scripts/fuzz quic`

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_contract::Tls;
use linerate_load::fuzz::{QuicEnds, quic};

thread_local!(static ENDS: QuicEnds = {
    let made = rcgen::generate_simple_self_signed(["linerate.test".to_owned()]).unwrap();
    let (authority, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    QuicEnds::new(&Tls { certificate: authority.clone(), key, authority, name: "linerate.test".into() })
});

fuzz_target!(|input: &[u8]| ENDS.with(|ends| quic(ends, input)));
