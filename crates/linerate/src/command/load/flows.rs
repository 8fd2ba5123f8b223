//! `linerate load tcp`, `ws`, `quic`, `udp` and `kcp`: streams and round trips over connections or flows.

use super::h2::{keep_alive, set_quic};
use super::target::{HTTPS, Target, WEBSOCKET};
use super::{LIVE, Operations, SECOND, failed, publish, show, write_result};
use crate::cli::{
    FlowArgs, KcpArgs, LoadDatagramArgs, LoadKcpArgs, LoadQuicArgs, LoadTcpArgs, LoadUdpArgs, LoadWsArgs,
    TrustArgs,
};
use crate::command::Terminal;
use crate::engine::{Engine, LOAD};
use crate::error::Error;
use crate::interrupt;
use crate::report::load::Words;
use crate::report::load_flows as report;
use indicatif::{ProgressBar, ProgressStyle};
use linerate_contract::{Done, Event, Request, Role, Sample, Spec};
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let csv = args.csv.as_deref();
    let spec = |workload: &str, usual: u64| {
        let mut spec = of_flows("tcp", workload, &args.flows);
        args.spin.set(&mut spec);
        (spec.connect, spec.size, spec.rate) = (Some(args.address), args.size.unwrap_or(usual), args.rate);
        spec
    };
    if args.ping_pong {
        let mut spec = spec("rr", PING);
        return round_trips(&mut spec, &args.address.to_string(), &args.flows, csv, terminal);
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
    streams(specs, &args.address.to_string(), &args.flows, csv)
}

pub(super) fn ws(args: &LoadWsArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let (target, csv) = (Target::parse(&args.url, &WEBSOCKET)?, args.csv.as_deref());
    let layer = if target.secure { "wss" } else { "websocket" };
    let mut spec = of_flows(layer, if args.stream { "stream" } else { "rr" }, &args.flows);
    args.spin.set(&mut spec);
    spec.connect = Some(target.resolve()?);
    spec.path = Some(target.path.clone());
    spec.rate = args.rate;
    spec.size = args.size.unwrap_or(if args.stream { MESSAGE } else { PING });
    set_peer(&mut spec, &target, &args.trust)?;
    if !args.stream {
        return round_trips(&mut spec, &args.url, &args.flows, csv, terminal);
    }
    let direction = if args.reverse { "client-reads" } else { "client-writes" };
    spec.options.insert("direction".into(), direction.into());
    spec.bytes = Some(TRANSFER);
    streams(vec![spec], &args.url, &args.flows, csv)
}

pub(super) fn quic(args: &LoadQuicArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let target = Target::parse(&format!("https://{}", args.address), &HTTPS)?;
    let mut spec = of_flows("quic", "rr", &args.flows);
    set_quic(&mut spec, &args.quic);
    spec.set_option("streams", args.streams);
    keep_alive(&mut spec, !args.no_keepalive);
    spec.set_option("answer", args.answer);
    (spec.connect, spec.size, spec.rate) = (Some(target.datagram_address()?), args.size, args.rate);
    set_peer(&mut spec, &target, &args.trust)?;
    round_trips(&mut spec, &args.address, &args.flows, args.csv.as_deref(), terminal)
}

pub(super) fn udp(args: &LoadUdpArgs) -> Result<ExitCode, Error> {
    let mut spec = Spec { rate: args.rate, ..of_datagrams("udp", &args.common, args.size) };
    spec.options.extend(args.search.map(|percent| ("search".into(), percent.to_string())));
    streams(vec![spec], &args.common.address.to_string(), &args.common.flows, None)
}

pub(super) fn kcp(args: &LoadKcpArgs) -> Result<ExitCode, Error> {
    let mut spec = of_datagrams("kcp", &args.common, args.size);
    set_kcp(&mut spec, &args.kcp);
    streams(vec![spec], &args.common.address.to_string(), &args.common.flows, None)
}

/// Whom the client asks, and whom it trusts.
fn set_peer(spec: &mut Spec, target: &Target, trust: &TrustArgs) -> Result<(), Error> {
    let (host, insecure) = (Some(target.authority.clone()), trust.insecure);
    spec.request = Some(Request { host, insecure, ..Request::default() });
    spec.tls = target.tls(trust)?;
    Ok(())
}

/// The protocol's settings, as options of a spec.
pub(crate) fn set_kcp(spec: &mut Spec, args: &KcpArgs) {
    for (name, value) in [("mtu", args.mtu), ("window", args.window), ("interval_us", args.interval_us)] {
        spec.options.insert(name.into(), value.to_string());
    }
}

