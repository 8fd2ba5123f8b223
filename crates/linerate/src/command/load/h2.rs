//! `linerate load h2` and `linerate load grpc`.

use super::operations::Operations;
use super::target::{HTTP, Target};
use super::{Terminal, client, measure};
use crate::cli::{LoadGrpcArgs, LoadH2Args, MultiplexedArgs};
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
    spec.request.get_or_insert_default().body = args.message.encoded(Path::new(""))?;
    let words = Words { operation: "call", payload: "messages" };
    let load = Operations { words, ..Operations::requests(client, &args.url, terminal.style) };
    measure(&load, client, &mut spec)
}

fn spec(url: &str, args: &MultiplexedArgs) -> Result<Spec, Error> {
    if args.client.request.requests.is_some() {
        return Err(Error::Input(
            "--requests: over HTTP/2 there is one request; several are for load http".into(),
        ));
    }
    let target = Target::parse(url, &HTTP)?.at(args.connect_to.as_deref())?;
    let layer = if target.secure { "h2" } else { "h2c" };
    let mut spec = client(&args.client, layer, "rr", &target, &[&target.path])?;
    spec.set_option("streams", args.streams);
    spec.connect = Some(target.resolve()?);
    Ok(spec)
}
