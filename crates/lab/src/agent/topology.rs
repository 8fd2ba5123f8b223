//! Topologies: namespaces and the links between them, made anew for each trial.

use super::netlink::Netlink;
use super::wire::{FAR, NEAR, Wire};
use super::{sysctls, tun};
use crate::protocol::HostName;
use crate::protocol::address::{self, TUN};
use linerate_model::WireCounts;
use linerate_model::path::{Device, Link, NetworkPath};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The index of `lo`, which the kernel makes first in every namespace.
pub(super) const LOOPBACK_INDEX: u32 = 1;

/// The namespaces of a trial; they exist as long as these descriptors.
pub(super) struct Network {
    hosts: BTreeMap<HostName, Namespace>,
    path: NetworkPath,
    /// Between two neighbours each, and not among the hosts: no role runs there.
    wires: Vec<(Namespace, Wire)>,
    /// Where the server's packets are counted. `None`: on an impaired path, which may hold them back itself,
    /// and on the host's own network, which carries others too.
    progress: Option<PacketCounter>,
}

struct Namespace {
    namespace: File,
    /// `/proc/net/tcp` and `udp` of this namespace, and `tcp6` and `udp6` if the kernel has IPv6.
    sockets: [Vec<File>; 2],
    /// `/proc/net/dev`.
    devices: File,
}

/// A column of a device's line in `/proc/net/dev`.
struct PacketCounter {
    host: HostName,
    device: &'static str,
    column: usize,
}

/// Columns of `/proc/net/dev` after the name: packets received and transmitted.
const RECEIVED: usize = 1;
const TRANSMITTED: usize = 9;

impl PacketCounter {
    /// The counter of what the server sends. A stack behind a TUN device sends what the kernel receives.
    fn of_server(path: &NetworkPath, row: &[HostName]) -> Option<Self> {
        let host = *row.last().filter(|_| !path.is_impaired())?;
        let (device, column) = match path.device {
            Device::Loopback => ("lo", TRANSMITTED),
            Device::Tun => (TUN, RECEIVED),
            Device::TunPair => (TUN, TRANSMITTED),
            Device::Veth => ("eth0", TRANSMITTED),
        };
        Some(Self { host, device, column })
    }
}

impl Network {
    pub(super) fn raise(path: NetworkPath) -> Result<Self, String> {
        and_back(|| Self::build(path))
    }

    /// The network of the host, where every role of this host is.
    pub(super) fn of_host(path: NetworkPath) -> Result<Self, String> {
        let hosts = [(HostName::Client, Namespace::current()?)].into();
        Ok(Self { hosts, path, wires: Vec::new(), progress: None })
    }

    fn build(path: NetworkPath) -> Result<Self, String> {
        let routers = path.routers();
        let mut row = vec![HostName::Client];
        row.extend((0..routers).map(HostName::router));
        if matches!(path.device, Device::Veth | Device::TunPair) {
            row.push(HostName::Server);
        }
        let progress = PacketCounter::of_server(&path, &row);
        let mut network = Self { hosts: BTreeMap::new(), path, wires: Vec::new(), progress };
        for name in &row {
            network.hosts.insert(*name, Namespace::make()?);
        }
        let links = network.path.links.clone();
        for (index, link) in links.iter().enumerate() {
            let is_last = index == routers;
            match network.path.device {
                Device::Loopback => {
                    network.enter(HostName::Client)?;
                    sysctls::allow_ipv6_on_loopback();
                    Netlink::open()?.set_mtu(LOOPBACK_INDEX, link.mtu)?;
                }
                Device::Tun | Device::TunPair if is_last => {
                    network.add_tun(row[index], link.mtu, &address::near(index))?;
                    if network.path.has_two_tuns() {
                        network.add_tun(HostName::Server, link.mtu, &[address::far(index, true)])?;
                    }
                }
                _ => network.join(index, link, [row[index], row[index + 1]], is_last)?,
            }
        }
        network.set_routes(&row)?;
        Ok(network)
    }

    /// Each router forwards to the next one, and back to the networks before it.
    fn set_routes(&self, row: &[HostName]) -> Result<(), String> {
        let routers = self.path.routers();
        if routers == 0 {
            return Ok(());
        }
        self.route(HostName::Client, address::ALL, address::far(0, false))?;
        for router in 0..routers {
            self.enter(HostName::router(router))?;
            sysctls::forward()?;
            if router + 1 < routers {
                self.route(HostName::router(router), address::ALL, address::far(router + 1, false))?;
            }
            for before in 0..router {
                self.route(HostName::router(router), address::network(before), address::near(router)[0])?;
            }
        }
        // A stack in a process has no routes of the kernel.
        let is_server = row.last() == Some(&HostName::Server);
        if is_server { self.route(HostName::Server, address::ALL, address::near(routers)[0]) } else { Ok(()) }
    }

