//! The addresses of a URL's host, and which of them is used.

use crate::error::Error;
use crate::output::note;
use crate::url::Url;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Timeout for each address of a name: twice the time of a slow path over three continents.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long an address is tried alone: RFC 8305, section 5.
const HEAD_START: Duration = Duration::from_millis(250);
/// How long a refusal of a datagram may take to come back.
const REFUSAL: Duration = Duration::from_millis(100);

/// All addresses of the host.
///
/// # Errors
/// The name cannot be resolved.
pub(crate) fn all(url: &Url) -> Result<Vec<SocketAddr>, Error> {
    let Url { host, port, .. } = url;
    // RFC 6761, section 6.3: both, whatever a resolver has.
    if host == "localhost" || host.ends_with(".localhost") {
        let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        return Ok(both.map(|ip| SocketAddr::new(ip, *port)).into());
    }
    let found = (host.as_str(), *port).to_socket_addrs().map_err(|e| {
        let next = if host.contains('%') { "check the address and its interface" } else { "check the name" };
        Error::NothingMeasured(format!("dns: {host} has no address: {e} ({next})"))
    })?;
    let mut all: Vec<SocketAddr> = found.collect();
    // A resolver may name an address twice, once for each protocol.
    all.dedup();
    Ok(all)
}

/// The address that a client uses: the first that accepts a connection, or that refuses no datagram. A name
/// such as `localhost` may have several, with a server on only one of them.
///
/// # Errors
/// The name cannot be resolved, or no address accepts a connection.
pub(crate) fn to_connect(url: &Url) -> Result<SocketAddr, Error> {
    match &all(url)?[..] {
        // Nobody listens for datagrams, so a look shows only a refusal.
        [only] if url.scheme.is_of_datagrams() => Ok(*only),
        several => {
            first_to_accept(several, if url.scheme.is_of_datagrams() { accepts_datagrams } else { accepts })
        }
    }
}

/// As [`to_connect`], and then all others of its family that accept a connection: those of a name that has
/// several servers.
///
/// # Errors
/// As of [`to_connect`].
pub(crate) fn all_to_connect(url: &Url) -> Result<Vec<SocketAddr>, Error> {
    let first = to_connect(url)?;
    if url.scheme.is_of_datagrams() {
        return Ok(vec![first]);
    }
    Ok(with_others(first, &all(url)?))
}

/// One that does not accept is told, and left out.
fn with_others(first: SocketAddr, all: &[SocketAddr]) -> Vec<SocketAddr> {
    let others = all.iter().filter(|other| **other != first && other.is_ipv4() == first.is_ipv4());
    let tried: Vec<_> =
        others.copied().map(|other| (other, std::thread::spawn(move || accepts(other)))).collect();
    let accepted = tried.into_iter().filter_map(|(other, tried)| {
        match tried.join().expect("a look at an address does not panic") {
            Ok(()) => Some(other),
            Err(e) => {
                note(&format!("{other} accepts no connection, and is left out: {e}"));
                None
            }
        }
    });
    std::iter::once(first).chain(accepted).collect()
}

/// The first address that accepts. The next one is tried when an earlier one has refused, or has not answered
/// in [`HEAD_START`] (RFC 8305): a dead address costs no more than that.
fn first_to_accept(
    addresses: &[SocketAddr],
    accepts: fn(SocketAddr) -> std::io::Result<()>,
) -> Result<SocketAddr, Error> {
    let (sender, tried) = channel();
    let (mut left, mut under_way, mut refused) = (by_turns(addresses), 0, Vec::new());
    loop {
        let next = left.pop_front();
        if let Some(address) = next {
            let sender = sender.clone();
            // Nobody waits for one that is late: it ends by its time limit, or with the process.
            std::thread::spawn(move || sender.send((address, accepts(address))));
            under_way += 1;
        } else if under_way == 0 {
            let next = match addresses.iter().any(lacks_zone) {
                true => "an address of a link needs its zone, such as [fe80::1%eth0]",
                false => "check that the server runs and listens there",
            };
            return Err(Error::NothingMeasured(format!("{} ({next})", refused.join(", "))));
        }
        let patience = if left.is_empty() { 2 * CONNECT_TIMEOUT } else { HEAD_START };
        match tried.recv_timeout(patience) {
            Ok((address, Ok(()))) => return Ok(address),
            Ok((address, Err(e))) => {
                under_way -= 1;
                refused.push(format!("{address}: {e}"));
            }
            Err(_) => {}
        }
    }
}

