//! `linerate load h2`.

use super::operations::Operations;
use super::target::{HTTP, Target};
use super::{DURATION, Terminal, default_threads};
use crate::cli::LoadH2Args;
use crate::error::Error;
use crate::report::load::Words;
use crate::subject::{requested, sent};
use linerate_contract::{Request, Role, Spec};
use std::path::Path;
use std::process::ExitCode;

/// Loads a server of HTTP/2.
///
/// # Errors
/// As [`super::load`].
pub(super) fn h2(args: &LoadH2Args, terminal: Terminal) -> Result<ExitCode, Error> {
    let target = Target::parse(&args.url, &HTTP)?.at(args.connect_to.as_deref())?;
    let mut spec = spec(args, &target)?;
    spec.connect = Some(target.resolve()?);
    let load = Operations {
        target: &args.url,
        words: Words { operation: "request", payload: "bodies" },
        warmup: args.warmup,
        repeat: args.repeat,
        csv: args.csv.as_deref(),
        result: &args.result,
        style: terminal.style,
    };
    load.run(&mut spec)
}

fn spec(args: &LoadH2Args, target: &Target) -> Result<Spec, Error> {
    if args.request.requests.is_some() {
        return Err(Error::Input("--requests: load h2 sends one request; several are for load http".into()));
    }
    let mut spec = Spec::new(Role::Client, if target.secure { "h2" } else { "h2c" }, "rr");
    spec.connections = args.connections;
    spec.threads = args.threads.unwrap_or_else(default_threads);
    spec.operations = args.count;
    spec.duration_ns = match (args.duration, args.count) {
        (None, Some(_)) => None,
        (duration, _) => Some(duration.unwrap_or(DURATION).into()),
    };
    spec.timeout_ns = args.result.timeout.into();
    spec.set_option("streams", args.streams);
    args.spin.set(&mut spec);
    let requests = args.request.requests(&[&target.path], Path::new(""))?;
    let (host, insecure) = (Some(target.authority.clone()), args.trust.insecure);
    let common = Request { host, insecure, ..Request::default() };
    requested(&mut spec, common, requests.iter().map(sent).collect());
    spec.tls = target.tls(&args.trust)?;
    Ok(spec)
}
