//! Frames of a server of HTTP/2: no panic, and what comes of them does not depend on their pieces.
//!
//! `scripts/fuzz h2_client`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_proto::h2::fuzz::fuzz_client(input));