    /// A veth pair between two neighbours, with addresses of one /24; or two pairs with a wire between them.
    fn join(
        &mut self,
        index: usize,
        link: &Link,
        [near, far]: [HostName; 2],
        is_last: bool,
    ) -> Result<(), String> {
        let near_link = if near == HostName::Client { "eth0" } else { "eth1" };
        let (near_addresses, far_address) = (address::near(index), address::far(index, is_last));
        let end = |host, name, there: &Namespace, peer| {
            self.enter(host)?;
            Netlink::open()?.add_veth(name, peer, there.namespace.as_fd(), link.mtu, link.is_impaired())
        };
        if link.is_impaired() {
            let between = Namespace::make()?;
            end(near, near_link, &between, NEAR)?;
            end(far, "eth0", &between, FAR)?;
            setns(&between.namespace, CloneFlags::CLONE_NEWNET)
                .map_err(|e| format!("entering a wire: {e}"))?;
            let wire = Wire::raise(index + 1, link)?;
            self.wires.push((between, wire));
            self.enter(near)?;
        } else {
            end(near, near_link, self.host(far)?, "eth0")?;
        }
        set_addresses(near_link, &near_addresses)?;
        self.enter(far)?;
        set_addresses("eth0", &[far_address])
    }

    /// A TUN device; its whole /24 is behind it.
    fn add_tun(&self, host: HostName, mtu: u32, addresses: &[Ipv4Addr]) -> Result<(), String> {
        self.enter(host)?;
        tun::make(TUN)?;
        Netlink::open()?.set_mtu(index_of(TUN)?, mtu)?;
        set_addresses(TUN, addresses)
    }

    /// A descriptor for each of two TUN devices, the one nearer to the client first.
    pub(super) fn tuns(&self) -> Result<Vec<OwnedFd>, String> {
        let open = |host: HostName| {
            self.enter(host)?;
            tun::open().map_err(|e| format!("opening the TUN device of {host:?}: {e}"))
        };
        let near = self.path.routers().checked_sub(1).map_or(HostName::Client, HostName::router);
        and_back(|| [near, HostName::Server].into_iter().map(open).collect())
    }

    fn route(&self, host: HostName, to: (Ipv4Addr, u8), gateway: Ipv4Addr) -> Result<(), String> {
        self.enter(host)?;
        Netlink::open()?.add_route(to, gateway)
    }

    /// The counts of the network's wires so far.
    pub(super) fn wires(&self) -> Vec<WireCounts> {
        self.wires.iter().map(|(_, wire)| wire.counts()).collect()
    }

    fn enter(&self, host: HostName) -> Result<(), String> {
        setns(&self.host(host)?.namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|e| format!("entering {host:?}: {e}"))
    }

    fn host(&self, name: HostName) -> Result<&Namespace, String> {
        // On loopback every role is in the client's namespace.
        self.hosts
            .get(&name)
            .or_else(|| (self.hosts.len() == 1).then(|| self.hosts.get(&HostName::Client))?)
            .ok_or_else(|| format!("this path has no {name:?}"))
    }

    pub(super) fn namespace(&self, name: HostName) -> Result<BorrowedFd<'_>, String> {
        Ok(self.host(name)?.namespace.as_fd())
    }

    /// Packets that the server has sent so far, where they are counted.
    pub(super) fn server_packets(&self) -> Option<u64> {
        let PacketCounter { host, device, column } = self.progress.as_ref()?;
        let table = read_again(&self.host(*host).ok()?.devices).ok()?;
        table.lines().find_map(|line| packets(line, device, *column))
    }

    /// Reads the kernel's socket table; a connection attempt would be visible to the system under test.
    pub(super) fn listeners(&self, name: HostName, udp: bool) -> Result<Vec<SocketAddr>, String> {
        let mut all = Vec::new();
        for sockets in &self.host(name)?.sockets[usize::from(udp)] {
            let table = read_again(sockets).map_err(|e| format!("the table of sockets: {e}"))?;
            all.extend(table.lines().skip(1).filter_map(|line| listener(line, udp)));
        }
        // The tables do not say which sockets of IPv6 have IPv4 as well. Those have the port of both.
        let ports: Vec<u16> =
            all.iter().filter(|one| one.ip() == Ipv6Addr::UNSPECIFIED).map(SocketAddr::port).collect();
        if !ports.is_empty() {
            all.extend(and_back(|| {
                self.enter(name)?;
                let taken = ports.iter().filter(|port| is_taken(**port, udp));
                Ok(taken.map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port))).collect::<Vec<_>>())
            })?);
        }
        Ok(all)
    }
}

