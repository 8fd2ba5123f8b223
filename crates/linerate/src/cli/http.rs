//! `linerate load http` and `linerate serve http`.

use super::{ClientArgs, RouteArgs, SecureArgs, SpinArgs, ThreadArgs, span};
use clap::Args;
use std::net::SocketAddr;
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
  linerate load http http://127.0.0.1:8080 --requests mix.jsonl    # {\"path\": \"/a\", \"weight\": 9}, ...
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

    #[command(flatten)]
    pub client: ClientArgs,

    /// Batch responses: when idle, wait TIME before polling. Lowers CPU cost; adds up to TIME of latency
    /// (60us suggested, 1ms max)
    #[arg(long, value_name = "TIME", conflicts_with_all = ["rate", "spin", "sweep"], value_parser = span)]
    pub coalesce: Option<Duration>,

    #[command(flatten)]
    pub route: RouteArgs,

    /// HTTP pipelining: each connection sends N requests at once, and the next N after all responses
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["rate", "sweep", "no_keepalive"],
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub pipeline: Option<u16>,

    /// Open a new connection for each request
    #[arg(long)]
    pub no_keepalive: bool,
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
