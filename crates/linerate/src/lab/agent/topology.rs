//! Topologies: namespaces and the links between them, made anew for each trial.

use super::netlink::Netlink;
use super::{sysctls, tun};
use crate::lab::protocol::address::{
    ROUTER_CLIENT_SIDE, ROUTER_SERVER_SIDE, SERVER, SERVER_ON_LINK, TUN, client_sources,
};
use crate::lab::protocol::{HostName, NetworkPath};
use crate::system::manifest::Topology;
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The index of `lo`, which the kernel makes first in every namespace.
const LOOPBACK_INDEX: u32 = 1;

/// The namespaces of a trial; they exist as long as these descriptors.
pub(super) struct Network {
    hosts: BTreeMap<HostName, Namespace>,
    path: NetworkPath,
}

struct Namespace {
    namespace: File,
    /// `/proc/net/tcp` of this namespace.
    sockets: File,
}

impl Network {
    pub(super) fn raise(path: NetworkPath) -> Result<Self, String> {
        and_back(|| Self::build(path))
    }

    fn build(path: NetworkPath) -> Result<Self, String> {
        use HostName::{Client, Router, Server};
        let names: &[HostName] = match path.topology {
            Topology::Loopback | Topology::Tun => &[Client],
            Topology::Link | Topology::TunPair => &[Client, Server],
            Topology::TunRouter => &[Client, Router],
            Topology::Router | Topology::TunPairRouter => &[Client, Router, Server],
        };
        let mut network = Self { hosts: BTreeMap::new(), path };
        for name in names {
            network.hosts.insert(*name, Namespace::make()?);
        }
        if path.topology.has_router() {
            network.join((Client, "eth0"), (Router, "eth0"), &client_sources(), ROUTER_CLIENT_SIDE)?;
            network.route(Client, ROUTER_CLIENT_SIDE)?;
            network.enter(Router)?;
            sysctls::forward()?;
        }
        match path.topology {
            Topology::Loopback => {
                network.enter(Client)?;
                Netlink::open()?.set_mtu(LOOPBACK_INDEX, path.mtu)?;
            }
            Topology::Link => {
                network.join((Client, "eth0"), (Server, "eth0"), &client_sources(), SERVER_ON_LINK)?
            }
            Topology::Router => {
                network.join((Router, "eth1"), (Server, "eth0"), &[ROUTER_SERVER_SIDE], SERVER)?;
                network.route(Server, ROUTER_SERVER_SIDE)?;
            }
            Topology::Tun => network.add_tun(Client, &client_sources())?,
            Topology::TunPair => {
                network.add_tun(Client, &client_sources())?;
                network.add_tun(Server, &[SERVER_ON_LINK])?;
            }
            Topology::TunRouter => network.add_tun(Router, &[ROUTER_SERVER_SIDE])?,
            Topology::TunPairRouter => {
                network.add_tun(Router, &[ROUTER_SERVER_SIDE])?;
                network.add_tun(Server, &[SERVER])?;
                network.route(Server, ROUTER_SERVER_SIDE)?;
            }
        }
        Ok(network)
    }

    /// A veth pair between two hosts, with addresses of one /24.
    fn join(
        &self,
        (near, near_link): (HostName, &str),
        (far, far_link): (HostName, &str),
        near_addresses: &[Ipv4Addr],
        far_address: Ipv4Addr,
    ) -> Result<(), String> {
        self.enter(near)?;
        Netlink::open()?.add_veth(near_link, far_link, self.host(far)?.namespace.as_fd(), self.path.mtu)?;
        set_addresses(near_link, near_addresses)?;
        self.enter(far)?;
        set_addresses(far_link, &[far_address])
    }

    /// A TUN device; its whole /24 is behind it.
    fn add_tun(&self, host: HostName, addresses: &[Ipv4Addr]) -> Result<(), String> {
        self.enter(host)?;
        tun::make(TUN)?;
        Netlink::open()?.set_mtu(index_of(TUN)?, self.path.mtu)?;
        set_addresses(TUN, addresses)
    }

