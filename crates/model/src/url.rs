//! A URL: the protocol, the place of a server, and what is asked of it.

use linerate_contract::Layer;
use linerate_contract::nearest::suggestion;
use std::fmt;

/// A protocol by its name in a URL.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    pub name: &'static str,
    /// The layer of the load engine that speaks it.
    pub layer: Layer,
    /// The port of a URL that has none; `None`: a URL must have one.
    port: Option<u16>,
    /// URLs have a path after the authority.
    pub has_path: bool,
}

/// All protocols. `h2c` and `grpc` are HTTP/2 with prior knowledge, `h2` and `grpcs` over TLS (ALPN h2).
pub const SCHEMES: [Scheme; 14] = [
    with_path("http", Layer::Http, 80),
    with_path("https", Layer::Https, 443),
    with_path("h2c", Layer::H2c, 80),
    with_path("h2", Layer::H2, 443),
    with_path("h3", Layer::H3, 443),
    with_path("grpc", Layer::H2c, 80),
    with_path("grpcs", Layer::H2, 443),
    without_path(Layer::Tcp),
    without_path(Layer::Tls),
    with_path("ws", Layer::WebSocket, 80),
    with_path("wss", Layer::Wss, 443),
    without_path(Layer::Udp),
    without_path(Layer::Kcp),
    without_path(Layer::Quic),
];

const fn with_path(name: &'static str, layer: Layer, port: u16) -> Scheme {
    Scheme { name, layer, port: Some(port), has_path: true }
}

const fn without_path(layer: Layer) -> Scheme {
    Scheme { name: layer.as_str(), layer, port: None, has_path: false }
}

impl Scheme {
    /// The protocol of this name.
    ///
    /// # Errors
    /// No protocol has it; with the nearest one.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        let found = SCHEMES.iter().find(|scheme| scheme.name == name);
        found.ok_or_else(|| {
            let near = suggestion(name, SCHEMES.iter().map(|scheme| scheme.name));
            format!("there is no scheme {name}; {near}")
        })
    }

    pub fn has_tls(&self) -> bool {
        self.layer.has_tls()
    }

    /// A server receives datagrams, and listens for nothing.
    pub fn is_of_datagrams(&self) -> bool {
        self.layer.is_of_datagrams()
    }

    /// Operations are calls of gRPC.
    pub fn is_of_calls(&self) -> bool {
        self.name.starts_with("grpc")
    }

    /// Operations are requests of any version of HTTP, or calls.
    pub fn is_of_requests(&self) -> bool {
        self.layer.is_http()
    }
}

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub scheme: &'static Scheme,
    /// A name, or an address without brackets, which may have a zone: `fe80::1%eth0`.
    pub host: String,
    pub port: u16,
    /// With the query; `/` where there is none.
    pub path: String,
}

impl Url {
    /// Parses the URL of a server. Without a scheme it is `http`, and without a host `localhost`: `:8080`.
    ///
    /// # Errors
    /// The reason, and an example.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = Self::to_listen(text)?;
        if url.port == 0 { Err(invalid(text, NO_PORT)) } else { Ok(url) }
    }

    /// Parses the URL of a server that will listen there: at port 0 the kernel chooses.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn to_listen(text: &str) -> Result<Self, String> {
        let invalid = |what: &str| invalid(text, what);
        let (name, rest) = match text.split_once("://") {
            Some((name, rest)) if Self::has_scheme(text) => (name.to_ascii_lowercase(), rest),
            _ => ("http".to_owned(), text),
        };
        let scheme = Scheme::named(&name).map_err(|what| invalid(&what))?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(invalid("it has a user name; give it as --user NAME:PASSWORD"));
        }
        if !scheme.has_path && !["", "/"].contains(&path) {
            return Err(invalid(&format!("{name}:// has no path: leave out {path}")));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| invalid("its [ has no ]"))?;
                (host, port.strip_prefix(':'))
            }
            None if authority.matches(':').count() > 1 => {
                return Err(invalid("an address of IPv6 is in brackets, such as [::1]:8080"));
            }
            None => match authority.split_once(':') {
                Some(("", port)) => ("localhost", Some(port)),
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(invalid("it has no host"));
        }
        if !host.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(invalid("its host has other characters than ASCII: write it as xn--... (RFC 3492)"));
        }
        let port = match port {
            Some(port) => port.parse().ok(),
            None => scheme.port,
        };
        let port = port.ok_or_else(|| invalid(NO_PORT))?;
        let path = if path.starts_with('/') { encoded(path) } else { format!("/{}", encoded(path)) };
        // As RFC 6874 writes the sign before a zone.
        let host = if host.contains(':') { host.replacen("%25", "%", 1) } else { host.to_owned() };
        Ok(Self { scheme, host, port, path })
    }

    /// Whether a word begins with the scheme of a URL. A command may have a URL among its arguments.
    pub fn has_scheme(word: &str) -> bool {
        let scheme = word.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric()))
    }

    /// As in the `Host` header: with brackets, without the zone of an address, which has a meaning on this
    /// machine alone (RFC 6874), and with the port unless it is the scheme's own.
    pub fn authority(&self) -> String {
        let host = bracketed(self.name());
        if self.scheme.port == Some(self.port) { host } else { format!("{host}:{}", self.port) }
    }

    /// The host as a certificate has it: an address without its zone.
    pub fn name(&self) -> &str {
        self.host.split('%').next().unwrap_or(&self.host)
    }

    /// Host and port.
    pub fn place(&self) -> String {
        format!("{}:{}", bracketed(&self.host), self.port)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.scheme.has_path { &self.path } else { "" };
        let zone = &self.host[self.name().len()..];
        let authority = self.authority().replacen(']', &format!("{zone}]"), 1);
        write!(f, "{}://{authority}{path}", self.scheme.name)
    }
}

