//! What every load of requests has, whatever the version of HTTP.

use super::{RequestArgs, ResultArgs, SpinArgs, TrustArgs, rate, span, u32_in, u64_in};
use crate::stats::highest_rate::LatencyBound;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_contract::Arrival;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub struct ClientArgs {
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
    /// --duration]; --csv has a line for each rate
    #[arg(long, conflicts_with_all = ["rate", "count", "repeat"])]
    pub sweep: bool,

    /// After --sweep, search the highest rate at which a percentile is at most TIME, such as p99=2ms
    #[arg(long, value_name = "PERCENTILE=TIME", requires = "sweep", value_parser = at_most)]
    pub at_most: Option<LatencyBound>,

    /// Seed of a random arrival process
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub spin: SpinArgs,

    #[command(flatten)]
    pub request: RequestArgs,

    /// Load the server for this time first, without counting
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub warmup: Option<Duration>,

    /// Load N times and print medians with 95 % intervals (6 times or more)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = u32_in(1..=1000))]
    pub repeat: u32,

    #[command(flatten)]
    pub trust: TrustArgs,

    #[command(flatten)]
    pub result: ResultArgs,

    /// Write rate, failures, p50 and p99 of each second, which --json has too
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