/// True if another socket has this port of IPv4.
fn is_taken(port: u16, udp: bool) -> bool {
    let address = (Ipv4Addr::UNSPECIFIED, port);
    if udp { UdpSocket::bind(address).is_err() } else { TcpListener::bind(address).is_err() }
}

/// A file of `/proc` from its beginning.
fn read_again(mut file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// A count of a line of `/proc/net/dev` (proc_pid_net(5)), if it is of this device.
fn packets(line: &str, device: &str, column: usize) -> Option<u64> {
    let (name, counts) = line.split_once(':')?;
    if name.trim() != device {
        return None;
    }
    counts.split_ascii_whitespace().nth(column)?.parse().ok()
}

impl Namespace {
    /// Makes a network namespace; the agent is inside it afterwards.
    fn make() -> Result<Self, String> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|e| format!("a new network namespace: {e}"))?;
        sysctls::set_all()?;
        let netlink = Netlink::open()?;
        netlink.set_up(LOOPBACK_INDEX)?;
        Self::current()
    }

    /// The namespace in which the agent is.
    fn current() -> Result<Self, String> {
        let open = |path: &str| File::open(path).map_err(|e| format!("{path}: {e}"));
        let sockets = |name: &str| -> Result<Vec<File>, String> {
            let six = File::open(format!("/proc/self/net/{name}6"));
            Ok([open(&format!("/proc/self/net/{name}"))?].into_iter().chain(six).collect())
        };
        Ok(Self {
            namespace: open("/proc/self/ns/net")?,
            sockets: [sockets("tcp")?, sockets("udp")?],
            devices: open("/proc/self/net/dev")?,
        })
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

pub(super) fn index_of(link: &str) -> Result<u32, String> {
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

/// The address of a listening socket from a line of `/proc/net/tcp`, `udp`, `tcp6` or `udp6`
/// (proc_pid_net(5)): `sl local_address rem_address st ...`, state 0A is LISTEN, and of UDP 07 is a socket
/// without a peer. Addresses are words of 32 bits in hexadecimal.
fn listener(line: &str, udp: bool) -> Option<SocketAddr> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = address.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<_>>>()?.concat();
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    (fields.nth(1) == Some(if udp { "07" } else { "0A" })).then_some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::address::{CLIENT, client_sources};

    #[test]
    fn a_listening_socket_is_recognised_by_its_state_and_has_its_address() {
        let listen = "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0";
        let connected =
            "   1: 0200A84D:0050 0100A84D:9C40 01 00000000:00000000 00:00000000 00000000 0 0 1 1 0";
        let listener = |line: &str| super::listener(line, false);
        assert_eq!(listener(listen), Some("0.0.0.0:80".parse().unwrap()));
        assert_eq!(
            listener(&listen.replace("00000000:0050", "0100007F:1F90")),
            "127.0.0.1:8080".parse().ok()
        );
        let six = "00000000000000000000000001000000:1F90";
        assert_eq!(listener(&listen.replace("00000000:0050", six)), "[::1]:8080".parse().ok());
        assert_eq!(listener(connected), None);
        let datagrams = listen.replace(" 0A ", " 07 ");
        assert_eq!(super::listener(&datagrams, true), Some("0.0.0.0:80".parse().unwrap()));
        assert_eq!((listener(&datagrams), super::listener(listen, true)), (None, None));
        assert_eq!(listener(""), None);
    }

    #[test]
    fn packets_of_a_device_are_read_by_column() {
        let line = "  eth0: 1296 16 0 0 0 0 0 0 936 12 0 0 0 0 0 0";
        assert_eq!(packets(line, "eth0", RECEIVED), Some(16));
        assert_eq!(packets(line, "eth0", TRANSMITTED), Some(12));
        assert_eq!(packets(line, "eth", TRANSMITTED), None);
        assert_eq!(packets(" face |bytes packets", "eth0", RECEIVED), None);
    }

    #[test]
    fn the_client_has_all_its_addresses() {
        assert_eq!(client_sources().first(), Some(&CLIENT));
        assert!(!client_sources().contains(&address::far(0, true)));
    }
}
