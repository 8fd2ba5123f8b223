//! `linerate load h2` and `linerate serve h2`.

use super::{RequestArgs, ResultArgs, ServePageArgs, SpinArgs, TrustArgs, span};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Send HTTP/2 requests, several at the same time on each connection
///
/// http URLs are loaded with prior knowledge (h2c), https URLs over TLS (ALPN h2). The loop is closed: each
/// stream is followed by the next one when its response is complete. A status below 400 is a success.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load h2 http://127.0.0.1:8080/ -c 10 --streams 10 -d 5s
  linerate load h2 https://localhost:8443/ --insecure -c 1 --streams 100
  linerate load h2 https://localhost:8443/ --authority ca.pem -n 100000 --json result.json

Exit status: 0 done, 1 too many requests failed or the server hung, 2 bad usage, \
3 no request succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadH2Args {
    /// URL of the server, http:// or https://
    #[arg(value_name = "URL")]
    pub url: String,

    /// Concurrent connections
    #[arg(
        long,
        short,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub connections: u32,

    /// Requests under way on each connection; a server may allow fewer (nginx: 128)
    #[arg(
        long,
        short = 'm',
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub streams: u16,

    /// Threads; each has a share of the connections [default: 2, or 1 on a machine with one CPU]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Stop after this time [default: 10s, or none with -n]
    #[arg(long, short, value_name = "TIME", value_parser = span)]
    pub duration: Option<Duration>,

    /// Stop after N requests, failed ones included
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    #[command(flatten)]
    pub spin: SpinArgs,

    #[command(flatten)]
    pub request: RequestArgs,

    /// Connect to this host and port; the authority and the TLS name remain those of the URL
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,

    /// Load the server for this time first, without counting
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub warmup: Option<Duration>,

    /// Load N times and print medians with 95 % intervals (6 times or more)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub repeat: u32,

    #[command(flatten)]
    pub trust: TrustArgs,

    #[command(flatten)]
    pub result: ResultArgs,

    /// Write rate, failures, p50 and p99 of each second
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    pub csv: Option<PathBuf>,
}

/// Serve one page from memory over HTTP/2, for any GET
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve h2 --listen 127.0.0.1:8080 --size 1024      \
    # for load h2 http://127.0.0.1:8080/, and curl --http2-prior-knowledge
  linerate serve h2 --listen 127.0.0.1:8443 --tls            \
    # for load h2 https://127.0.0.1:8443/ --insecure")]
pub struct ServeH2Args {
    #[command(flatten)]
    pub page: ServePageArgs,
}
