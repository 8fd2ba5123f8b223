//! Responses to pipelined requests, in pieces: no panic, and the client never waits for nothing.
//!
//! `scripts/fuzz http_client`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::http_client(input));