    /// A descriptor for each of two TUN devices, the one nearer to the client first.
    pub(super) fn tuns(&self) -> Result<Vec<OwnedFd>, String> {
        let open = |host: HostName| {
            self.enter(host)?;
            tun::open().map_err(|e| format!("opening the TUN device of {host:?}: {e}"))
        };
        let near = if self.path.topology.has_router() { HostName::Router } else { HostName::Client };
        and_back(|| [near, HostName::Server].into_iter().map(open).collect())
    }

    fn route(&self, host: HostName, gateway: Ipv4Addr) -> Result<(), String> {
        self.enter(host)?;
        Netlink::open()?.add_default_route(gateway)
    }

    fn enter(&self, host: HostName) -> Result<(), String> {
        setns(&self.host(host)?.namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|e| format!("entering {host:?}: {e}"))
    }

    fn host(&self, name: HostName) -> Result<&Namespace, String> {
        // On the loopback topology every role is in the client's namespace.
        self.hosts
            .get(&name)
            .or_else(|| (self.hosts.len() == 1).then(|| self.hosts.get(&HostName::Client))?)
            .ok_or_else(|| format!("this topology has no {name:?}"))
    }

    pub(super) fn namespace(&self, name: HostName) -> Result<BorrowedFd<'_>, String> {
        Ok(self.host(name)?.namespace.as_fd())
    }

    /// Reads the kernel's socket table; a connection attempt would be visible to the system under test.
    pub(super) fn listening(&self, name: HostName, port: u16) -> Result<bool, String> {
        use std::io::{Read, Seek};
        let mut table = String::new();
        let mut sockets = &self.host(name)?.sockets;
        sockets
            .rewind()
            .and_then(|()| sockets.read_to_string(&mut table))
            .map_err(|e| format!("the table of sockets: {e}"))?;
        Ok(table.lines().skip(1).any(|line| is_listening(line, port)))
    }
}

impl Namespace {
    /// Makes a network namespace; the agent is inside it afterwards.
    fn make() -> Result<Self, String> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("a new network namespace: {e}"))?;
        sysctls::set_all()?;
        let netlink = Netlink::open()?;
        netlink.set_up(LOOPBACK_INDEX)?;
        let open = |path: &str| File::open(path).map_err(|e| format!("{path}: {e}"));
        Ok(Self { namespace: open("/proc/self/ns/net")?, sockets: open("/proc/self/net/tcp")? })
    }
}

/// Runs `work` in other namespaces and returns to the agent's own; otherwise the last namespace would exist
/// as long as the agent.
fn and_back<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let home = File::open("/proc/self/ns/net").map_err(|e| format!("/proc/self/ns/net: {e}"))?;
    let result = work();
    setns(&home, CloneFlags::CLONE_NEWNET).map_err(|e| format!("returning to the agent's namespace: {e}"))?;
    result
}

fn index_of(link: &str) -> Result<u32, String> {
    if_nametoindex(link).map_err(|e| format!("the link {link}: {e}"))
}

fn set_addresses(link: &str, addresses: &[Ipv4Addr]) -> Result<(), String> {
    let netlink = Netlink::open()?;
    let index = index_of(link)?;
    for address in addresses {
        netlink.add_address(index, *address, 24)?;
    }
    netlink.set_up(index)
}

/// A line of `/proc/net/tcp` (proc_pid_net(5)): `sl local_address rem_address st ...`, state 0A is LISTEN.
fn is_listening(line: &str, port: u16) -> bool {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local_port = fields.next().and_then(|local| u16::from_str_radix(local.rsplit(':').next()?, 16).ok());
    local_port == Some(port) && fields.nth(1) == Some("0A")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::protocol::address::CLIENT;

    #[test]
    fn a_listening_socket_is_recognised_by_port_and_state() {
        let listen = "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0";
        let connected =
            "   1: 0200A84D:0050 0100A84D:9C40 01 00000000:00000000 00:00000000 00000000 0 0 1 1 0";
        assert!(is_listening(listen, 80));
        assert!(!is_listening(listen, 81));
        assert!(!is_listening(connected, 80));
        assert!(!is_listening("", 80));
    }

    #[test]
    fn the_client_has_all_its_addresses() {
        assert_eq!(client_sources().first(), Some(&CLIENT));
        assert!(!client_sources().contains(&SERVER_ON_LINK));
    }
}
