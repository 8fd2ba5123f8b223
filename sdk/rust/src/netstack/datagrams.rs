//! Layer `udp` on any stack: datagrams are sent back (`rr`), or compared, counted and reported (`stream`).

use crate::datagram;
use linerate_contract::datagram::Receiver;
use linerate_contract::program::Refusal;
use linerate_contract::{Spec, clock};
use std::borrow::Cow;
use std::net::SocketAddr;

/// The server of all peers.
#[derive(Debug, Clone)]
pub struct Datagrams {
    /// `None`: an echo.
    receiver: Option<Receiver>,
    /// The server's own address.
    own: SocketAddr,
}

impl Datagrams {
    pub(crate) fn echo(own: SocketAddr) -> Self {
        Self { receiver: None, own }
    }

    pub(crate) fn count(spec: &Spec, own: SocketAddr) -> Result<Self, Refusal> {
        Ok(Self { receiver: Some(Receiver::new(datagram(spec)?)), own })
    }

    /// The response to a datagram, if there is one.
    pub fn response<'d>(&mut self, peer: SocketAddr, datagram: &'d [u8]) -> Option<Cow<'d, [u8]>> {
        // A forged source: the response would arrive here again.
        if peer == self.own {
            return None;
        }
        match &mut self.receiver {
            None => Some(datagram.into()),
            Some(receiver) => receiver.answer(peer, datagram, || clock::now().0).map(Cow::Owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::datagram::Datagram;
    use linerate_contract::{Layer, Role, Workload, page};

    const OWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

    fn spec(size: u64, direction: &str) -> Spec {
        let mut spec = Spec::new(Role::Server, Layer::Udp, Workload::Stream);
        spec.size = size;
        spec.set_option("direction", direction);
        spec
    }

    #[test]
    fn an_echo_returns_the_datagram_and_a_count_answers_with_a_report() {
        let peer = "10.77.1.2:5000".parse().unwrap();
        assert_eq!(Datagrams::echo(OWN).response(peer, b"any").as_deref(), Some(&b"any"[..]));
        let mut counting = Datagrams::count(&spec(100, "client-writes"), OWN).unwrap();
        assert_eq!(counting.response(peer, &page(100)), None);
        let end = Datagram::End { sent: 1 }.to_bytes();
        let response = counting.response(peer, &end).unwrap();
        assert!(matches!(Datagram::parse(&response), Some(Datagram::Report(report)) if report.received == 1));
    }

    #[test]
    fn a_datagram_from_the_servers_own_address_has_no_response() {
        assert_eq!(Datagrams::echo(OWN).response(OWN, b"any"), None);
    }

    #[test]
    fn a_size_out_of_range_and_an_unsupported_direction_are_refused() {
        assert!(matches!(Datagrams::count(&spec(10, "client-writes"), OWN), Err(Refusal::BadSpec(_))));
        assert!(matches!(Datagrams::count(&spec(100, "client-reads"), OWN), Err(Refusal::Unsupported(_))));
    }
}
