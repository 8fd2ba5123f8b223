//! Records behind a handshake, by a peer that knows the keys: no panic, and no byte is invented.
//!
//! `scripts/fuzz tls_records`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::tls_records(input));
