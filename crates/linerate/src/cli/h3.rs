//! `linerate load h3|quic` and `linerate serve h3|quic`.

use super::{FlowArgs, MultiplexedArgs, SecureArgs, ServePageArgs, ServeStreamArgs, TrustArgs, rate, u64_in};
use clap::Args;
use std::path::PathBuf;

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
  linerate load h3 https://localhost:8443/ --insecure -c 20 --no-keepalive   # handshakes
  linerate load h3 https://localhost:8443/ --insecure -c 20 --no-keepalive --handshake resumed

Exit status: 0 done, 1 too many requests failed or the server hung, 2 bad usage, \
3 no request succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadH3Args {
    /// URL of the server, https://
    #[arg(value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub multiplexed: MultiplexedArgs,

    /// Open a new connection for each request
    #[arg(long, conflicts_with_all = ["rate", "sweep", "streams"])]
    pub no_keepalive: bool,

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

/// Send requests over QUIC by the protocol of performance tests, several at the same time on each connection
///
/// Each request is a stream that begins with the length of its response (draft-banks-quic-performance, ALPN
/// perf). The server is `linerate serve quic` or another one of that protocol, such as MsQuic's secnetperf.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load quic localhost:4433 --insecure --streams 100
  linerate load quic localhost:4433 --insecure --size 8 --answer 1000000     # download
  linerate load quic localhost:4433 --authority ca.pem --rate 2000 --datagrams single

Exit status: 0 done, 1 too many failures or a server that hung, 2 bad usage, \
3 no request succeeded, 130 interrupted (the partial result is printed).")]
pub struct LoadQuicArgs {
    /// Host and port of the server
    #[arg(value_name = "HOST:PORT")]
    pub address: String,

    #[command(flatten)]
    pub flows: FlowArgs,

    /// Requests under way on each connection; a server may allow fewer
    #[arg(
        long,
        short = 'm',
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub streams: u16,

    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = u64_in(8..=1 << 30))]
    pub size: u64,

    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value_t = 4000)]
    pub answer: u64,

    /// Open loop with N requests per second, regardless of outstanding responses
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Open a new connection for each request
    #[arg(long, conflicts_with_all = ["rate", "streams"])]
    pub no_keepalive: bool,

    #[command(flatten)]
    pub trust: TrustArgs,

    #[command(flatten)]
    pub quic: QuicArgs,

    /// Write what was measured in each second, which --json has too
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Answer requests over QUIC with as many bytes as they ask for
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve quic --listen 127.0.0.1:4433                # for load quic localhost:4433 --insecure
  linerate serve quic --listen 127.0.0.1:4433 --tls ca.pem   # for load quic --authority ca.pem")]
pub struct ServeQuicArgs {
    #[command(flatten)]
    pub common: ServeStreamArgs,

    #[command(flatten)]
    pub secure: SecureArgs,

    #[command(flatten)]
    pub quic: QuicArgs,
}

/// What either end of QUIC decides.
#[derive(Debug, Args)]
pub struct QuicArgs {
    /// Congestion control of this end
    #[arg(long, value_parser = ["cubic", "reno", "bbr"], default_value = "cubic")]
    pub congestion: String,

    /// With resumed, a server gives tickets, and a client resumes its sessions after one full handshake for
    /// each connection
    #[arg(long, value_parser = ["full", "resumed"], default_value = "full")]
    pub handshake: String,

    /// Datagrams per system call: gso joins them in the kernel, batch sends up to 64, single sends one
    #[arg(long, value_parser = ["gso", "batch", "single"], default_value = "gso")]
    pub datagrams: String,
}
