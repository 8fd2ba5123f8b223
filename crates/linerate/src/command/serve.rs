//! `linerate serve`: the servers for `linerate load`.

use super::load::{urls, usual_size, write_result};
use crate::address;
use crate::authority::Authority;
use crate::cli::{SERVE, ServeArgs, half_of_cpus};
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::output::note;
use crate::report::load_served;
use crate::url::{Scheme, Url};
use crate::{interrupt, journal};
use linerate_contract::{Event, Layer, PeerFailures, Role, Spec, Tls, Workload};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;

/// Bytes of a page, unless the user says otherwise.
const PAGE: u64 = 4096;

/// Serves until Ctrl-C.
///
/// # Errors
/// An invalid URL, an option that its protocol lacks, or an address that cannot be listened on.
pub fn serve(options: &ServeArgs) -> Result<ExitCode, Error> {
    if let Some(address) = &options.listen {
        let scheme = options.url.first().map_or("http", String::as_str);
        return Err(Error::Input(format!(
            "--listen {address}: the address is in the URL: linerate serve {scheme}://{address}"
        )));
    }
    let [url] = &urls("serve", &options.url, Url::to_listen)?[..] else {
        return Err(Error::Input("a server has one URL: start one for each".into()));
    };
    let is_stream = url.scheme.layer == Layer::Kcp || options.stream || options.reverse;
    options.given.check(SERVE, url.scheme, is_stream)?;
    let spec = spec(options, url, is_stream)?;
    let mut peers = PeerFailures::default();
    Engine::start(LOAD, &spec)?.listen(&interrupt::watch(), |event| match event {
        Event::Ready { address } => {
            // The zone of an address is in the user's words alone.
            let host = if url.name() == url.host { address.ip().to_string() } else { url.host.clone() };
            let at = Url { host, port: address.port(), ..url.clone() };
            note(&format!("{at} {} until Ctrl-C", doing(url.scheme, &spec)));
        }
        Event::Peers(more) => {
            let is_new = |kind: &_| !peers.errors.0.contains_key(kind);
            load_served::lines(&spec, &more, is_new).iter().for_each(|line| note(line));
            peers = more;
        }
        _ => {}
    })?;
    load_served::sum(&peers).iter().for_each(|line| note(line));
    if let Some(file) = &options.json {
        write_result(file, &load_served::json(&url.to_string(), &spec, &peers));
    }
    Ok(ExitCode::SUCCESS)
}

fn doing(scheme: &Scheme, spec: &Spec) -> String {
    let size = spec.size;
    match (spec.workload, spec.option("messages"), spec.layer) {
        (_, Some("1"), _) => format!("responds to calls with a message of {size} bytes"),
        (_, Some(number), _) => format!("responds to calls with {number} messages of {size} bytes"),
        _ if scheme.is_of_requests() => format!("serves a page of {size} bytes"),
        (_, _, Layer::Quic) => "responds with as many bytes as are asked for".into(),
        (Workload::Rr, ..) => "sends messages back".into(),
        _ if spec.option("direction") == Some("client-reads") => "sends streams".into(),
        (_, _, Layer::Tcp) => "receives or sends streams".into(),
        _ => "receives streams".into(),
    }
}

fn spec(options: &ServeArgs, url: &Url, is_stream: bool) -> Result<Spec, Error> {
    let scheme = url.scheme;
    let mut spec =
        Spec::new(Role::Server, scheme.layer, if is_stream { Workload::Stream } else { Workload::Rr });
    let listen = address::usual(url)?;
    spec.listen = Some(listen);
    let usual = if scheme.is_of_requests() { PAGE } else { usual_size(scheme, is_stream) };
    spec.size = options.size.unwrap_or(usual);
    spec.threads = options.threads.unwrap_or_else(half_of_cpus);
    options.spin.set(&mut spec);
    options.datagrams.set(&mut spec);
    if scheme.is_of_calls() {
        spec.set_option("grpc", "yes");
        spec.set_option("messages", options.messages);
    }
    if is_stream && !scheme.is_of_datagrams() {
        let direction = match scheme.layer {
            Layer::Tcp => "any",
            _ if options.reverse => "client-reads",
            _ => "client-writes",
        };
        spec.set_option("direction", direction);
    }
    if scheme.has_tls() {
        spec.tls = certified(listen.ip(), options.authority.as_deref())?;
    }
    Ok(spec)
}

/// A certificate for this run; its CA certificate is written to the file.
fn certified(address: IpAddr, file: Option<&Path>) -> Result<Option<Tls>, Error> {
    let authority = Authority::for_address(address).map_err(Error::NothingMeasured)?;
    match file {
        Some(file) => {
            check_replaceable(file)?;
            journal::write(file, authority.pem())?;
            note(&format!("CA certificate: {} (for load --authority)", file.display()));
        }
        None => {
            note("clients cannot verify this certificate: use load --insecure, or serve --authority FILE")
        }
    }
    Ok(authority.for_role(Role::Server))
}

/// Checks that nothing is lost when the file is written.
fn check_replaceable(file: &Path) -> Result<(), Error> {
    let is_lost = match fs::metadata(file) {
        Ok(found) if found.is_file() && found.len() > 0 => {
            !fs::read_to_string(file).is_ok_and(|text| Authority::is_made_here(&text))
        }
        _ => false, // a new file, or a terminal or pipe
    };
    if is_lost {
        return Err(Error::Input(format!(
            "--authority {0}: this file exists, and `linerate serve` did not write it; the CA certificate \
             would replace it: name a new file, or remove it",
            file.display()
        )));
    }
    Ok(())
}
