//! `linerate load`: the load engine standalone, like wrk, ab, hey or iperf3.

mod failed;
pub(super) mod flows;
pub(super) mod h2;
mod operations;
mod route;
mod sweep;
pub(super) mod target;

use super::{Terminal, print};
use crate::cli::{ClientArgs, LoadArgs, LoadHttpArgs, Loaded, ResultArgs};
use crate::error::Error;
use crate::journal;
use crate::progress::note;
use crate::subject::{requested, sent};
use linerate_contract::{Arrival, Nanos, Request, Role, Spec};
use operations::Operations;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use target::Target;

/// wrk's defaults: two threads, ten connections, ten seconds.
const THREADS: u32 = 2;
const DURATION: Duration = Duration::from_secs(10);
/// Interval of the progress line. Each sample costs a thread 50 us to copy its histogram.
const LIVE: Nanos = Nanos(500_000_000);
/// Interval of the rows of `--csv` and of `by_second` in `--json`.
const SECOND: Nanos = Nanos(1_000_000_000);

/// Loads a server and prints the result: 0, 1 if too much failed, 3 if no operation succeeded, or 130 after
/// Ctrl-C.
///
/// # Errors
/// An invalid URL, an unreachable host, a file that cannot be written.
pub fn load(args: &LoadArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    match &args.what {
        Loaded::Http(args) => http(args, terminal),
        Loaded::H2(args) => h2::h2(args, terminal),
        Loaded::H3(args) => h2::h3(args, terminal),
        Loaded::Quic(args) => flows::quic(args, terminal),
        Loaded::Grpc(args) => h2::grpc(args, terminal),
        Loaded::Tcp(args) => flows::tcp(args, terminal),
        Loaded::Ws(args) => flows::ws(args, terminal),
        Loaded::Udp(args) => flows::udp(args),
        Loaded::Kcp(args) => flows::kcp(args),
    }
}

fn http(args: &LoadHttpArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let targets = Target::of_one_server(&args.url)?;
    let mut spec = spec(args, &targets)?;
    route::set(&args.route, &targets[0], &mut spec)?;
    let target = args.url.join(" ");
    let load = Operations::requests(&args.client, &target, terminal.style);
    measure(&load, &args.client, &mut spec)
}

/// Loads the server, or draws its curve.
fn measure(load: &Operations<'_>, args: &ClientArgs, spec: &mut Spec) -> Result<ExitCode, Error> {
    if args.sweep { sweep::sweep(load, spec, args.at_most) } else { load.run(spec) }
}

fn spec(args: &LoadHttpArgs, targets: &[Target]) -> Result<Spec, Error> {
    let target = &targets[0];
    let layer = if target.secure { "https" } else { "http" };
    let workload = if args.no_keepalive { "crr" } else { "rr" };
    let file = args.client.request.requests.as_deref();
    let paths = targets.iter().map(|target| target.path_beside(file)).collect::<Result<Vec<_>, _>>()?;
    let mut spec = client(&args.client, layer, workload, target, &paths)?;
    if let Some(span) = args.coalesce {
        let micros = span.as_micros();
        if !(1..=1_000).contains(&micros) {
            return Err(Error::Input("--coalesce: expected 1us to 1ms; 60us is suggested".into()));
        }
        spec.options.insert("coalesce_us".into(), micros.to_string());
    }
    if let Some(depth) = args.pipeline {
        spec.options.insert("pipeline".into(), depth.to_string());
    }
    Ok(spec)
}

/// A client that sends the requests of `args`, or one for each path.
fn client(
    args: &ClientArgs,
    layer: &str,
    workload: &str,
    target: &Target,
    paths: &[&str],
) -> Result<Spec, Error> {
    let mut spec = Spec::new(Role::Client, layer, workload);
    spec.rate = args.rate;
    spec.seed = args.seed;
    // With even gaps nothing waits below the capacity.
    let usual = if args.sweep { Arrival::Poisson } else { Arrival::Constant };
    spec.arrival = args.arrival.unwrap_or(usual);
    if args.sweep && spec.arrival == Arrival::Ramp {
        return Err(Error::Input(
            "--sweep makes steps of one rate each: --arrival constant or poisson".into(),
        ));
    }
    if args.rate.is_none() && !args.sweep && spec.arrival != Arrival::Constant {
        return Err(Error::Input("--arrival needs --rate, the number of requests per second".into()));
    }
    let usual = if args.sweep { sweep::STEP } else { DURATION };
    spec.connections = args.connections;
    spec.threads = args.threads.unwrap_or_else(default_threads);
    spec.operations = args.count;
    spec.duration_ns = match (args.duration, args.count) {
        (None, Some(_)) => None,
        (duration, _) => Some(duration.unwrap_or(usual).into()),
    };
    spec.timeout_ns = args.result.timeout.into();
    args.spin.set(&mut spec);
    let requests = args.request.requests(paths, Path::new(""))?;
    let (host, insecure) = (Some(target.authority.clone()), args.trust.insecure);
    let common = Request { host, insecure, ..Request::default() };
    requested(&mut spec, common, requests.iter().map(sent).collect());
    spec.tls = target.tls(&args.trust)?;
    Ok(spec)
}

fn default_threads() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    THREADS.min(cpus)
}

/// Writes the JSON where it was requested, and the text to standard output unless the JSON goes there.
fn publish(args: &ResultArgs, json: &str, text: &str) -> Result<(), Error> {
    if let Some(path) = &args.json {
        write_result(path, json)?;
    }
    if args.json.as_deref() != Some(Path::new("-")) {
        print(text)?;
    }
    Ok(())
}

/// Replaces the progress line. A closed terminal is no error.
fn show(line: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    let _ = std::io::stderr().flush();
}

/// Writes a result to a file, or to standard output for `-`.
fn write_result(path: &Path, text: &str) -> Result<(), Error> {
    if path == Path::new("-") {
        return print(text).map(|_| ());
    }
    journal::write(path, text)?;
    note(&format!("written: {}", path.display()));
    Ok(())
}
