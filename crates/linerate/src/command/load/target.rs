//! `URL` on a command line: which host, which address, which path; and is anybody there?

use crate::cli::TrustArgs;
use crate::error::Error;
use linerate_contract::Tls;
use std::fs;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// One try for each address of a name. Half is a slow path over three continents; more makes users wait for the sentence.
const PATIENCE: Duration = Duration::from_secs(3);

/// A scheme without TLS and the one with it.
pub(super) type Schemes = [&'static str; 2];

pub(super) const HTTP: Schemes = ["http", "https"];
pub(super) const WEBSOCKET: Schemes = ["ws", "wss"];

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) secure: bool,
    /// The name or address without brackets.
    pub(super) host: String,
    port: u16,
    /// As the `Host` header has it: with brackets, and with the port unless it is the scheme's own.
    pub(super) authority: String,
    pub(super) path: String,
}

impl Target {
    /// # Errors
    /// What is wrong with the URL, and an example.
    pub(super) fn parse(url: &str, schemes: &Schemes) -> Result<Self, Error> {
        let [open, closed] = schemes;
        let wrong = |what: &str| {
            Error::Input(format!("URL: {what}: {url:?} (expected such as {open}://127.0.0.1:8080/path)"))
        };
        let (secure, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme == *open => (false, rest),
            Some((scheme, rest)) if scheme == *closed => (true, rest),
            Some((scheme, _)) => {
                return Err(wrong(&format!("the scheme is {scheme}, not {open} or {closed}")));
            }
            None => return Err(wrong(&format!("it does not begin with {open}:// or {closed}://"))),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(wrong("it has a user name; give it as --header 'Authorization: ...'"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| wrong("its [ has no ]"))?;
                (host, port.strip_prefix(':').filter(|p| !p.is_empty()))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || !host.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(wrong("it has no host"));
        }
        let usual = if secure { 443 } else { 80 };
        let port = match port.map(str::parse::<u16>) {
            None => usual,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(wrong("its port is not a number from 1 to 65535")),
        };
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let authority = if port == usual { bracketed } else { format!("{bracketed}:{port}") };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { secure, host: host.to_owned(), port, authority, path })
    }

    /// Whom a client of this host trusts, and for which name.
    ///
    /// # Errors
    /// The authority cannot be read.
    pub(super) fn trusted(&self, trust: &TrustArgs) -> Result<Tls, Error> {
        let authority = trust.authority.as_deref().map(|path| {
            fs::read_to_string(path).map_err(|e| Error::Input(format!("--authority {}: {e}", path.display())))
        });
        let authority = authority.transpose()?.unwrap_or_default();
        Ok(Tls { authority, name: self.host.clone(), ..Tls::default() })
    }

    /// The first address of the host that takes a connection. A name may have several, such as `localhost`, whose server
    /// listens at one of them.
    ///
    /// # Errors
    /// There is no such name, or nobody listens.
    pub(super) fn resolve(&self) -> Result<SocketAddr, Error> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs().map_err(|e| {
            Error::NothingMeasured(format!("dns: {} has no address: {e} (is the name right?)", self.host))
        })?;
        let mut last = format!("{} has no address", self.host);
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(_) => return Ok(address),
                Err(e) => last = format!("{address}: {e} (does the server run, and listen there?)"),
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
        (t.secure, t.host, t.port, t.authority, t.path)
    }

    #[test]
    fn urls_come_apart() {
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
    fn each_protocol_has_schemes_of_its_own() {
        let target = Target::parse("wss://[::1]:9000/chat", &WEBSOCKET).unwrap();
        assert_eq!((target.secure, target.host.as_str(), target.path.as_str()), (true, "::1", "/chat"));
        let error = Target::parse("https://a.example/", &WEBSOCKET).unwrap_err().to_string();
        assert!(error.contains("ws or wss"), "{error}");
    }

    #[test]
    fn what_is_no_url_is_said_to_be_none() {
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
    fn a_dead_port_and_a_dead_name_are_told_apart() {
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused =
            Target::parse(&format!("http://{dead}/"), &HTTP).unwrap().resolve().unwrap_err().to_string();
        assert!(refused.contains("refused"), "{refused}");
        let unknown =
            Target::parse("http://no-such-name.invalid/", &HTTP).unwrap().resolve().unwrap_err().to_string();
        assert!(unknown.contains("dns"), "{unknown}");
    }
}
