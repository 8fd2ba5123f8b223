//! `URL` on the command line: host, address and path; checks that the host accepts connections.

use crate::cli::TrustArgs;
use crate::error::Error;
use linerate_contract::Tls;
use std::fs;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout for each address of a name: twice the time of a slow path over three continents.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A scheme without TLS and the one with it.
pub(in crate::command) type Schemes = [&'static str; 2];

pub(in crate::command) const HTTP: Schemes = ["http", "https"];
/// HTTP/3 has no form without TLS.
pub(in crate::command) const HTTPS: Schemes = ["https", "https"];
/// The schemes of servers that echo, which have one each.
pub(in crate::command) const TCP: Schemes = ["tcp", "tcp"];
pub(in crate::command) const UDP: Schemes = ["udp", "udp"];
pub(in crate::command) const WEBSOCKET: Schemes = ["ws", "wss"];

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command) struct Target {
    pub(in crate::command) secure: bool,
    /// The name, or the address without brackets.
    pub(in crate::command) host: String,
    /// Where to connect.
    dial: (String, u16),
    /// As in the `Host` header: with brackets, and with the port unless it is the scheme's default.
    pub(in crate::command) authority: String,
    pub(in crate::command) path: String,
}

impl Target {
    /// # Errors
    /// The URL is invalid; with the reason and an example.
    pub(in crate::command) fn parse(url: &str, schemes: &Schemes) -> Result<Self, Error> {
        let [open, closed] = schemes;
        let invalid = |what: &str| {
            Error::Input(format!("URL: {what}: {url:?} (example: {open}://127.0.0.1:8080/path)"))
        };
        let (secure, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme == *open => (false, rest),
            Some((scheme, rest)) if scheme == *closed => (true, rest),
            Some((scheme, _)) => {
                return Err(invalid(&format!("the scheme is {scheme}, not {open} or {closed}")));
            }
            None => return Err(invalid(&format!("it does not begin with {open}:// or {closed}://"))),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(invalid("it has a user name; give it as --user NAME:PASSWORD"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| invalid("its [ has no ]"))?;
                (host, port.strip_prefix(':').filter(|p| !p.is_empty()))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || !host.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(invalid("it has no host"));
        }
        let usual = if secure { 443 } else { 80 };
        let port = match port.map(str::parse::<u16>) {
            None => usual,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(invalid("its port is not a number from 1 to 65535")),
        };
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let authority = if port == usual { bracketed } else { format!("{bracketed}:{port}") };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { secure, host: host.to_owned(), dial: (host.to_owned(), port), authority, path })
    }

