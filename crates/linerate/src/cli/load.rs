//! `linerate load`: one command for all protocols.

use super::argv::Given;
use super::values::expectation;
use super::{
    DatagramArgs, MessageArgs, RequestArgs, ResultArgs, RouteArgs, SpinArgs, TrustArgs, WebSocketArgs, span,
    u32_in, u64_in,
};
use crate::measurement::Expectation;
use crate::stats::highest_rate::LatencyBound;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_contract::Arrival;
use std::time::Duration;

/// Load a server, like wrk, hey, h2load or iperf3
///
/// The protocol is the scheme of the URL; `linerate serve` has a server for each. Without --rate the loop is
/// closed: an operation follows when the last one has ended. With --rate it is open: operations begin at
/// their intended times, and response times count from these.
///
///   http https         requests of HTTP/1.1; a URL without a scheme is of http
///   h2 h2c h3          requests of HTTP/2 over TLS, HTTP/2 with prior knowledge, HTTP/3
///   grpc grpcs         calls of gRPC, with prior knowledge and over TLS; the path is the method
///   tcp tls ws wss udp messages that the server sends back; with --stream data in one direction
///   kcp                data in one direction
///   quic               requests of the protocol of performance tests (draft-banks-quic-performance)
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    before_help = EXAMPLES,
    override_usage = "linerate load [OPTIONS] <URL>...",
    after_help = "\
Exit status: 0 done, 1 too much failed or the server hung, 2 bad usage, 3 nothing succeeded or arrived, \
130 interrupted (the partial result is printed)."
)]
pub struct LoadArgs {
    #[command(flatten)]
    pub given: Given,

    /// URL of the server; of several, which are of one server of HTTP, each is requested as often as the
    /// others
    #[arg(value_name = "URL", required = true)]
    pub url: Vec<String>,

    #[command(flatten)]
    pub volume: VolumeArgs,

    #[command(flatten)]
    pub requests: ExchangeArgs,

    #[command(flatten)]
    pub flow: FlowArgs,

    #[command(flatten)]
    pub route: RouteArgs,

    #[command(flatten)]
    pub trust: TrustArgs,

    #[command(flatten)]
    pub datagrams: DatagramArgs,

    #[command(flatten)]
    pub result: ResultArgs,
}

const EXAMPLES: &str = "Examples:
  linerate load http://127.0.0.1:8080/ -c 64 -d 30s             # closed loop: how much can it do?
  linerate load :8080/items --rate 20000                        # open loop: how long does a response take?
  linerate load :8080 -c 64 --sweep --at-most p99=2ms           # the curve, and the highest rate
  linerate load :8080 -H 'Content-Type: text/plain' --body hello --json result.json
  linerate load :8080 --requests mix.jsonl                      # {\"path\": \"/a\", \"weight\": 9}, ...
  linerate load h2://localhost:8443/ --authority ca.pem -n 100000
  linerate load h3://localhost:8443/ -k --no-keepalive --handshake resumed
  linerate load grpc://127.0.0.1:50051/helloworld.Greeter/SayHello --message base64:CgV3b3JsZA==
  linerate load tcp://127.0.0.1:9000                            # round trips
  linerate load tcp://127.0.0.1:9000 --stream -P 4 --reverse    # throughput, every byte compared
  linerate load udp://127.0.0.1:9000 --search 0.1               # highest rate with at most 0.1 % loss
  linerate load quic://localhost:4433 -k --response-size 1000000";

