//! Where the connections of a load go: to the host of the URL, to another one, to a Unix domain socket,
//! or to a proxy.

use crate::address::{self, CONNECT_TIMEOUT};
use crate::cli::{RouteArgs, Sources, basic};
use crate::error::Error;
use crate::url::Url;
use linerate_contract::{Layer, Request, Spec, Tunnel};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Sets where `spec`, with its requests, connects to; checks that something listens there.
///
/// # Errors
/// An option with a wrong value, nothing that listens, or a proxy that refuses.
pub(super) fn set(args: &RouteArgs, url: &Url, spec: &mut Spec) -> Result<(), Error> {
    if let Some(path) = &args.unix_socket {
        spec.unix = Some(unix(path)?);
    } else if let Some(proxy) = &args.proxy {
        through(proxy, url, spec)?;
    } else {
        let mut all: Vec<SocketAddr> = Vec::new();
        for place in places(args.connect_to.as_deref()) {
            let found = address::all_to_connect(&at(url, place)?)?;
            all.extend(found.into_iter().filter(|address| !all.contains(address)).collect::<Vec<_>>());
        }
        spec.connect = Some(all.remove(0));
        spec.further = all;
    }
    if let (Some(Sources(sources)), Some(to)) = (&args.source, spec.connect) {
        if let Some(other) = sources.iter().find(|source| source.is_ipv4() != to.is_ipv4()) {
            let place = to.ip();
            return Err(Error::Input(format!("--source {other} is of another kind of address than {place}")));
        }
        spec.sources.clone_from(sources);
    }
    Ok(())
}

/// Several are separated by commas; without one it is that of the URL.
fn places(given: Option<&str>) -> Vec<Option<&str>> {
    given.map_or_else(|| vec![None], |places| places.split(',').map(Some).collect())
}

/// The URL with another place: `--connect-to HOST:PORT`.
fn at(url: &Url, place: Option<&str>) -> Result<Url, Error> {
    let Some(place) = place else { return Ok(url.clone()) };
    let other = Url::parse(&format!("tcp://{place}"));
    let other = other.map_err(|_| Error::Input(format!("--connect-to {place}: expected HOST:PORT")))?;
    Ok(Url { host: other.host, port: other.port, ..url.clone() })
}

fn unix(path: &Path) -> Result<String, Error> {
    let name = path.display();
    UnixStream::connect(path).map_err(|e| {
        Error::NothingMeasured(format!("{name}: {e} (check that the server runs and listens there)"))
    })?;
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::Input(format!("--unix-socket {name}: it is not UTF-8")))
}

/// Requests with the whole URL to a proxy, or for TLS a tunnel through it.
fn through(proxy: &str, url: &Url, spec: &mut Spec) -> Result<(), Error> {
    let (credentials, place) = match proxy.split_once("://").and_then(|(scheme, rest)| {
        rest.rsplit_once('@').map(|(credentials, place)| (credentials, format!("{scheme}://{place}")))
    }) {
        Some((credentials, url)) => (Some(basic(credentials)), url),
        None => (None, proxy.to_owned()),
    };
    let place = Url::parse(&place)
        .ok()
        .filter(|place| place.scheme.layer == Layer::Http)
        .ok_or_else(|| Error::Input(format!("--proxy {proxy}: expected http://HOST:PORT")))?;
    let address = address::to_connect(&place)?;
    spec.connect = Some(address);
    if url.scheme.has_tls() {
        let tunnel = Tunnel { to: url.place(), authorization: credentials };
        open(address, &tunnel)?;
        spec.tunnel = Some(tunnel);
        return Ok(());
    }
    let whole = |path: &mut String| *path = format!("http://{}{path}", url.authority());
    let known = |request: &mut Request| {
        let header = credentials.as_ref().map(|value| format!("Proxy-Authorization: {value}"));
        request.headers.extend(header);
    };
    spec.path.iter_mut().for_each(whole);
    if spec.requests.is_empty() {
        spec.request.iter_mut().for_each(known);
    }
    for one in &mut spec.requests {
        whole(&mut one.path);
        known(&mut one.request);
    }
    Ok(())
}

/// Asks for the tunnel once, so that a refusal has its reason.
fn open(address: SocketAddr, tunnel: &Tunnel) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::NothingMeasured(format!("the proxy at {address}: {e}"));
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(CONNECT_TIMEOUT)).map_err(failed)?;
    stream.write_all(tunnel.request().as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(failed)?;
    let status = line.split(' ').nth(1).unwrap_or_default();
    let next = match status {
        _ if status.starts_with('2') => return Ok(()),
        "407" => "; give it a name: --proxy http://NAME:PASSWORD@HOST:PORT",
        _ => "",
    };
    let (to, line) = (&tunnel.to, line.trim());
    Err(Error::NothingMeasured(format!(
        "the proxy at {address} opens no tunnel to {to}: it answers {line:?}{next}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_place_to_connect_to_leaves_the_name_of_the_certificate_to_the_url() {
        let url = Url::parse("https://shop.example/").unwrap();
        assert_eq!(at(&url, Some("[::1]:8443")).unwrap().place(), "[::1]:8443");
        for place in ["localhost", "localhost:x", "a:0"] {
            let error = at(&url, Some(place)).unwrap_err().to_string();
            assert!(error.contains("expected HOST:PORT"), "{error}");
        }
    }
}
