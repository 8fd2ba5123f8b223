//! Whatever arrives at a UDP port is a datagram of a known kind or none, and what was read is written the same. The account of a flow
//! never counts more than came.
//!
//! `cargo +nightly fuzz run datagram`; each eight bytes are also taken as a sequence number.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_contract::datagram::{Account, Datagram};

fuzz_target!(|input: &[u8]| {
    match Datagram::parse(input) {
        // A HELLO's second word is not looked at.
        None | Some(Datagram::Hello) => {}
        Some(datagram) => assert!(input.starts_with(&datagram.to_bytes())),
    }
    let mut account = Account::default();
    let mut came = 0;
    for sequence in input.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())) {
        account.good(sequence, 1, 1);
        came += 1;
        let report = account.report();
        assert_eq!(report.received + report.duplicates, came);
        assert!(report.reordered <= report.received);
    }
});
