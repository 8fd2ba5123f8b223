//! Streams of HTTP/3: a response, a request, a control stream. No panic, and the same result in pieces of any
//! size.
//!
//! `scripts/fuzz h3`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate_proto::h3::fuzz::fuzz(input));
