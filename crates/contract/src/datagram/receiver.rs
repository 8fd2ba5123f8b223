//! The server of a stream over UDP, without a socket: the response to each datagram of each peer.

use super::{Account, Datagram, HEADER};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Compares and counts the datagrams of all flows, and reports.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// A correct datagram, except for the number in its first bytes.
    right: Vec<u8>,
    flows: HashMap<SocketAddr, Account>,
}

impl Receiver {
    #[must_use]
    pub fn new(right: Vec<u8>) -> Self {
        Self { right, flows: HashMap::new() }
    }

    /// The response to a peer, if any. `now` returns `CLOCK_MONOTONIC`, and is called only where it is
    /// needed.
    pub fn answer(
        &mut self,
        peer: SocketAddr,
        datagram: &[u8],
        now: impl FnOnce() -> u64,
    ) -> Option<Vec<u8>> {
        let response = match Datagram::parse(datagram)? {
            Datagram::Payload { sequence } => {
                let is_right =
                    datagram.len() == self.right.len() && datagram[HEADER..] == self.right[HEADER..];
                let account = self.flows.entry(peer).or_default();
                if is_right {
                    account.good(sequence, datagram.len() as u64, now());
                } else {
                    account.damaged();
                }
                return None;
            }
            Datagram::Hello => {
                self.flows.insert(peer, Account::default());
                Datagram::Welcome
            }
            Datagram::End { .. } => Datagram::Report(self.flows.entry(peer).or_default().report()),
            Datagram::Welcome | Datagram::Report(_) => return None,
        };
        Some(response.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;

    #[test]
    fn a_flow_is_opened_counted_and_reported() {
        let (mut server, peer) = (Receiver::new(page(100)), "10.77.1.2:5000".parse().unwrap());
        let hello = Datagram::Hello.to_bytes();
        assert_eq!(server.answer(peer, &hello, || 0), Some(Datagram::Welcome.to_bytes()));
        for (at, sequence) in [(7, 0_u64), (8, 1), (9, 1)] {
            let mut payload = page(100);
            payload[..HEADER].copy_from_slice(&sequence.to_le_bytes());
            assert_eq!(server.answer(peer, &payload, || at), None);
            payload[50] ^= 1;
            assert_eq!(server.answer(peer, &payload, || at), None);
        }
        let reported = server.answer(peer, &Datagram::End { sent: 2 }.to_bytes(), || 10).unwrap();
        let Some(Datagram::Report(report)) = Datagram::parse(&reported) else { panic!("{reported:?}") };
        assert_eq!((report.received, report.bytes, report.duplicates, report.damaged), (2, 200, 1, 3));
        assert_eq!((report.first_ns, report.last_ns), (7, 8));
    }

    #[test]
    fn datagrams_outside_the_contract_are_not_answered() {
        let peer = "10.77.1.2:5000".parse().unwrap();
        assert_eq!(Receiver::new(page(100)).answer(peer, b"short", || 0), None);
    }

    #[test]
    fn two_servers_do_not_answer_each_other() {
        let mut server = Receiver::new(page(100));
        let peer = "10.77.1.2:5000".parse().unwrap();
        for asked in [Datagram::Hello, Datagram::End { sent: 1 }] {
            let response = server.answer(peer, &asked.to_bytes(), || 0).unwrap();
            assert_eq!(server.answer(peer, &response, || 0), None, "{asked:?}");
        }
    }
}
