//! Frames of a server, in pieces: no panic, and the client sends valid frames.
//!
//! `scripts/fuzz websocket_client`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::websocket_client(input));
