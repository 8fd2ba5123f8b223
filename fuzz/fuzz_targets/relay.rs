//! Steps of both peers of a pair: bytes arrive in order, and all of them before an orderly end.
//!
//! `scripts/fuzz relay`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_natives::relay::fuzz_relay(input));
