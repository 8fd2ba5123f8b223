//! `linerate serve`: the servers for `linerate load`.

use super::load::flows::set_kcp;
use super::load::h2::set_quic;
use crate::authority::Authority;
use crate::cli::{ServeArgs, ServeDatagramArgs, ServePageArgs, ServeStreamArgs, Served};
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::progress::note;
use crate::{interrupt, journal};
use linerate_contract::{Event, Role, Spec, Tls};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Serves until Ctrl-C.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(args: &ServeArgs) -> Result<ExitCode, Error> {
    let spec = spec(&args.what)?;
    Engine::start(LOAD, &spec)?.listen(&interrupt::watch(), |event| {
        if let Event::Ready { address } = event {
            note(&format!("{} until Ctrl-C", doing(&spec, address)));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn doing(spec: &Spec, address: SocketAddr) -> String {
    let what = if spec.workload == "rr" { "echoing" } else { "serving streams" };
    match spec.layer.as_str() {
        _ if spec.options.contains_key("grpc") => {
            let messages = match spec.option("messages") {
                None | Some("1") => "a message".into(),
                Some(number) => format!("{number} messages"),
            };
            format!("answering calls of gRPC with {messages} of {} bytes at {address}", spec.size)
        }
        scheme @ ("http" | "https") => {
            format!("serving a page of {} bytes at {scheme}://{address}/", spec.size)
        }
        "h2c" => format!("serving a page of {} bytes at http://{address}/, HTTP/2,", spec.size),
        "h2" => format!("serving a page of {} bytes at https://{address}/, HTTP/2,", spec.size),
        "h3" => format!("serving a page of {} bytes at https://{address}/, HTTP/3,", spec.size),
        "quic" => format!("answering with what is asked for at {address}, QUIC,"),
        "tcp" => format!("{what} at {address}, TCP,"),
        "websocket" => format!("{what} at ws://{address}/"),
        "wss" => format!("{what} at wss://{address}/"),
        layer => format!("receiving {layer} at {address}"),
    }
}

fn spec(what: &Served) -> Result<Spec, Error> {
    let datagrams = |layer: &str, args: &ServeDatagramArgs, size: u64| {
        let mut spec = Spec::new(Role::Server, layer, "stream");
        (spec.listen, spec.size) = (Some(args.listen), size);
        spec.options.insert("mode".into(), args.mode.clone());
        spec
    };
    let connections = |layer: &str, args: &ServeStreamArgs, echo: bool, size: u64| {
        let mut spec = Spec::new(Role::Server, layer, if echo { "rr" } else { "stream" });
        (spec.listen, spec.size, spec.threads) = (Some(args.listen), size, args.threads.threads);
        args.spin.set(&mut spec);
        spec
    };
    let page = |[open, closed]: [&str; 2], args: &ServePageArgs| {
        let layer = if args.secure.tls.is_some() { closed } else { open };
        let mut spec = Spec::new(Role::Server, layer, "rr");
        (spec.listen, spec.size, spec.threads) = (Some(args.listen), args.size, args.threads.threads);
        args.spin.set(&mut spec);
        // There is no HTTP/3 without TLS.
        let always = (open == closed).then_some(&None);
        spec.tls = certified(args.listen, args.secure.tls.as_ref().or(always))?;
        Ok::<_, Error>(spec)
    };
    Ok(match what {
        Served::Http(args) => page(["http", "https"], &args.page)?,
        Served::H2(args) => page(["h2c", "h2"], &args.page)?,
        Served::H3(args) => {
            let mut spec = page(["h3", "h3"], &args.page)?;
            set_quic(&mut spec, &args.quic);
            spec
        }
        Served::Quic(args) => {
            let mut spec = connections("quic", &args.common, true, 0);
            set_quic(&mut spec, &args.quic);
            spec.tls = certified(args.common.listen, args.secure.tls.as_ref().or(Some(&None)))?;
            spec
        }
        Served::Grpc(args) => {
            let mut spec = page(["h2c", "h2"], &args.page)?;
            spec.set_option("grpc", "yes");
            spec.set_option("messages", args.messages);
            spec
        }
        Served::Tcp(args) => {
            let mut spec = connections("tcp", &args.common, args.echo, args.size);
            spec.options.insert("direction".into(), "any".into());
            spec
        }
        Served::Ws(args) => {
            let layer = if args.secure.tls.is_some() { "wss" } else { "websocket" };
            let mut spec = connections(layer, &args.common, !args.stream, args.size);
            let direction = if args.reverse { "client-reads" } else { "client-writes" };
            spec.options.insert("direction".into(), direction.into());
            spec.tls = certified(args.common.listen, args.secure.tls.as_ref())?;
            spec
        }
        Served::Udp(args) => datagrams("udp", &args.common, args.size),
        Served::Kcp(args) => {
            // Frames contain their length, so any size will do.
            let mut spec = datagrams("kcp", &args.common, 1);
            set_kcp(&mut spec, &args.kcp);
            spec
        }
    })
}

/// A certificate for this run with `--tls`; its CA certificate is written to the file.
fn certified(listen: SocketAddr, tls: Option<&Option<PathBuf>>) -> Result<Option<Tls>, Error> {
    let Some(file) = tls else { return Ok(None) };
    let authority = Authority::for_address(listen.ip()).map_err(Error::NothingMeasured)?;
    match file {
        Some(file) => {
            check_replaceable(file)?;
            journal::write(file, authority.pem())?;
            note(&format!("CA certificate: {} (for --authority)", file.display()));
        }
        None => note("clients cannot verify this certificate: use load --insecure, or serve --tls FILE"),
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
            "--tls {0}: this file exists, and `linerate serve` did not write it; the CA certificate would \
             replace it: name a new file, or remove it",
            file.display()
        )));
    }
    Ok(())
}
