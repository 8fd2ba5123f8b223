//! `linerate load http` and `linerate serve http`.

use super::{SecureArgs, TrustArgs, rate, span};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// HTTP/1.1, with TLS if the URL says https
///
/// Without --rate the loop is closed: each connection sends its next request when the last one is answered. With --rate it
/// is open: requests are sent when they are due, and their response time counts from then. Answers below 400 are good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load http http://127.0.0.1:8080/
  linerate load http http://127.0.0.1:8080/ -c 64 -d 30s --rate 20000 --arrival poisson
  linerate load http https://localhost/ --insecure -n 10000 --no-keepalive
  linerate load http http://127.0.0.1:8080/plaintext -c 64 --pipeline 16
  linerate load http https://localhost:8443/ --authority ca.pem
  linerate load http http://127.0.0.1:8080/ -X POST -H 'Content-Type: text/plain' --body hello --json result.json

Exit status: 0 done, 2 bad usage, 3 no request succeeded, 130 interrupted (what was measured is printed).")]
pub struct LoadHttpArgs {
    #[arg(value_name = "URL")]
    pub url: String,

    /// Connections open at the same time
    #[arg(long, short, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    /// Threads, each with a part of the connections [default: 2, or 1 where there is one CPU]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Stop after this time [default: 10s, or none with --requests]
    #[arg(long, short, value_name = "TIME", value_parser = span)]
    pub duration: Option<Duration>,

    /// Stop after so many requests, failed ones included
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// Open loop: so many requests a second are due, whether or not earlier ones are answered
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// How they are spread: evenly, at random as of many users, or from nothing up to the rate
    #[arg(long, value_enum, value_name = "SHAPE", default_value = "constant")]
    pub arrival: ArrivalArg,

    /// Never sleep: no request and no answer waits for an idle CPU to wake, and each thread takes a whole CPU
    #[arg(long, requires = "rate")]
    pub busy: bool,

    /// Take answers in company: before it sleeps for the next one, a thread sleeps so long for several. Less CPU for each and a higher
    /// ceiling; an answer may be seen so much later (60us is a good value; at most 1ms)
    #[arg(long, value_name = "TIME", conflicts_with = "rate", value_parser = span)]
    pub coalesce: Option<Duration>,

    /// Seed of a random schedule
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[arg(long, short = 'X', value_name = "METHOD", default_value = "GET")]
    pub method: String,

    /// A further header, 'Name: value' (may be repeated)
    #[arg(long, short = 'H', value_name = "LINE")]
    pub header: Vec<String>,

    /// What to send as the body
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,

    /// A request that takes longer has failed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub timeout: Duration,

    /// HTTP pipelining: so many requests leave together on each connection, the next ones when all of them are answered
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "no_keepalive"], value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub pipeline: Option<u16>,

    /// A new connection for each request
    #[arg(long)]
    pub no_keepalive: bool,

    #[command(flatten)]
    pub trust: TrustArgs,

    /// Write the account as JSON, with whole histograms; - is standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// No live line
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalArg {
    Constant,
    Poisson,
    Ramp,
}

/// HTTP/1.1: any GET is answered with the same page from memory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve http --listen 127.0.0.1:8080 --size 1024
  linerate serve http --listen 127.0.0.1:8443 --tls          # for load http https://127.0.0.1:8443/ --insecure
  linerate serve http --listen 127.0.0.1:8443 --tls ca.pem   # for load http https://localhost:8443/ --authority ca.pem")]
pub struct ServeHttpArgs {
    /// Where to listen; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Bytes of the page
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    pub size: u64,

    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    #[command(flatten)]
    pub secure: SecureArgs,
}
