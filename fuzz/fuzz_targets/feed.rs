//! Tables of `--feed`: no panic, a request for each row, and a path that can be sent.
//!
//! `scripts/fuzz feed`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate::cli::fuzz_feed(input));
