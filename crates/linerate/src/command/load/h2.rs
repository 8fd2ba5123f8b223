//! `linerate load h2`, `linerate load h3` and `linerate load grpc`.

use super::operations::Operations;
use super::target::{HTTP, HTTPS, Target};
use super::{Terminal, client, measure};
use crate::cli::{LoadGrpcArgs, LoadH2Args, LoadH3Args, MultiplexedArgs, QuicArgs};
use crate::error::Error;
use crate::report::load::Words;
use linerate_contract::Spec;
use std::path::Path;
use std::process::ExitCode;

/// Loads a server of HTTP/2.
///
/// # Errors
/// As [`super::load`].
pub(super) fn h2(args: &LoadH2Args, terminal: Terminal) -> Result<ExitCode, Error> {
    let mut spec = spec(&args.url, &args.multiplexed)?;
    let load = Operations::requests(&args.multiplexed.client, &args.url, terminal.style);
    measure(&load, &args.multiplexed.client, &mut spec)
}

/// Loads a server of HTTP/3.
///
/// # Errors
/// As [`super::load`].
pub(super) fn h3(args: &LoadH3Args, terminal: Terminal) -> Result<ExitCode, Error> {
    let LoadH3Args { url, multiplexed, no_keepalive, quic } = args;
    let target = Target::parse(url, &HTTPS)?.at(multiplexed.connect_to.as_deref())?;
    let mut spec = shared(multiplexed, "h3", &target)?;
    set_quic(&mut spec, quic);
    keep_alive(&mut spec, !no_keepalive);
    spec.connect = Some(target.datagram_address()?);
    let load = Operations::requests(&multiplexed.client, url, terminal.style);
    measure(&load, &multiplexed.client, &mut spec)
}

/// The options of QUIC, as options of a spec.
pub(in crate::command) fn set_quic(spec: &mut Spec, args: &QuicArgs) {
    spec.set_option("congestion", &args.congestion);
    spec.set_option("handshake", &args.handshake);
    spec.set_option("mode", &args.datagrams);
}

/// Whether connections outlive a request; each has one stream if not.
pub(super) fn keep_alive(spec: &mut Spec, keeps: bool) {
    if !keeps {
        spec.workload = "crr".into();
        spec.set_option("streams", 1);
    }
}

/// Calls a method of a server of gRPC.
///
/// # Errors
/// As [`super::load`].
pub(super) fn grpc(args: &LoadGrpcArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let client = &args.multiplexed.client;
    if client.request.body.is_some() || client.request.method.is_some() {
        return Err(Error::Input("load grpc has --message in place of --body and --method".into()));
    }
    let mut spec = spec(&args.url, &args.multiplexed)?;
    spec.set_option("grpc", "yes");
    spec.set_option("messages", args.messages);
    spec.request.get_or_insert_default().body = args.message.encoded(Path::new(""))?;
    let words = Words { operation: "call", payload: "messages" };
    let load = Operations { words, ..Operations::requests(client, &args.url, terminal.style) };
    measure(&load, client, &mut spec)
}

fn spec(url: &str, args: &MultiplexedArgs) -> Result<Spec, Error> {
    let target = Target::parse(url, &HTTP)?.at(args.connect_to.as_deref())?;
    let mut spec = shared(args, if target.secure { "h2" } else { "h2c" }, &target)?;
    spec.connect = Some(target.resolve()?);
    Ok(spec)
}

fn shared(args: &MultiplexedArgs, layer: &str, target: &Target) -> Result<Spec, Error> {
    if args.client.request.requests.is_some() {
        return Err(Error::Input(
            "--requests: over HTTP/2 and HTTP/3 there is one request; several are for load http".into(),
        ));
    }
    let mut spec = client(&args.client, layer, "rr", target, &[&target.path])?;
    spec.set_option("streams", args.streams);
    Ok(spec)
}