/// Spaces, and all beyond ASCII, as browsers and curl send them.
pub fn encoded(path: impl AsRef<[u8]>) -> String {
    let each = |byte: &u8| match byte.is_ascii_graphic() {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.as_ref().iter().map(each).collect()
}

const NO_PORT: &str = "it has no port, a number from 1 to 65535";

fn invalid(text: &str, what: &str) -> String {
    format!("URL {text:?}: {what} (examples: http://127.0.0.1:8080/path, tcp://127.0.0.1:9000)")
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (&'static str, String, u16, String, String) {
        let url = Url::parse(text).unwrap();
        (url.scheme.layer.as_str(), url.host.clone(), url.port, url.authority(), url.path)
    }

    #[test]
    fn urls_are_split_into_their_parts() {
        let owned = |layer, host: &str, port, authority: &str, path: &str| {
            (layer, host.to_owned(), port, authority.to_owned(), path.to_owned())
        };
        for (text, expected) in [
            ("http://a.example", owned("http", "a.example", 80, "a.example", "/")),
            ("https://a.example/x?y=z#w", owned("https", "a.example", 443, "a.example", "/x?y=z")),
            ("http://127.0.0.1:8080?q", owned("http", "127.0.0.1", 8080, "127.0.0.1:8080", "/?q")),
            ("http://[::1]:81/", owned("http", "::1", 81, "[::1]:81", "/")),
            ("https://[::1]", owned("https", "::1", 443, "[::1]", "/")),
            ("wss://[::1]:9000/chat", owned("wss", "::1", 9000, "[::1]:9000", "/chat")),
            ("grpcs://a/b.C/D", owned("h2", "a", 443, "a", "/b.C/D")),
            ("kcp://127.0.0.1:9000", owned("kcp", "127.0.0.1", 9000, "127.0.0.1:9000", "/")),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn a_url_without_a_scheme_is_of_http_and_without_a_host_of_this_machine() {
        for (text, whole) in [
            ("localhost:8080/x?to=tcp://b", "http://localhost:8080/x?to=tcp://b"),
            (":8080", "http://localhost:8080/"),
            ("a.example", "http://a.example/"),
            ("udp://:9000", "udp://localhost:9000"),
            ("HTTPS://a.example/é x?q=ü", "https://a.example/%C3%A9%20x?q=%C3%BC"),
            ("h2://[::1]:8443/", "h2://[::1]:8443/"),
            ("tcp://[fe80::1%lo]:9", "tcp://[fe80::1%lo]:9"),
            ("http://[fe80::1%25lo]/x", "http://[fe80::1%lo]/x"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), whole);
        }
    }

    #[test]
    fn a_zone_is_part_of_the_place_and_not_of_the_host_header() {
        let url = Url::parse("https://[fe80::1%25eth0]:8443/").unwrap();
        assert_eq!((&*url.host, url.authority().as_str()), ("fe80::1%eth0", "[fe80::1]:8443"));
        assert_eq!((url.place().as_str(), url.name()), ("[fe80::1%eth0]:8443", "fe80::1"));
    }

    #[test]
    fn a_url_that_is_wrong_is_refused_with_the_reason() {
        for (text, part) in [
            ("", "no host"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://bücher.example/", "xn--"),
            ("http://[::1", "its [ has no ]"),
            ("http://u@a", "--user NAME:PASSWORD"),
            ("http://a:0", "no port"),
            ("http://a:x", "no port"),
            ("tcp://a", "no port"),
            ("udp://a:1/x", "leave out /x"),
            ("http://::1:80/", "in brackets, such as [::1]:8080"),
            ("htp://a", "nearest: \"http\""),
            ("ftp://a", "known: http, https, h2c"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(part) && error.contains("example"), "{text}: {error}");
        }
        assert_eq!(Url::to_listen("tcp://127.0.0.1:0").unwrap().port, 0);
    }

    #[test]
    fn a_command_with_a_url_among_its_arguments_begins_with_no_scheme() {
        assert!(Url::has_scheme("http://127.0.0.1:80/") && Url::has_scheme("tcp://[::1]:9"));
        assert!(!Url::has_scheme("puma -b tcp://127.0.0.1:{port}") && !Url::has_scheme("./server"));
    }
}