/// How much, and for how long.
#[derive(Debug, Args)]
pub struct VolumeArgs {
    /// Concurrent connections, or flows of datagrams [default: 16, or 1 of --stream]
    #[arg(
        long,
        short,
        visible_short_alias = 'P',
        visible_alias = "parallel",
        alias = "concurrency",
        value_name = "N",
        value_parser = u32_in(1..)
    )]
    pub connections: Option<u32>,

    /// Threads; each has a share of the connections [default: half of the CPUs]
    #[arg(long, short, value_name = "N", value_parser = u32_in(1..=1024))]
    pub threads: Option<u32>,

    /// Stop after this time [default: 10s, or none with -n]
    #[arg(long, short, short_alias = 'z', value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Stop after N operations, failed ones included
    #[arg(long, short = 'n', value_name = "N", value_parser = u64_in(1..))]
    pub count: Option<u64>,

    /// Open loop with N operations per second, regardless of outstanding responses; of a stream over udp
    /// datagrams per second
    #[arg(long, aliases = ["rps", "qps"], value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Arrival process of --rate: constant gaps, Poisson, or a linear ramp from zero to the rate [default:
    /// constant; of --sweep poisson]
    #[arg(long, value_name = "SHAPE", value_parser = arrivals())]
    pub arrival: Option<Arrival>,

    /// Latency against the rate: a closed loop, then open loops from 10 to 120 % of its rate [of 2s each, or
    /// --duration]; --csv has a line for each rate
    #[arg(long, conflicts_with_all = ["rate", "count", "repeat"])]
    pub sweep: bool,

    /// After --sweep, search the highest rate at which a percentile is at most TIME, such as p99=2ms
    #[arg(long, value_name = "PERCENTILE=TIME", requires = "sweep", value_parser = at_most)]
    pub at_most: Option<LatencyBound>,

    /// Seed of a random arrival process
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Load the server for this time first, without counting
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub warmup: Option<Duration>,

    /// Load N times and print medians with 95 % intervals (6 times or more)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u32_in(1..=1000))]
    pub repeat: u32,

    #[command(flatten)]
    pub spin: SpinArgs,
}

/// Requests and calls, and how they share connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Requests and calls")]
pub struct ExchangeArgs {
    #[command(flatten)]
    pub request: RequestArgs,

    /// A correct response, such as status=404 or length=12 [default: a status below 400]
    #[arg(long, value_name = "PARTS", value_parser = expectation)]
    pub expect: Option<Expectation>,

    #[command(flatten)]
    pub message: MessageArgs,

    /// Messages of each call, all the same: a method that takes a stream may have more than one
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = u64_in(1..=10_000)
    )]
    pub messages: u64,

    /// h2, h2c, h3, grpc, grpcs, quic: operations under way on each connection; a server may allow fewer
    /// (nginx: 128) [default: 10]
    #[arg(long, short = 'm', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub streams: Option<u16>,

    /// HTTP, gRPC, quic, tcp: a new connection for each operation
    #[arg(long, conflicts_with = "streams")]
    pub no_keepalive: bool,

    /// Send the requests of an access log or a HAR (--requests) at their own times, or N times as fast
    #[arg(
        long,
        value_name = "N",
        requires = "requests",
        conflicts_with_all = ["rate", "sweep", "repeat", "count", "feed", "arrival", "pipeline"],
        num_args = 0..=1,
        default_missing_value = "1",
        require_equals = true,
        value_parser = speed
    )]
    pub replay: Option<f64>,

    /// HTTP: time the events within each response: sse (server-sent), lines, or pieces as they arrive; of
    /// gRPC its messages
    #[arg(
        long,
        value_name = "KIND",
        conflicts_with = "pipeline",
        num_args = 0..=1,
        default_missing_value = "sse",
        require_equals = true,
        value_parser = ["sse", "lines", "pieces"]
    )]
    pub events: Option<String>,

    /// http, https: each connection sends N requests at once (pipelining), and the next N after all responses
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        conflicts_with_all = ["rate", "sweep", "no_keepalive"],
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub pipeline: Option<u16>,

    /// http, https: when idle, wait TIME before polling. Lowers CPU cost; adds up to TIME of latency (60us
    /// suggested, 1ms max)
    #[arg(
        hide_short_help = true,
        long,
        value_name = "TIME",
        conflicts_with_all = ["rate", "spin", "sweep"],
        value_parser = span
    )]
    pub coalesce: Option<Duration>,
}

/// Messages, and data in one direction.
#[derive(Debug, Args)]
#[command(next_help_heading = "Messages and streams")]
pub struct FlowArgs {
    /// Bytes of a message, a write or a datagram [default: 64; of --stream tcp and tls 131072, ws and wss
    /// 65536, udp 1472, kcp 63488]
    #[arg(long, short = 'l', value_name = "BYTES", value_parser = u64_in(1..=1 << 30))]
    pub size: Option<u64>,