    /// The same with another address: `--connect-to HOST:PORT`.
    ///
    /// # Errors
    /// No host and port.
    pub(in crate::command) fn at(self, place: Option<&str>) -> Result<Self, Error> {
        let Some(place) = place else { return Ok(self) };
        let invalid = || Error::Input(format!("--connect-to {place}: expected HOST:PORT"));
        let (host, port) = place.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(invalid());
        }
        Ok(Self { dial: (host.to_owned(), port), ..self })
    }

    /// The targets of several URLs, which are one server's.
    ///
    /// # Errors
    /// An invalid URL, or two servers.
    pub(super) fn of_one_server(urls: &[String]) -> Result<Vec<Self>, Error> {
        let all = urls.iter().map(|url| Self::parse(url, &HTTP)).collect::<Result<Vec<_>, _>>()?;
        let server = |target: &Self| (target.secure, target.authority.clone());
        match all.iter().position(|target| server(target) != server(&all[0])) {
            Some(other) => Err(Error::Input(format!(
                "{} and {} are on two servers: load each by itself, or linerate compare both",
                urls[0], urls[other]
            ))),
            None => Ok(all),
        }
    }

    /// Host and port, for a proxy.
    pub(super) fn place(&self) -> String {
        let (host, port) = &self.dial;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The path, which a file of requests has in its place.
    ///
    /// # Errors
    /// Both are there.
    pub(in crate::command) fn path_beside(&self, requests: Option<&Path>) -> Result<&str, Error> {
        match requests {
            Some(file) if self.path != "/" => Err(Error::Input(format!(
                "the paths are those of --requests {}: give the URL without {}",
                file.display(),
                self.path
            ))),
            _ => Ok(&self.path),
        }
    }

    /// The CA certificate that a client of this host trusts, its own certificate, and the server's name.
    ///
    /// # Errors
    /// A file cannot be read, or certificates are given for a URL without TLS.
    pub(in crate::command) fn tls(&self, trust: &TrustArgs) -> Result<Option<Tls>, Error> {
        let TrustArgs { authority, cert, key, .. } = trust;
        if !self.secure {
            return match cert {
                Some(_) => Err(Error::Input("--cert is for URLs with TLS (https://, wss://)".into())),
                None => Ok(None),
            };
        }
        let read = |option: &str, path: Option<&PathBuf>| match path {
            Some(path) => fs::read_to_string(path)
                .map_err(|e| Error::Input(format!("--{option} {}: {e}", path.display()))),
            None => Ok(String::new()),
        };
        Ok(Some(Tls {
            authority: read("authority", authority.as_ref())?,
            certificate: read("cert", cert.as_ref())?,
            key: read("key", key.as_ref().or(cert.as_ref()))?,
            name: self.host.clone(),
        }))
    }

    /// The addresses of the host.
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub(in crate::command) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let (host, port) = &self.dial;
        let found = (host.as_str(), *port).to_socket_addrs().map_err(|e| {
            Error::NothingMeasured(format!("dns: {host} has no address: {e} (check the name)"))
        })?;
        Ok(found.collect())
    }

    /// Where datagrams are sent: nothing says whether somebody receives them, so a name with both kinds of
    /// addresses is the one of IPv4.
    ///
    /// # Errors
    /// The name cannot be resolved.
    pub(in crate::command) fn datagram_address(&self) -> Result<SocketAddr, Error> {
        let all = self.addresses()?;
        let first = all.iter().find(|address| address.is_ipv4()).or(all.first()).copied();
        first.ok_or_else(|| Error::NothingMeasured(format!("dns: {} has no address", self.host)))
    }

    /// The first address of the host that accepts a connection. A name such as `localhost` may have several,
    /// with a server on only one of them.
    ///
    /// # Errors
    /// The name cannot be resolved, or no address accepts a connection.
    pub(in crate::command) fn resolve(&self) -> Result<SocketAddr, Error> {
        let mut last = format!("{} has no address", self.host);
        for address in self.addresses()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => return Ok(address),
                Err(e) => last = format!("{address}: {e} (check that the server runs and listens there)"),
            }
        }
        Err(Error::NothingMeasured(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> (bool, String, u16, String, String) {
        let t = Target::parse(url, &HTTP).unwrap();
        (t.secure, t.host, t.dial.1, t.authority, t.path)
    }

    #[test]
    fn urls_are_split_into_their_parts() {
        let owned = |tls, host: &str, port, authority: &str, path: &str| {
            (tls, host.to_owned(), port, authority.to_owned(), path.to_owned())
        };
        assert_eq!(parts("http://a.example"), owned(false, "a.example", 80, "a.example", "/"));
        assert_eq!(parts("https://a.example/x?y=z#w"), owned(true, "a.example", 443, "a.example", "/x?y=z"));
        assert_eq!(
            parts("http://127.0.0.1:8080?q"),
            owned(false, "127.0.0.1", 8080, "127.0.0.1:8080", "/?q")
        );
        assert_eq!(parts("http://[::1]:81/"), owned(false, "::1", 81, "[::1]:81", "/"));
        assert_eq!(parts("https://[::1]"), owned(true, "::1", 443, "[::1]", "/"));
    }

    #[test]
    fn another_place_to_connect_to_leaves_the_name() {
        let target = || Target::parse("https://shop.example/", &HTTP).unwrap();
        let moved = target().at(Some("[::1]:8443")).unwrap();
        assert_eq!((moved.host.as_str(), moved.authority.as_str()), ("shop.example", "shop.example"));
        assert_eq!(moved.dial, ("::1".to_owned(), 8443));
        for place in ["localhost", "localhost:x", ":80", "a:0"] {
            let error = target().at(Some(place)).unwrap_err().to_string();
            assert!(error.contains("expected HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn several_urls_are_of_one_server() {
        let all =
            |urls: &[&str]| Target::of_one_server(&urls.iter().map(|url| (*url).into()).collect::<Vec<_>>());
        let paths: Vec<_> =
            all(&["http://a/x", "http://a/y?z"]).unwrap().into_iter().map(|t| t.path).collect();
        assert_eq!(paths, ["/x", "/y?z"]);
        for other in ["http://a:81/", "https://a/", "http://b/"] {
            let error = all(&["http://a/", other]).unwrap_err().to_string();
            assert!(error.contains("two servers") && error.contains(other), "{error}");
        }
        let place = |url| Target::parse(url, &HTTP).unwrap().place();
        assert_eq!((place("https://[::1]/"), place("https://a")), ("[::1]:443".into(), "a:443".into()));
    }

    #[test]
    fn each_protocol_accepts_only_its_own_schemes() {
        let target = Target::parse("wss://[::1]:9000/chat", &WEBSOCKET).unwrap();
        assert_eq!((target.secure, target.host.as_str(), target.path.as_str()), (true, "::1", "/chat"));
        let error = Target::parse("https://a.example/", &WEBSOCKET).unwrap_err().to_string();
        assert!(error.contains("ws or wss"), "{error}");
    }

    #[test]
    fn invalid_urls_are_refused_with_status_2() {
        for url in [
            "",
            "a.example",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:x",
            "http://u@a",
            "http://[::1",
            "http:///x",
        ] {
            let error = Target::parse(url, &HTTP).unwrap_err();
            assert_eq!(error.exit_status(), 2, "{url}");
            assert!(error.to_string().contains("URL"), "{error}");
        }
    }

    #[test]
    fn a_closed_port_and_an_unknown_name_have_different_messages() {
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused =
            Target::parse(&format!("http://{dead}/"), &HTTP).unwrap().resolve().unwrap_err().to_string();
        assert!(refused.contains("refused"), "{refused}");
        let unknown =
            Target::parse("http://no-such-name.invalid/", &HTTP).unwrap().resolve().unwrap_err().to_string();
        assert!(unknown.contains("dns"), "{unknown}");
    }
}
