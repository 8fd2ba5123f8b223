//! Frames of a client, in pieces: no panic, and the server sends valid frames.
//!
//! `scripts/fuzz websocket_server`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::websocket_server(input));
