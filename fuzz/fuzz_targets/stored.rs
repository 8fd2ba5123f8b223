//! Stored runs: run.json and journal, read, judged, reported in every format, and planned to go on with.
//!
//! `scripts/fuzz stored`

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| linerate::session::fuzz_stored(input));
