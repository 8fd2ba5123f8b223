//! Layer `udp`, whatever the stack: datagrams are sent back as they came (`rr`), or compared, counted and told (`stream`).

use crate::{Refusal, clock};
use linerate_contract::datagram::{Account, Datagram, HEADER, LARGEST, SMALLEST};
use linerate_contract::{Spec, page};
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

/// The server of all flows.
#[derive(Debug, Clone)]
pub struct Datagrams {
    work: Work,
    flows: HashMap<SocketAddr, Account>,
}

#[derive(Debug, Clone)]
enum Work {
    Echo,
    /// Each datagram as it should be, but for the number over its first bytes.
    Count(Vec<u8>),
}

impl Datagrams {
    pub(crate) fn echo() -> Self {
        Self { work: Work::Echo, flows: HashMap::new() }
    }

    pub(crate) fn count(spec: &Spec) -> Result<Self, Refusal> {
        let size = usize::try_from(spec.size).unwrap_or(usize::MAX);
        if !(SMALLEST..=LARGEST).contains(&size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {SMALLEST} to {LARGEST} bytes")));
        }
        match spec.options.get("direction").map(String::as_str) {
            Some("client-writes") => Ok(Self { work: Work::Count(page(size)), flows: HashMap::new() }),
            Some("client-reads" | "both") => Err(Refusal::Unsupported("datagrams from the server".into())),
            _ => Err(Refusal::BadSpec("\"options.direction\" must be client-writes".into())),
        }
    }

    /// What a peer is answered to a datagram, if anything.
    pub fn answer<'d>(&mut self, peer: SocketAddr, datagram: &'d [u8]) -> Option<Cow<'d, [u8]>> {
        let Work::Count(right) = &self.work else { return Some(datagram.into()) };
        let answer = match Datagram::parse(datagram)? {
            Datagram::Payload { sequence } => {
                let account = self.flows.entry(peer).or_default();
                if datagram.len() == right.len() && datagram[HEADER..] == right[HEADER..] {
                    account.good(sequence, datagram.len() as u64, clock::now());
                } else {
                    account.damaged();
                }
                return None;
            }
            Datagram::Hello => {
                self.flows.insert(peer, Account::default());
                Datagram::Hello
            }
            Datagram::End { .. } => Datagram::Report(self.flows.entry(peer).or_default().report()),
            Datagram::Report(_) => return None,
        };
        Some(answer.to_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    const PEER: &str = "10.77.1.2:5000";

    fn counting(size: u64) -> Datagrams {
        let mut spec = Spec::new(Role::Server, "udp", "stream");
        spec.size = size;
        spec.options.insert("direction".into(), "client-writes".into());
        Datagrams::count(&spec).unwrap()
    }

    #[test]
    fn an_echo_is_the_same_bytes() {
        assert_eq!(Datagrams::echo().answer(PEER.parse().unwrap(), b"any").as_deref(), Some(&b"any"[..]));
    }

    #[test]
    fn a_flow_is_greeted_counted_and_told() {
        let (mut server, peer) = (counting(100), PEER.parse().unwrap());
        let hello = Datagram::Hello.to_bytes();
        assert_eq!(server.answer(peer, &hello).as_deref(), Some(&hello[..]));
        for sequence in [0_u64, 1, 1] {
            let mut payload = page(100);
            payload[..HEADER].copy_from_slice(&sequence.to_le_bytes());
            assert_eq!(server.answer(peer, &payload), None);
            payload[50] ^= 1;
            assert_eq!(server.answer(peer, &payload), None);
        }
        let told = server.answer(peer, &Datagram::End { sent: 2 }.to_bytes()).unwrap();
        let Some(Datagram::Report(report)) = Datagram::parse(&told) else { panic!("{told:?}") };
        assert_eq!((report.received, report.bytes, report.duplicates, report.damaged), (2, 200, 1, 3));
        assert!(report.last_ns >= report.first_ns && report.first_ns > 0);
    }

    #[test]
    fn what_is_no_datagram_of_ours_is_not_answered() {
        assert_eq!(counting(100).answer(PEER.parse().unwrap(), b"short"), None);
    }
}
