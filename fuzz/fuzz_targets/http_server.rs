//! Requests, in pieces: no panic, and the responses do not depend on the pieces.
//!
//! `scripts/fuzz http_server`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::http_server(input));
