//! The addresses of a server's own socket. A datagram from one of them has a forged source: a response to it
//! would arrive at the server itself, and be answered again, without end.

use crate::refusal::{Doing, Refusal};
use nix::ifaddrs::getifaddrs;
use std::net::{IpAddr, SocketAddr};

/// Where a server is reached; of a server at all addresses, those of the host when it started.
#[derive(Debug, Clone)]
pub(crate) struct OwnAddresses {
    port: u16,
    ips: Vec<IpAddr>,
}

impl OwnAddresses {
    /// The own addresses of a socket that is bound to `address`.
    ///
    /// # Errors
    /// The kernel does not list the addresses of the host.
    pub(crate) fn for_address(address: SocketAddr) -> Result<Self, Refusal> {
        let ips = if address.ip().is_unspecified() {
            let all = getifaddrs().doing("listing the addresses of this host")?;
            all.filter_map(|each| ip(&each.address?)).collect()
        } else {
            vec![address.ip()]
        };
        Ok(Self { port: address.port(), ips })
    }

    /// Whether `from` is this server.
    #[inline]
    pub(crate) fn contains(&self, from: SocketAddr) -> bool {
        // The port first: it differs for all but one in 65,536.
        from.port() == self.port && self.has(from.ip().to_canonical())
    }

    #[cold]
    fn has(&self, ip: IpAddr) -> bool {
        let loopback = ip.is_loopback() && self.ips.iter().any(IpAddr::is_loopback);
        loopback || self.ips.contains(&ip)
    }
}

fn ip(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_recognises_its_own_addresses_and_no_others() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (bound, own, other) in [
            ("127.0.0.1:9000", "127.0.0.1:9000", "127.0.0.1:9001"),
            ("10.77.1.2:9000", "10.77.1.2:9000", "10.77.1.1:9000"),
            ("0.0.0.0:9000", "127.0.0.1:9000", "10.255.254.253:9000"),
            ("[::]:9000", "[::ffff:127.0.0.1]:9000", "127.0.0.1:9001"),
        ] {
            let addresses = OwnAddresses::for_address(at(bound)).unwrap();
            assert!(addresses.contains(at(own)) && !addresses.contains(at(other)), "{bound}");
        }
    }
}
