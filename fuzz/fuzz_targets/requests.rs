//! Files of `--requests`: no panic, and errors name the file.
//!
//! `scripts/fuzz requests`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate::cli::fuzz_requests(input));
