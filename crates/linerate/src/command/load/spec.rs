//! The spec of the load engine's client, from a URL and options.

use super::sweep;
use crate::bounded;
use crate::cli::{
    CONNECTIONS, ExchangeArgs, FlowArgs, LoadArgs, MOST_RATE, Recorded, SIZE, STREAMS, TrustArgs, VolumeArgs,
    half_of_cpus,
};
use crate::error::Error;
use crate::measurement::PlannedRequest;
use crate::subject::{expected, requested, sent};
use crate::url::{Scheme, Url};
use linerate_contract::{Arrival, Layer, Nanos, Request, Role, Spec, Tls, WeightedRequest, Workload};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time of a load, unless the user says otherwise: that of wrk.
const DURATION: Duration = Duration::from_secs(10);
/// Bytes per transfer of a stream that ends by its count alone: about ten milliseconds, so that little is
/// lost when the time is over.
const TRANSFER: u64 = 8 << 20;

/// The client of one server; of streams in both directions one for each.
///
/// # Errors
/// Options that exclude each other, or a file that cannot be read.
pub(super) fn clients(options: &LoadArgs, urls: &[Url], is_stream: bool) -> Result<Vec<Spec>, Error> {
    let (url, scheme) = (&urls[0], urls[0].scheme);
    let workload = match options.requests.no_keepalive {
        true => Workload::Crr,
        false if is_stream => Workload::Stream,
        false => Workload::Rr,
    };
    let mut spec = Spec::new(Role::Client, scheme.layer, workload);
    set_volume(&mut spec, &options.volume, is_stream)?;
    options.datagrams.set(&mut spec);
    spec.timeout_ns = options.result.timeout.map_or(spec.timeout_ns, Into::into);
    spec.tls = tls(url, &options.trust)?;
    if scheme.is_of_requests() {
        set_requests(&mut spec, options, urls)?;
    } else if scheme.has_tls() || scheme.has_path {
        let (host, insecure) = (Some(url.authority()), options.trust.insecure);
        let mut headers = options.requests.request.headers();
        headers.extend(options.flow.websocket.headers());
        spec.request = Some(Request { host, insecure, headers, ..Request::default() });
        spec.path = scheme.has_path.then(|| url.path.clone());
    }
    spec.options.extend(options.flow.websocket.options());
    set_exchange(&mut spec, &options.requests)?;
    if !scheme.is_of_requests() {
        spec.size = options.flow.size.unwrap_or(usual_size(scheme, is_stream));
    }
    if scheme.layer == Layer::Quic {
        spec.set_option("response", options.flow.response_size);
    }
    Ok(if is_stream { streams(&spec, scheme, &options.flow) } else { vec![spec] })
}

/// The bytes of a message, or those that a stream writes at once.
pub(in crate::command) fn usual_size(scheme: &Scheme, is_stream: bool) -> u64 {
    match scheme.layer {
        _ if !is_stream => SIZE,
        // iperf3's length of a write.
        Layer::Tcp | Layer::Tls => 131_072,
        // The largest frame that most WebSocket libraries send at once.
        Layer::WebSocket | Layer::Wss => 65_536,
        // A segment of Ethernet.
        Layer::Udp => 1_472,
        _ => 63_488,
    }
}

fn set_volume(spec: &mut Spec, args: &VolumeArgs, is_stream: bool) -> Result<(), Error> {
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
        return Err(Error::Input("--arrival needs --rate, the number of operations per second".into()));
    }
    spec.connections = args.connections.unwrap_or(if is_stream { 1 } else { CONNECTIONS });
    spec.threads = args.threads.unwrap_or_else(|| half_of_cpus().min(spec.connections));
    spec.operations = args.count;
    let usual = if args.sweep { sweep::STEP } else { DURATION };
    spec.duration_ns = match (args.duration, args.count) {
        (None, Some(_)) => None,
        (duration, _) => Some(duration.unwrap_or(usual).into()),
    };
    args.spin.set(spec);
    Ok(())
}