fn of_datagrams(layer: &str, args: &LoadDatagramArgs, size: u64) -> Spec {
    let mut spec = of_flows(layer, "stream", &args.flows);
    (spec.connect, spec.size) = (Some(args.address), size);
    spec.options.insert("mode".into(), args.mode.clone());
    spec
}

/// The spec of connections or flows for some time.
fn of_flows(layer: &str, workload: &str, args: &FlowArgs) -> Spec {
    let mut spec = Spec::new(Role::Client, layer, workload);
    (spec.connections, spec.threads) = (args.connections, args.threads.threads);
    spec.duration_ns = Some(args.duration.into());
    spec.timeout_ns = args.result.timeout.into();
    spec
}

fn round_trips(
    spec: &mut Spec,
    target: &str,
    args: &FlowArgs,
    csv: Option<&Path>,
    terminal: Terminal,
) -> Result<ExitCode, Error> {
    let load = Operations {
        target,
        words: Words { operation: "round trip", payload: "messages" },
        warmup: None,
        repeat: 1,
        csv,
        result: &args.result,
        style: terminal.style,
    };
    load.run(spec)
}

/// Runs one stream, or two at the same time: each direction has its own engine. An error where nothing
/// arrived or too much failed.
fn streams(
    mut specs: Vec<Spec>,
    target: &str,
    args: &FlowArgs,
    csv: Option<&Path>,
) -> Result<ExitCode, Error> {
    let has_datagrams = report::has_datagrams(&specs[0]);
    let live = std::io::stderr().is_terminal() && !args.result.quiet;
    let by_second = csv.is_some() || args.result.json.is_some();
    for spec in &mut specs {
        let every = if by_second { Some(SECOND) } else { live.then_some(LIVE) };
        spec.sample_ns = every.filter(|_| !has_datagrams);
    }
    let clock = (live && has_datagrams).then(|| clock(&specs[0], target, args));
    let interrupted = interrupt::watch();
    let (results, samples): (Vec<Done>, Vec<Vec<Sample>>) =
        run_together(&specs, live && !has_datagrams, &interrupted)?.into_iter().unzip();
    match clock {
        Some(clock) => clock.finish_and_clear(),
        None if live => show(""),
        None => {}
    }
    let runs: Vec<(Spec, Done)> = specs.into_iter().zip(results).collect();
    if let Some(path) = csv {
        write_result(path, &report::csv(&runs, &samples))?;
    }
    publish(&args.result, &report::json(&runs, &samples), &report::text(target, &runs))?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    if runs.iter().any(|(_, done)| done.bytes.0 == 0) {
        return Err(Error::NothingMeasured(format!(
            "no data arrived at {target}: check that `linerate serve {}` runs there with the same settings",
            report::served(&runs[0].0)
        )));
    }
    runs.iter().try_for_each(|(spec, done)| failed::check(spec, done, args.result.max_failed))?;
    Ok(ExitCode::SUCCESS)
}

/// A line with the time: datagrams are counted at the server, which reports at the end.
fn clock(spec: &Spec, target: &str, args: &FlowArgs) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(format!("{} to {target}", spec.layer));
    // A search has as many tries as it needs.
    let each = if spec.options.contains_key("search") { ", tries of " } else { " of " }.to_owned();
    let bar = bar.with_prefix(each + &humantime::format_duration(args.duration).to_string());
    let style = ProgressStyle::with_template("{msg}: {elapsed}{prefix}").expect("the template is constant");
    bar.set_style(style);
    bar.enable_steady_tick(LIVE.into());
    bar
}

fn run_together(
    specs: &[Spec],
    live: bool,
    interrupted: &AtomicBool,
) -> Result<Vec<(Done, Vec<Sample>)>, Error> {
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
                    let mut samples = Vec::new();
                    let done = engine.result(interrupted, |event| {
                        let Event::Sample(sample) = event else { return };
                        samples.push(sample.clone());
                        if live {
                            let mut last = last.lock().expect("the holder only prints");
                            last[index] = Some((spec, sample));
                            show(&report::live(&last, spec.sample_ns.unwrap_or(LIVE)));
                        }
                    });
                    done.map(|done| (done, samples))
                })
            })
            .collect();
        listeners.into_iter().map(|listener| listener.join().expect("a panic is a bug")).collect()
    })
}
