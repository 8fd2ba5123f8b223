//! Any input at a UDP port parses as a datagram of a known kind or not at all; a parsed datagram is
//! serialised to the same bytes. The counters of a flow never exceed the number of datagrams.
//!
//! `scripts/fuzz datagram`; every eight bytes are also used as a sequence number.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_contract::datagram::{Account, Datagram};

fuzz_target!(|input: &[u8]| {
    match Datagram::parse(input) {
        // The second word of a HELLO or a WELCOME is ignored.
        None | Some(Datagram::Hello | Datagram::Welcome) => {}
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