/// The requests of the options, or one for each URL.
fn set_requests(spec: &mut Spec, options: &LoadArgs, urls: &[Url]) -> Result<(), Error> {
    let (url, args) = (&urls[0], &options.requests);
    let file = args.request.requests.as_deref();
    if let (Some(file), Some(url)) = (file, urls.iter().find(|url| url.path != "/")) {
        return Err(paths_are_in(file, &url.path));
    }
    let paths: Vec<&str> = urls.iter().map(|url| url.path.as_str()).collect();
    let Recorded { mut requests, times, .. } = args.request.requests(&paths, Path::new(""))?;
    if let Some(speed) = args.replay {
        set_replay(spec, &times, speed, options.volume.duration)?;
    }
    let deadline = options.result.timeout.filter(|_| url.scheme.is_of_calls()).map(grpc_timeout);
    if url.scheme.is_of_calls() {
        args.message.call(&mut requests, file, Path::new(""))?;
        requests.iter_mut().for_each(|call| call.headers.extend(deadline.clone()));
        spec.set_option("grpc", "yes");
        spec.set_option("messages", args.messages);
    }
    if args.expect.is_some_and(|expect| expect.json) {
        return Err(Error::Input("--expect json is for compare: load checks status and length".into()));
    }
    let weighted = |one: &PlannedRequest| {
        let given = args.expect.unwrap_or(one.expect);
        WeightedRequest { expect: expected(given, given, 1), ..sent(one) }
    };
    let insecure = options.trust.insecure;
    let common = Request { host: Some(url.authority()), insecure, ..Request::default() };
    requested(spec, common, requests.iter().map(weighted).collect());
    Ok(())
}

/// The times of a file, `speed` times as fast.
fn set_replay(
    spec: &mut Spec,
    times: &[(Nanos, u32)],
    speed: f64,
    duration: Option<Duration>,
) -> Result<(), Error> {
    let Some((last, _)) = times.last() else {
        return Err(Error::Input(
            "--replay: --requests has no times in this file; an access log and a HAR have".into(),
        ));
    };
    let at = |time: Nanos| Nanos((time.0 as f64 / speed) as u64);
    spec.replay = times.iter().map(|(time, number)| (at(*time), *number)).collect();
    // One operation after another: the threads of an open loop share no order.
    spec.threads = 1;
    spec.rate = Some((times.len() as f64 / at(*last).as_secs_f64().max(1e-3)).min(MOST_RATE));
    if duration.is_none() {
        (spec.duration_ns, spec.operations) = (None, Some(times.len() as u64));
    }
    Ok(())
}

/// A deadline as a header of gRPC, which has at most eight digits.
fn grpc_timeout(time: Duration) -> String {
    let units = [(time.as_micros(), 'u'), (time.as_millis(), 'm'), (time.as_secs().into(), 'S')];
    let (number, unit) = units.into_iter().find(|(number, _)| *number < 100_000_000).unwrap_or(units[2]);
    format!("grpc-timeout: {}{unit}", number.min(99_999_999))
}

/// The paths of requests are in a file, and the URL has one as well.
pub(in crate::command) fn paths_are_in(file: &Path, path: &str) -> Error {
    let file = file.display();
    Error::Input(format!("the paths are those of --requests {file}: give the URL without {path}"))
}

/// How operations share connections.
fn set_exchange(spec: &mut Spec, args: &ExchangeArgs) -> Result<(), Error> {
    let has_streams = spec.layer.has_streams();
    if args.no_keepalive && has_streams && (spec.rate.is_some() || spec.arrival != Arrival::Constant) {
        return Err(Error::Input(
            "over streams, --no-keepalive is for closed loops: leave out --rate and --sweep".into(),
        ));
    }
    if has_streams {
        let streams = if args.no_keepalive { 1 } else { args.streams.unwrap_or(STREAMS) };
        spec.set_option("streams", streams);
    }
    if let Some(span) = args.coalesce {
        match span.as_micros() {
            micros @ 1..=1_000 => spec.set_option("coalesce_us", micros),
            _ => return Err(Error::Input("--coalesce: expected 1us to 1ms; 60us is suggested".into())),
        }
    }
    spec.options.extend(args.events.iter().map(|kind| ("events".into(), kind.clone())));
    if let Some(depth) = args.pipeline {
        spec.set_option("pipeline", depth);
    }
    Ok(())
}

/// A stream in each direction that was asked for.
fn streams(spec: &Spec, scheme: &Scheme, args: &FlowArgs) -> Vec<Spec> {
    let mut spec = spec.clone();
    if scheme.is_of_datagrams() {
        // Bits per second of the payload, as iperf3 counts.
        spec.rate = args.bitrate.map(|bits| bits / 8.0 / spec.size as f64).or(spec.rate);
        spec.options.extend(args.search.map(|percent| ("search".into(), percent.to_string())));
        return vec![spec];
    }
    if scheme.layer != Layer::Tcp {
        spec.bytes = Some(TRANSFER);
    }
    if let Some(bits) = args.bitrate {
        let each = bits / 8.0 / f64::from(spec.connections);
        spec.set_option("pace", (each as u64).max(1));
    }
    let directions: &[&str] = match (args.reverse, args.both) {
        (_, true) => &["client-writes", "client-reads"],
        (true, _) => &["client-reads"],
        _ => &["client-writes"],
    };
    let towards = |direction: &&str| {
        let mut spec = spec.clone();
        spec.set_option("direction", direction);
        spec
    };
    directions.iter().map(towards).collect()
}