    /// quic: bytes of a response
    #[arg(hide_short_help = true, long, value_name = "BYTES", default_value_t = 4000)]
    pub response_size: u64,

    /// Data in one direction at full speed, for a server with --stream; every byte is verified
    #[arg(long)]
    pub stream: bool,

    /// tcp, tls, ws, wss: a stream from the server to the client
    #[arg(long, short = 'R')]
    pub reverse: bool,

    /// tcp: streams in both directions at once, each with its own connections
    #[arg(long, visible_alias = "bidir", conflicts_with = "reverse")]
    pub both: bool,

    #[command(flatten)]
    pub websocket: WebSocketArgs,

    /// udp, and data to the server over tcp, tls, ws, wss: a stream of this many bits per second, such as 1G
    #[arg(
        long,
        short = 'b',
        value_name = "BITS",
        conflicts_with_all = ["rate", "reverse", "both"],
        value_parser = bits
    )]
    pub bitrate: Option<f64>,

    /// udp: find the highest rate of a stream with at most this loss, by short trials that are repeated until
    /// a statistical test decides
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["rate", "bitrate"], value_parser = percent)]
    pub search: Option<f64>,
}

impl FlowArgs {
    /// One of the options that only a stream has.
    pub fn has_stream(&self) -> bool {
        self.stream || self.reverse || self.both || self.bitrate.is_some() || self.search.is_some()
    }
}

/// curl's and ab's -d is a body.
fn duration(text: &str) -> Result<Duration, String> {
    span(text).map_err(|e| match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => e,
        false => format!("{e}; a body is --body {text:?}, which makes a POST"),
    })
}

/// The highest rate of an open loop.
pub(crate) const MOST_RATE: f64 = 1e7;

fn speed(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('x').parse::<f64>().ok();
    let number = number.filter(|number| (1e-3..=1e6).contains(number));
    number.ok_or_else(|| "expected how many times as fast, from 0.001 to 1000000".into())
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= MOST_RATE => Ok(rate),
        _ if text.ends_with('%') => Err("expected a number: --sweep has the shares of the capacity".into()),
        _ => Err("expected a number above 0 and up to 10000000".into()),
    }
}

/// `1G`, `2.5M`, `100k` or a number: bits per second, with the prefixes of iperf3.
fn bits(text: &str) -> Result<f64, String> {
    let prefixes = [("k", 1e3), ("m", 1e6), ("g", 1e9)];
    let lower = text.to_ascii_lowercase();
    let split = |(prefix, times)| lower.strip_suffix(prefix).map(|number| (number, times));
    let (number, times) = prefixes.into_iter().find_map(split).unwrap_or((&lower, 1.0));
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number * times <= 1e12 => Ok(number * times),
        _ => Err("expected bits per second such as 500M or 1G".into()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0 to below 100".into()),
    }
}

/// `p99=2ms`.
fn at_most(text: &str) -> Result<LatencyBound, String> {
    let wrong = || "expected a percentile and a time, such as p99=2ms or p99.9=500us".to_owned();
    let (percent, time) = text.split_once('=').ok_or_else(wrong)?;
    let percent = percent.trim().strip_prefix('p').and_then(|percent| percent.parse().ok());
    let percent = percent.filter(|percent| *percent > 0.0 && *percent < 100.0).ok_or_else(wrong)?;
    Ok(LatencyBound { percent, most: span(time.trim()).map_err(|_| wrong())?.into() })
}

/// The shapes of `--arrival`.
fn arrivals() -> impl TypedValueParser<Value = Arrival> {
    PossibleValuesParser::new(["constant", "poisson", "ramp"]).map(|shape| match shape.as_str() {
        "poisson" => Arrival::Poisson,
        "ramp" => Arrival::Ramp,
        _ => Arrival::Constant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_per_second_have_the_prefixes_of_iperf3() {
        for (text, value) in
            [("1G", Some(1e9)), ("2.5m", Some(2.5e6)), ("100K", Some(1e5)), ("8", Some(8.0)), ("G", None)]
        {
            assert_eq!(bits(text).ok(), value, "{text}");
        }
        assert!(rate("50%").unwrap_err().contains("--sweep"));
    }
}
