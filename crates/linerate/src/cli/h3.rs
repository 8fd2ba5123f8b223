//! `linerate load h3` and `linerate serve h3`.

use super::{MultiplexedArgs, ServePageArgs};
use clap::Args;

/// Send HTTP/3 requests over QUIC, several at the same time on each connection
///
/// Without --rate the loop is closed: each stream is followed by the next one when its response is complete.
/// With --rate it is open: requests are sent at their intended times on the connections in turn, and response
/// times count from these. A status below 400 is a success.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load h3 https://localhost:8443/ --insecure -c 10 --streams 10 -d 5s
  linerate load h3 https://localhost:8443/ --authority ca.pem -n 100000 --json result.json
  linerate load h3 https://localhost:8443/ --insecure --rate 5000 --arrival poisson
  linerate load h3 https://localhost:8443/ --insecure --congestion bbr --datagrams single

Exit status: 0 done, 1 too many requests failed or the server hung, 2 bad usage, \
3 no request succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadH3Args {
    /// URL of the server, https://
    #[arg(value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub multiplexed: MultiplexedArgs,

    #[command(flatten)]
    pub quic: QuicArgs,
}

/// Serve one page from memory over HTTP/3, for any GET
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve h3 --listen 127.0.0.1:8443 --size 1024      \
    # for load h3 https://127.0.0.1:8443/ --insecure
  linerate serve h3 --listen 127.0.0.1:8443 --tls ca.pem     \
    # for load h3 https://127.0.0.1:8443/ --authority ca.pem")]
pub struct ServeH3Args {
    #[command(flatten)]
    pub page: ServePageArgs,

    #[command(flatten)]
    pub quic: QuicArgs,
}

/// What either end of QUIC decides.
#[derive(Debug, Args)]
pub struct QuicArgs {
    /// Congestion control of this end
    #[arg(long, value_parser = ["cubic", "reno", "bbr"], default_value = "cubic")]
    pub congestion: String,

    /// Datagrams per system call: gso joins them in the kernel, batch sends up to 64, single sends one
    #[arg(long, value_parser = ["gso", "batch", "single"], default_value = "gso")]
    pub datagrams: String,
}
