//! Datagrams at a server of UDP streams: no panic.
//!
//! `scripts/fuzz datagrams`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::datagrams(input));
