//! Addresses of the roles of a trial.

use crate::lab::protocol::address;
use crate::system::SystemVariant;
use crate::system::manifest::{ReachedAt, Topology};
use std::net::{Ipv4Addr, SocketAddr};

/// Where servers and relays listen: HTTP's port, which the packet filters redirect as well.
pub(super) const PORT: u16 = 80;

pub(super) struct Addresses {
    pub(super) server: SocketAddr,
    pub(super) relay: SocketAddr,
    /// The client connects to it.
    pub(super) target: SocketAddr,
}

impl Addresses {
    pub(super) fn new(topology: Topology, relay: Option<&SystemVariant<'_>>) -> Self {
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
