//! `linerate load http` and `linerate serve http`.

use super::{
    RequestArgs, ResultArgs, RouteArgs, SecureArgs, SpinArgs, ThreadArgs, TrustArgs, rate, span, u32_in,
    u64_in,
};
use crate::stats::highest_rate::LatencyBound;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_contract::Arrival;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Send HTTP/1.1 requests; with TLS for https URLs
///
/// Without --rate the loop is closed: each connection sends its next request after the response to the last
/// one. With --rate it is open: requests are sent at their intended times, and response times count from
/// these. A status below 400 is a success.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load http http://127.0.0.1:8080/
  linerate load http http://127.0.0.1:8080/ -c 64 -d 30s --rate 20000 --arrival poisson
  linerate load http https://localhost/ --insecure -n 10000 --no-keepalive
  linerate load http http://127.0.0.1:8080/plaintext -c 64 --pipeline 16
  linerate load http https://localhost:8443/ --authority ca.pem
  linerate load http http://127.0.0.1:8080/ -H 'Content-Type: text/plain' --body hello --json result.json
  linerate load http http://127.0.0.1:8080/ --warmup 5s --repeat 10
  linerate load http http://127.0.0.1:8080 --requests mix.jsonl    # {{\"path\": \"/a\", \"weight\": 9}}, ...
  linerate load http http://127.0.0.1:8080/ -c 64 --sweep --at-most p99=2ms
  linerate load http http://shop.example/ --connect-to 127.0.0.1:8080 --body @order.json --csv seconds.csv
  linerate load http http://127.0.0.1:8080/a http://127.0.0.1:8080/b
  linerate load http http://localhost/ --unix-socket /run/shop.sock

Exit status: 0 done, 1 too many requests failed or the server hung, 2 bad usage, \
3 no request succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadHttpArgs {
    /// URL of the server, http:// or https://; of several, each is requested as often as the others
    #[arg(value_name = "URL", required = true)]
    pub url: Vec<String>,

    /// Concurrent connections
    #[arg(long, short, value_name = "N", default_value_t = 10, value_parser = u32_in(1..))]
    pub connections: u32,

    /// Threads; each has a share of the connections [default: 2, or 1 on a machine with one CPU]
    #[arg(long, short, value_name = "N", value_parser = u32_in(1..=1024))]
    pub threads: Option<u32>,

    /// Stop after this time [default: 10s, or none with -n]
    #[arg(long, short, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Stop after N requests, failed ones included
    #[arg(long, short = 'n', value_name = "N", value_parser = u64_in(1..))]
    pub count: Option<u64>,

    /// Open loop with N requests per second, regardless of outstanding responses
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Arrival process of --rate: constant gaps, Poisson, or a linear ramp from zero to the rate [default:
    /// constant; of --sweep poisson]
    #[arg(long, value_name = "SHAPE", value_parser = arrivals())]
    pub arrival: Option<Arrival>,

    /// Latency against the rate: a closed loop, then open loops from 10 to 120 % of its rate [of 2s each, or
    /// --duration]
    #[arg(long, conflicts_with_all = ["rate", "count", "repeat", "pipeline", "coalesce"])]
    pub sweep: bool,

    /// After --sweep, search the highest rate at which a percentile is at most TIME, such as p99=2ms
    #[arg(long, value_name = "PERCENTILE=TIME", requires = "sweep", value_parser = at_most)]
    pub at_most: Option<LatencyBound>,

    #[command(flatten)]
    pub spin: SpinArgs,

    /// Batch responses: when idle, wait TIME before polling. Lowers CPU cost; adds up to TIME of latency
    /// (60us suggested, 1ms max)
    #[arg(long, value_name = "TIME", conflicts_with_all = ["rate", "spin"], value_parser = span)]
    pub coalesce: Option<Duration>,

    /// Seed of a random arrival process
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub request: RequestArgs,

    #[command(flatten)]
    pub route: RouteArgs,

    /// Load the server for this time first, without counting
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub warmup: Option<Duration>,

    /// Load N times and print medians with 95 % intervals (6 times or more)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u32_in(1..=1000))]
    pub repeat: u32,

    /// HTTP pipelining: each connection sends N requests at once, and the next N after all responses
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["rate", "no_keepalive"],
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub pipeline: Option<u16>,

    /// Open a new connection for each request
    #[arg(long)]
    pub no_keepalive: bool,

    #[command(flatten)]
    pub trust: TrustArgs,

    #[command(flatten)]
    pub result: ResultArgs,

    /// Write rate, failures, p50 and p99 of each second, which --json has too; of --sweep a line for each
    /// rate
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    pub csv: Option<PathBuf>,
}

/// curl's and ab's -d is a body.
fn duration(text: &str) -> Result<Duration, String> {
    span(text).map_err(|e| match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => e,
        false => format!("{e}; a body is --body {text:?}, which makes a POST"),
    })
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

/// Serve one page from memory over HTTP/1.1, for any GET
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve http --listen 127.0.0.1:8080 --size 1024
  linerate serve http --listen 127.0.0.1:8443 --tls          \
    # for load http https://127.0.0.1:8443/ --insecure
  linerate serve http --listen 127.0.0.1:8443 --tls ca.pem   \
    # for load http https://localhost:8443/ --authority ca.pem")]
pub struct ServeHttpArgs {
    #[command(flatten)]
    pub page: ServePageArgs,
}

/// A page, and where it is served.
#[derive(Debug, Args)]
pub struct ServePageArgs {
    /// Address to listen on; port 0: chosen by the kernel
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Bytes of the page
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    pub size: u64,

    #[command(flatten)]
    pub threads: ThreadArgs,

    #[command(flatten)]
    pub spin: SpinArgs,

    #[command(flatten)]
    pub secure: SecureArgs,
}
