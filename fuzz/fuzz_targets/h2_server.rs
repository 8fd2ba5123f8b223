//! Frames of a client of HTTP/2: no panic, and the responses do not depend on their pieces.
//!
//! `scripts/fuzz h2_server`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_proto::h2::fuzz::fuzz_server(input));
