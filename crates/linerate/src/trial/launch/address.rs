//! Addresses of the roles of a trial.

use crate::lab::protocol::address;
use crate::measurement::PlannedHost;
use crate::path::{Device, NetworkPath};
use crate::placement;
use crate::system::SystemVariant;
use crate::system::manifest::ReachedAt;
use linerate_contract::Role;
use std::net::{Ipv4Addr, SocketAddr};

/// Where servers and relays listen: HTTP's port, which the packet filters redirect as well.
pub(super) const PORT: u16 = 80;

/// The port in a run over several hosts, whose port 80 may be in use. Below the kernel's ephemeral ports.
const PORT_OF_HOST: u16 = 20_080;
const RELAY_OF_HOST: u16 = 20_081;

pub(super) struct Addresses {
    pub(super) server: SocketAddr,
    /// Where each relay listens, from the client, and what it forwards to.
    relays: Vec<[SocketAddr; 2]>,
    /// The client connects to it.
    pub(super) target: SocketAddr,
}

impl Addresses {
    /// `hosts` is empty in a run on one machine; `own`: where a server of the user's own is.
    pub(super) fn new(
        path: &NetworkPath,
        relays: &[SystemVariant<'_>],
        hosts: &[PlannedHost],
        own: Option<SocketAddr>,
    ) -> Self {
        match own {
            _ if !hosts.is_empty() => return Self::on_hosts(relays, hosts, own),
            Some(server) => return Self { server, relays: Vec::new(), target: server },
            None => {}
        }
        let at = |ip: Ipv4Addr| SocketAddr::from((ip, PORT));
        let server = at(match path.device {
            Device::Loopback => Ipv4Addr::LOCALHOST,
            _ => address::far(path.routers(), true),
        });
        let (mut target, mut all) = (server, Vec::new());
        // From the server: each relay forwards to the one behind it that connections are made to.
        for (index, relay) in relays.iter().enumerate().rev() {
            let own = at(address::far(index, false));
            all.push([own, target]);
            if relay.variant.reached_at == ReachedAt::Relay {
                target = own;
            }
        }
        all.reverse();
        Self { server, relays: all, target }
    }

    fn on_hosts(relays: &[SystemVariant<'_>], hosts: &[PlannedHost], own: Option<SocketAddr>) -> Self {
        let of = |role: Role, port: u16| {
            let address = hosts[placement::index_of(hosts, role)].address;
            SocketAddr::from((address.unwrap_or(Ipv4Addr::UNSPECIFIED), port))
        };
        let server = own.unwrap_or_else(|| of(Role::Server, PORT_OF_HOST));
        let relay = of(Role::Relay, RELAY_OF_HOST);
        let at_relay = relays.iter().any(|relay| relay.variant.reached_at == ReachedAt::Relay);
        Self { server, relays: vec![[relay, server]], target: if at_relay { relay } else { server } }
    }

    /// Where a relay listens, and what it forwards to.
    pub(super) fn of_relay(&self, index: usize) -> [SocketAddr; 2] {
        self.relays.get(index).copied().unwrap_or([self.server; 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Shape;
    use crate::system::Registry;
    use std::path::Path;

    fn addresses(path: &NetworkPath, relays: &[&str]) -> Addresses {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registry = Registry::load(&home).unwrap();
        let relays: Vec<_> = relays.iter().map(|name| registry.variant(name, Role::Relay).unwrap()).collect();
        Addresses::new(path, &relays, &[], None)
    }

    fn text(addresses: [SocketAddr; 2]) -> [String; 2] {
        addresses.map(|address| address.ip().to_string())
    }

    #[test]
    fn each_relay_forwards_to_the_next_one_that_is_connected_to() {
        let row = addresses(&NetworkPath::new(Device::Veth, 3), &["haproxy-tcp", "direct", "nftables"]);
        assert_eq!(row.target.ip().to_string(), "10.77.1.1");
        assert_eq!(text(row.of_relay(0)), ["10.77.1.1", "10.77.3.2"]);
        assert_eq!(text(row.of_relay(2)), ["10.77.3.2", "10.77.4.2"]);
    }

    #[test]
    fn without_a_relay_that_is_connected_to_the_client_connects_to_the_server() {
        for (shape, server) in
            [(Shape::Loopback, "127.0.0.1"), (Shape::Link, "10.77.1.100"), (Shape::TunRouter, "10.77.2.2")]
        {
            let direct = addresses(&shape.into(), &["direct"]);
            assert_eq!((direct.target, direct.target.ip().to_string()), (direct.server, server.to_owned()));
        }
    }
}
