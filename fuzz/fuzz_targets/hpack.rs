//! Header blocks of one connection: no panic, and no list of fields above its limit.
//!
//! `scripts/fuzz hpack`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_proto::h2::fuzz::fuzz_hpack(input));