/// A link-local address, which every interface has.
fn lacks_zone(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// IPv6 and IPv4 by turns, in the order of the resolver.
fn by_turns(addresses: &[SocketAddr]) -> VecDeque<SocketAddr> {
    let is_first =
        |address: &SocketAddr| address.is_ipv6() == addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(is_first);
    let longest = first.len().max(second.len());
    (0..longest).flat_map(|at| [first.get(at), second.get(at)]).flatten().copied().collect()
}

fn accepts(address: SocketAddr) -> std::io::Result<()> {
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map(drop)
}

/// An empty datagram, which no protocol here answers, is not refused: by a kernel where no socket is bound.
fn accepts_datagrams(address: SocketAddr) -> std::io::Result<()> {
    let any =
        if address.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(REFUSAL))?;
    socket.send(&[])?;
    match socket.recv(&mut [0]) {
        Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => Err(e),
        _ => Ok(()),
    }
}

/// The address where nobody can be asked, as for datagrams or a server that begins to listen: that of IPv4,
/// if the name has both kinds.
///
/// # Errors
/// The name cannot be resolved.
pub(crate) fn usual(url: &Url) -> Result<SocketAddr, Error> {
    let all = all(url)?;
    let first = all.iter().find(|address| address.is_ipv4()).or(all.first()).copied();
    first.ok_or_else(|| Error::NothingMeasured(format!("dns: {} has no address", url.host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_port_and_an_unknown_name_have_different_messages() {
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = |url: &str| to_connect(&Url::parse(url).unwrap()).unwrap_err().to_string();
        assert!(error(&dead.to_string()).contains("refused"));
        assert!(error("no-such-name.invalid").contains("dns"));
    }

    #[test]
    fn the_address_that_accepts_is_used_whatever_its_family_and_place() {
        let v6 = std::net::TcpListener::bind("[::1]:0").unwrap().local_addr().unwrap();
        let v4 = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let good = v4.local_addr().unwrap();
        let dead = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 9), good.port()));
        for order in [[v6, dead, good], [good, dead, v6], [dead, good, v6]] {
            assert_eq!(first_to_accept(&order, accepts).unwrap(), good);
        }
        let error = first_to_accept(&[v6, dead], accepts).unwrap_err().to_string();
        assert!(error.contains(&v6.to_string()) && error.contains(&dead.to_string()), "{error}");
        assert_eq!(by_turns(&[dead, good, v6]), [dead, v6, good]);
    }

    #[test]
    fn all_addresses_of_the_first_ones_family_that_accept_are_used() {
        let listen =
            |ip: [u8; 4], port: u16| std::net::TcpListener::bind((Ipv4Addr::from(ip), port)).unwrap();
        let one = listen([127, 0, 0, 1], 0);
        let port = one.local_addr().unwrap().port();
        let two = listen([127, 0, 0, 2], port);
        let v6 = std::net::TcpListener::bind("[::1]:0").unwrap();
        let [first, second, other] = [&one, &two, &v6].map(|listener| listener.local_addr().unwrap());
        let dead = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 9), port));
        assert_eq!(with_others(first, &[second, other, dead, first]), [first, second]);
        assert_eq!(with_others(other, &[first, second, other]), [other]);
    }

    #[test]
    fn a_server_of_datagrams_on_one_address_of_a_name_is_found() {
        let server = UdpSocket::bind("[::1]:0").unwrap();
        let v6 = server.local_addr().unwrap();
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, v6.port()));
        assert_eq!(first_to_accept(&[v4, v6], accepts_datagrams).unwrap(), v6);
    }

    #[test]
    fn a_link_local_address_without_its_zone_is_told_so() {
        let url = Url::parse("http://[fe80::1]:9/").unwrap();
        let error = to_connect(&url).unwrap_err().to_string();
        assert!(error.contains("needs its zone, such as [fe80::1%eth0]"), "{error}");
    }

    #[test]
    fn localhost_is_both_of_its_addresses() {
        let server = std::net::TcpListener::bind("[::1]:0").unwrap().local_addr().unwrap();
        let listener = std::net::TcpListener::bind(server).unwrap();
        let url = Url::parse(&format!("http://localhost:{}/", server.port())).unwrap();
        assert_eq!(all(&url).unwrap().len(), 2);
        assert_eq!(to_connect(&url).unwrap(), listener.local_addr().unwrap());
    }

    #[test]
    fn datagrams_go_to_the_address_without_a_look_whether_anything_listens() {
        let address = to_connect(&Url::parse("udp://127.0.0.1:9").unwrap()).unwrap();
        assert_eq!(address, "127.0.0.1:9".parse().unwrap());
    }
}
