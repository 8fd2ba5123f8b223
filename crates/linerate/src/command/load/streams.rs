//! `linerate load tcp` and `linerate load ws`.

use super::target::{Target, WEBSOCKET};
use super::{LIVE, Operations, end, of_flows, show};
use crate::cli::{FlowArgs, LoadTcpArgs, LoadWsArgs};
use crate::command::Terminal;
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::interrupt;
use crate::report::load::Words;
use crate::report::load_streams as report;
use linerate_contract::{Done, Event, Request, Spec};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// iperf3's length of a write.
const WRITE: u64 = 131_072;
/// The size of the server's reads; the largest frame that most WebSocket libraries send at once.
const MESSAGE: u64 = 65_536;
/// A message that fits any segment.
const PING: u64 = 64;
/// Bytes per transfer of a WebSocket stream: about ten milliseconds, so that little is lost when the time is
/// over.
const TRANSFER: u64 = 8 << 20;

pub(super) fn tcp(args: &LoadTcpArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let spec = |workload: &str, usual: u64| {
        let mut spec = of_flows("tcp", workload, &args.flows);
        args.spin.set(&mut spec);
        (spec.connect, spec.size, spec.rate) = (Some(args.address), args.size.unwrap_or(usual), args.rate);
        spec
    };
    if args.ping_pong {
        let mut spec = spec("rr", PING);
        return round_trips(&mut spec, &args.address.to_string(), &args.flows, terminal);
    }
    let directions: &[&str] = match (args.reverse, args.both) {
        (_, true) => &["client-writes", "client-reads"],
        (true, _) => &["client-reads"],
        _ => &["client-writes"],
    };
    let towards = |direction: &&str| {
        let mut spec = spec("stream", WRITE);
        spec.options.insert("direction".into(), (*direction).into());
        spec
    };
    let specs: Vec<Spec> = directions.iter().map(towards).collect();
    streams(specs, &args.address.to_string(), &args.flows)
}

pub(super) fn ws(args: &LoadWsArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let target = Target::parse(&args.url, &WEBSOCKET)?;
    let layer = if target.secure { "wss" } else { "websocket" };
    let mut spec = of_flows(layer, if args.stream { "stream" } else { "rr" }, &args.flows);
    args.spin.set(&mut spec);
    spec.connect = Some(target.resolve()?);
    spec.path = Some(target.path.clone());
    spec.rate = args.rate;
    spec.size = args.size.unwrap_or(if args.stream { MESSAGE } else { PING });
    let (host, insecure) = (Some(target.authority.clone()), args.trust.insecure);
    spec.request = Some(Request { host, insecure, ..Request::default() });
    if target.secure {
        spec.tls = Some(target.trusted(&args.trust)?);
    }
    if !args.stream {
        return round_trips(&mut spec, &args.url, &args.flows, terminal);
    }
    let direction = if args.reverse { "client-reads" } else { "client-writes" };
    spec.options.insert("direction".into(), direction.into());
    spec.bytes = Some(TRANSFER);
    streams(vec![spec], &args.url, &args.flows)
}

fn round_trips(
    spec: &mut Spec,
    target: &str,
    args: &FlowArgs,
    terminal: Terminal,
) -> Result<ExitCode, Error> {
    let load = Operations {
        target,
        words: Words { operation: "round trip", payload: "messages" },
        warmup: None,
        repeat: 1,
        csv: None,
        result: &args.result,
        style: terminal.style,
    };
    load.run(spec)
}

/// Runs one stream, or two at the same time: each direction has its own engine.
fn streams(mut specs: Vec<Spec>, target: &str, args: &FlowArgs) -> Result<ExitCode, Error> {
    let live = std::io::stderr().is_terminal() && !args.result.quiet;
    for spec in &mut specs {
        spec.sample_ns = live.then_some(LIVE);
    }
    let interrupted = interrupt::watch();
    let results = run_together(&specs, &interrupted)?;
    if live {
        show("");
    }
    let runs: Vec<(Spec, Done)> = specs.into_iter().zip(results).collect();
    let (json, text) = (report::json(&runs), report::text(target, &runs));
    end(target, &runs, [&json, &text], &args.result, &interrupted)
}

fn run_together(specs: &[Spec], interrupted: &AtomicBool) -> Result<Vec<Done>, Error> {
    // Started by this thread, because an engine ends with the thread that started it.
    let engines = specs.iter().map(|spec| Engine::start(LOAD, spec)).collect::<Result<Vec<_>, _>>()?;
    let last = Mutex::new(vec![None; specs.len()]);
    std::thread::scope(|scope| {
        let listeners: Vec<_> = engines
            .into_iter()
            .zip(specs)
            .enumerate()
            .map(|(index, (engine, spec))| {
                let last = &last;
                scope.spawn(move || {
                    engine.result(interrupted, |event| {
                        if let Event::Sample(sample) = event {
                            let mut last = last.lock().expect("the holder only prints");
                            last[index] = Some((spec, sample));
                            show(&report::live(&last, LIVE));
                        }
                    })
                })
            })
            .collect();
        listeners.into_iter().map(|listener| listener.join().expect("a panic is a bug")).collect()
    })
}
