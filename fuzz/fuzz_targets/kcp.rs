//! Datagrams at both ends of KCP conversations: no panic, and sessions and responses are bounded.
//!
//! `scripts/fuzz kcp`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_load::fuzz::kcp(input));
