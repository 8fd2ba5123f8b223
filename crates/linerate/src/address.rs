//! The addresses of a URL's host, and which of them is used.

use crate::error::Error;
use crate::url::Url;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Timeout for each address of a name: twice the time of a slow path over three continents.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// All addresses of the host.
///
/// # Errors
/// The name cannot be resolved.
pub(crate) fn all(url: &Url) -> Result<Vec<SocketAddr>, Error> {
    let Url { host, port, .. } = url;
    let found = (host.as_str(), *port)
        .to_socket_addrs()
        .map_err(|e| Error::NothingMeasured(format!("dns: {host} has no address: {e} (check the name)")))?;
    Ok(found.collect())
}

/// The address that a client uses: the first that accepts a connection, where the protocol has some. A name
/// such as `localhost` may have several, with a server on only one of them.
///
/// # Errors
/// The name cannot be resolved, or no address accepts a connection.
pub(crate) fn to_connect(url: &Url) -> Result<SocketAddr, Error> {
    if url.scheme.is_of_datagrams() {
        return usual(url);
    }
    let mut last = format!("{} has no address", url.host);
    for address in all(url)? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(address),
            Err(e) => last = format!("{address}: {e} (check that the server runs and listens there)"),
        }
    }
    Err(Error::NothingMeasured(last))
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
    fn datagrams_go_to_the_address_without_a_look_whether_anything_listens() {
        let address = to_connect(&Url::parse("udp://:9").unwrap()).unwrap();
        assert_eq!(address, "127.0.0.1:9".parse().unwrap());
    }
}