/// The CA certificate that a client of this server trusts, its own certificate, and the server's name.
fn tls(url: &Url, trust: &TrustArgs) -> Result<Option<Tls>, Error> {
    let TrustArgs { authority, cert, key, .. } = trust;
    if !url.scheme.has_tls() {
        return Ok(None);
    }
    let read = |option: &str, path: Option<&PathBuf>| match path {
        Some(path) => bounded::text(path).map_err(|error| Error::Input(format!("--{option} {error}"))),
        None => Ok(String::new()),
    };
    Ok(Some(Tls {
        authority: read("authority", authority.as_ref())?,
        certificate: read("cert", cert.as_ref())?,
        key: read("key", key.as_ref().or(cert.as_ref()))?,
        name: url.name().to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use linerate_contract::Expect;

    fn specs(words: &[&str]) -> Result<Vec<Spec>, String> {
        let cli = Cli::parse_from([&["linerate", "load"], words].concat());
        let Command::Load(args) = cli.command else { panic!("it is a load") };
        let url = Url::parse(&args.url[0])?;
        let is_stream = url.scheme.layer == Layer::Kcp || args.flow.has_stream();
        clients(&args, &[url], is_stream).map_err(|e| e.to_string())
    }

    #[test]
    fn the_scheme_and_the_options_decide_layer_workload_and_size() {
        for (words, layer, workload, size) in [
            (&[":8080"][..], "http", "rr", 0),
            (&["h2c://a"], "h2c", "rr", 0),
            (&["grpcs://a/b.C/D"], "h2", "rr", 0),
            (&["http://a", "--no-keepalive"], "http", "crr", 0),
            (&["tcp://a:1"], "tcp", "rr", 64),
            (&["udp://a:1"], "udp", "rr", 64),
            (&["udp://a:1", "-b", "1G"], "udp", "stream", 1_472),
            (&["tls://a:1", "-R"], "tls", "stream", 131_072),
            (&["wss://a", "--stream"], "wss", "stream", 65_536),
            (&["kcp://a:1"], "kcp", "stream", 63_488),
            (&["quic://a:1", "--size", "512"], "quic", "rr", 512),
        ] {
            let spec = &specs(words).unwrap()[0];
            assert_eq!(
                (spec.layer.as_str(), spec.workload.as_str(), spec.size),
                (layer, workload, size),
                "{words:?}"
            );
            assert_eq!(spec.connections, if workload == "stream" { 1 } else { 16 }, "{words:?}");
        }
        let both = specs(&["tcp://a:1", "--both"]).unwrap();
        let directions: Vec<_> = both.iter().filter_map(|spec| spec.option("direction")).collect();
        assert_eq!(directions, ["client-writes", "client-reads"]);
        let rate = specs(&["udp://a:1", "-b", "1M", "--size", "125"]).unwrap()[0].rate;
        assert_eq!(rate, Some(1_000.0));
        for scheme in ["tcp", "tls", "ws", "wss"] {
            let spec = &specs(&[&format!("{scheme}://a:1"), "-b", "8M", "-c", "4"]).unwrap()[0];
            // Bytes per second of each connection.
            assert_eq!((spec.option("pace"), spec.rate), (Some("250000"), None), "{scheme}");
        }
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for (words, part) in [
            (&["h3://a", "--no-keepalive", "--rate", "5"][..], "closed loops"),
            (&["http://a", "--arrival", "poisson"], "--arrival needs --rate"),
            (&["http://a", "--sweep", "--arrival", "ramp"], "steps of one rate"),
            (&["http://a", "--expect", "json"], "for compare"),
            (&["http://a", "--coalesce", "2ms"], "1us to 1ms"),
            (&["grpc://a/"], "its path is no method"),
            (&["http://a/items", "--requests", "mix.jsonl"], "give the URL without /items"),
        ] {
            let error = specs(words).unwrap_err();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }

    #[test]
    fn an_expected_response_is_that_of_every_request() {
        let spec = &specs(&["http://a", "--expect", "status=404,length=12"]).unwrap()[0];
        assert_eq!(spec.expect, Some(Expect { status: Some(404), bytes: Some(12), crc32: None, every: 1 }));
    }
}
