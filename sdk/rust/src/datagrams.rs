//! Layer `udp`, whatever the stack: datagrams are sent back as they came (`rr`), or compared, counted and told (`stream`).

use linerate_contract::datagram::{LARGEST, Receiver, SMALLEST};
use linerate_contract::program::Refusal;
use linerate_contract::{Spec, clock, page};
use std::borrow::Cow;
use std::net::SocketAddr;

/// The server of all peers.
#[derive(Debug, Clone)]
pub struct Datagrams(Work);

#[derive(Debug, Clone)]
enum Work {
    Echo,
    Count(Receiver),
}

impl Datagrams {
    pub(crate) fn echo() -> Self {
        Self(Work::Echo)
    }

    pub(crate) fn count(spec: &Spec) -> Result<Self, Refusal> {
        let size = usize::try_from(spec.size).unwrap_or(usize::MAX);
        if !(SMALLEST..=LARGEST).contains(&size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be {SMALLEST} to {LARGEST} bytes")));
        }
        match spec.options.get("direction").map(String::as_str) {
            Some("client-writes") => Ok(Self(Work::Count(Receiver::new(page(size))))),
            Some("client-reads" | "both") => Err(Refusal::Unsupported("datagrams from the server".into())),
            _ => Err(Refusal::BadSpec("\"options.direction\" must be client-writes".into())),
        }
    }

    /// What a peer is answered to a datagram, if anything.
    pub fn answer<'d>(&mut self, peer: SocketAddr, datagram: &'d [u8]) -> Option<Cow<'d, [u8]>> {
        match &mut self.0 {
            Work::Echo => Some(datagram.into()),
            Work::Count(receiver) => receiver.answer(peer, datagram, || clock::now().0).map(Cow::Owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;
    use linerate_contract::datagram::Datagram;

    #[test]
    fn an_echo_is_the_same_bytes_and_a_count_is_an_answer_of_its_own() {
        let peer = "10.77.1.2:5000".parse().unwrap();
        assert_eq!(Datagrams::echo().answer(peer, b"any").as_deref(), Some(&b"any"[..]));
        let mut spec = Spec::new(Role::Server, "udp", "stream");
        spec.size = 100;
        spec.options.insert("direction".into(), "client-writes".into());
        let mut counting = Datagrams::count(&spec).unwrap();
        assert_eq!(counting.answer(peer, &page(100)), None);
        let end = Datagram::End { sent: 1 }.to_bytes();
        let told = counting.answer(peer, &end).unwrap();
        assert!(matches!(Datagram::parse(&told), Some(Datagram::Report(report)) if report.received == 1));
    }

    #[test]
    fn a_size_or_direction_that_is_none_is_refused() {
        let mut spec = Spec::new(Role::Server, "udp", "stream");
        spec.size = 10;
        assert!(matches!(Datagrams::count(&spec), Err(Refusal::BadSpec(_))));
        spec.size = 100;
        spec.options.insert("direction".into(), "client-reads".into());
        assert!(matches!(Datagrams::count(&spec), Err(Refusal::Unsupported(_))));
    }
}
