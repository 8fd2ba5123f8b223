//! Who is where in a trial.

use crate::lab::protocol::address;
use crate::system::Chosen;
use crate::system::manifest::{ReachedAt, Topology};
use std::net::{Ipv4Addr, SocketAddr};

/// Where servers and relays listen: HTTP's port, which the packet filters redirect as well.
pub(super) const PORT: u16 = 80;

pub(super) struct Addresses {
    pub(super) server: SocketAddr,
    pub(super) relay: SocketAddr,
    /// What the client connects to.
    pub(super) target: SocketAddr,
}

impl Addresses {
    pub(super) fn new(topology: Topology, relay: Option<&Chosen<'_>>) -> Self {
        let at = |ip: Ipv4Addr| SocketAddr::from((ip, PORT));
        let server = at(match topology {
            Topology::Loopback => Ipv4Addr::LOCALHOST,
            _ if topology.has_router() => address::SERVER,
            _ => address::SERVER_ON_LINK,
        });
        let router = at(address::ROUTER_CLIENT_SIDE);
        let at_relay = relay.is_some_and(|relay| relay.variant.reached_at == ReachedAt::Relay);
        Self { server, relay: router, target: if at_relay { router } else { server } }
    }
}
