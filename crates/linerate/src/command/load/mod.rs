//! `linerate load`: the load engine standalone, like wrk, ab, hey or iperf3.

pub(super) mod datagrams;
mod failed;
mod streams;
pub(super) mod target;

use super::{Terminal, print};
use crate::cli::{ArrivalArg, LoadArgs, LoadHttpArgs, Loaded};
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::progress::note;
use crate::report::load::{self, LoadResult, Words};
use crate::{interrupt, journal};
use linerate_contract::{Arrival, Event, Nanos, Request, Role, Spec};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;
use target::{HTTP, Target};

/// wrk's defaults: two threads, ten connections, ten seconds.
const THREADS: u32 = 2;
const DURATION: Duration = Duration::from_secs(10);
/// Interval of the progress line. Each sample costs a thread 50 us to copy its histogram.
const LIVE: Nanos = Nanos(500_000_000);

/// Loads a server and prints the result: 0, 1 if too much failed, 3 if no operation succeeded, or 130 after
/// Ctrl-C.
///
/// # Errors
/// An invalid URL, an unreachable host, a file that cannot be written.
pub fn load(args: &LoadArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    match &args.what {
        Loaded::Http(args) => http(args, terminal),
        Loaded::Tcp(args) => streams::tcp(args, terminal),
        Loaded::Ws(args) => streams::ws(args, terminal),
        Loaded::Udp(args) => datagrams::udp(args),
        Loaded::Kcp(args) => datagrams::kcp(args),
    }
}

fn http(args: &LoadHttpArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let target = Target::parse(&args.url, &HTTP)?;
    let address = target.resolve()?;
    let mut spec = spec(args, &target)?;
    spec.connect = Some(address);
    let words = Words { operation: "request", payload: "bodies" };
    operations(
        &mut spec,
        &args.url,
        words,
        &Output { json: args.json.as_deref(), quiet: args.quiet, max_failed: args.failures.max_failed },
        terminal,
    )
}

/// Where the result is written, besides the terminal.
struct Output<'a> {
    json: Option<&'a Path>,
    quiet: bool,
    /// The share of failed operations that is no failure of the load.
    max_failed: f64,
}

/// Runs a client whose operations are counted one by one, with a progress line, and prints the result.
fn operations(
    spec: &mut Spec,
    target: &str,
    words: Words,
    output: &Output<'_>,
    terminal: Terminal,
) -> Result<ExitCode, Error> {
    let live = std::io::stderr().is_terminal() && !output.quiet;
    spec.sample_ns = live.then_some(LIVE);
    let interrupted = interrupt::watch();
    let done = Engine::start(LOAD, spec)?.result(&interrupted, |event| {
        if let Event::Sample(sample) = event {
            show(&load::live(&sample, LIVE, words));
        }
    })?;
    if live {
        show("");
    }
    let result = LoadResult { target, words, spec, done: &done };
    if let Some(path) = output.json {
        write_json(path, &load::json(&result))?;
    }
    if output.json != Some(Path::new("-")) {
        print(&load::text(&result, terminal.style))?;
    }
    if interrupted.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    if done.operations == 0 {
        let text = format!("no {} succeeded: see `failed` above for the kinds of errors", words.operation);
        return Err(Error::NothingMeasured(text));
    }
    failed::check(spec, &done, output.max_failed)?;
    Ok(ExitCode::SUCCESS)
}

fn spec(args: &LoadHttpArgs, target: &Target) -> Result<Spec, Error> {
    let layer = if target.secure { "https" } else { "http" };
    let mut spec = Spec::new(Role::Client, layer, if args.no_keepalive { "crr" } else { "rr" });
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    spec.connections = args.connections;
    spec.threads = args.threads.unwrap_or(THREADS).min(if args.threads.is_some() { u32::MAX } else { cpus });
    spec.operations = args.requests;
    spec.duration_ns = match (args.duration, args.requests) {
        (None, Some(_)) => None,
        (duration, _) => Some(duration.unwrap_or(DURATION).into()),
    };
    spec.timeout_ns = args.timeout.into();
    spec.path = Some(target.path.clone());
    spec.rate = args.rate;
    spec.seed = args.seed;
    spec.arrival = match args.arrival {
        ArrivalArg::Constant => Arrival::Constant,
        ArrivalArg::Poisson => Arrival::Poisson,
        ArrivalArg::Ramp => Arrival::Ramp,
    };
    if args.rate.is_none() && args.arrival != ArrivalArg::Constant {
        return Err(Error::Input("--arrival needs --rate, the number of requests per second".into()));
    }
    args.spin.set(&mut spec);
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
    spec.request = Some(Request {
        method: Some(args.method.clone()).filter(|method| method != "GET"),
        host: Some(target.authority.clone()),
        headers: args.header.clone(),
        body: args.body.clone().unwrap_or_default(),
        insecure: args.trust.insecure,
    });
    spec.tls = target.secure.then(|| target.trusted(&args.trust)).transpose()?;
    Ok(spec)
}

/// Replaces the progress line. A closed terminal is no error.
fn show(line: &str) {
    let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    let _ = std::io::stderr().flush();
}

fn write_json(path: &Path, text: &str) -> Result<(), Error> {
    if path == Path::new("-") {
        return print(text).map(|_| ());
    }
    journal::write(path, text)?;
    note(&format!("written: {}", path.display()));
    Ok(())
}
