//! `linerate load tcp|ws` and `linerate serve tcp|ws`.

use super::{SecureArgs, TrustArgs, rate, span};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// TCP, as one would with iperf3: how many bits a second go through, every byte compared
///
/// The other end is `linerate serve tcp`, which follows whichever way the client asks for. With --ping-pong each connection sends a
/// message and waits until it is back, and latencies are told; the other end is then `linerate serve tcp --echo`, or anything that sends
/// back what it gets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load tcp 127.0.0.1:9000
  linerate load tcp 127.0.0.1:9000 -P 4 -d 30s --reverse
  linerate load tcp 127.0.0.1:9000 --both --json result.json
  linerate load tcp 127.0.0.1:9000 --ping-pong -c 16 --rate 10000

Exit status: 0 done, 2 bad usage, 3 nothing arrived, 130 interrupted (what was measured is printed).")]
pub struct LoadTcpArgs {
    #[arg(value_name = "ADDRESS")]
    pub address: SocketAddr,

    #[command(flatten)]
    pub common: LoadStreamArgs,

    /// Bytes of a write, or of a message [default: 131072, or 64 with --ping-pong]
    #[arg(long, short = 'l', value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
    pub size: Option<u64>,

    /// The server sends, and the client receives
    #[arg(long, short = 'R')]
    pub reverse: bool,

    /// Both ways at once, each with so many connections of its own
    #[arg(long, visible_alias = "bidir", conflicts_with = "reverse")]
    pub both: bool,

    /// Messages there and back, one under way on each connection
    #[arg(long, conflicts_with_all = ["reverse", "both"])]
    pub ping_pong: bool,

    /// Open loop: so many messages a second are due, whether or not earlier ones are back
    #[arg(long, value_name = "N", requires = "ping_pong", value_parser = rate)]
    pub rate: Option<f64>,
}

/// WebSocket, with TLS if the URL says wss: messages there and back, or streams of them
///
/// Each connection sends a message and waits until it is back, so the other end is `linerate serve ws` or any server that echoes. With
/// --stream messages go one way, every byte compared; the other end is then `linerate serve ws --stream`. Over wss it is TLS 1.3.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load ws ws://127.0.0.1:9000/ -c 100
  linerate load ws ws://127.0.0.1:9000/ --rate 10000 --size 1024
  linerate load ws ws://127.0.0.1:9000/ --stream --size 65536
  linerate load ws wss://localhost:9000/ --authority ca.pem

Exit status: 0 done, 2 bad usage, 3 nothing came back, 130 interrupted (what was measured is printed).")]
pub struct LoadWsArgs {
    #[arg(value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub common: LoadStreamArgs,

    /// Bytes of a message [default: 64, or 65536 with --stream]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub size: Option<u64>,

    /// Messages one way, as many as go
    #[arg(long, conflicts_with = "rate")]
    pub stream: bool,

    /// With --stream: the server sends, and the client receives; the server must have been told so, too
    #[arg(long, short = 'R', requires = "stream")]
    pub reverse: bool,

    /// Open loop: so many messages a second are due, whether or not earlier ones are back
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    #[command(flatten)]
    pub trust: TrustArgs,
}

/// What both loads have in common.
#[derive(Debug, Args)]
pub struct LoadStreamArgs {
    /// Connections open at the same time
    #[arg(long, short, short_alias = 'P', visible_alias = "parallel", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub duration: Duration,

    /// Who does not answer for so long is gone
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub timeout: Duration,

    /// Write the account as JSON; - is standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// No live line
    #[arg(long, short)]
    pub quiet: bool,
}

/// Receives and compares what `linerate load tcp` sends, or sends what it asks for
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve tcp --listen 0.0.0.0:9000
  linerate serve tcp --echo                  # for load tcp --ping-pong")]
pub struct ServeTcpArgs {
    #[command(flatten)]
    pub common: ServeStreamArgs,

    /// Bytes of a write
    #[arg(long, short = 'l', value_name = "BYTES", default_value_t = 131_072, value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
    pub size: u64,

    /// Send back what comes
    #[arg(long)]
    pub echo: bool,
}

/// Sends back every message, or takes and compares streams of them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve ws
  linerate serve ws --stream --reverse       # for load ws --stream --reverse
  linerate serve ws --tls ca.pem             # for load ws wss://localhost:9000/ --authority ca.pem")]
pub struct ServeWsArgs {
    #[command(flatten)]
    pub common: ServeStreamArgs,

    /// Take streams of messages
    #[arg(long)]
    pub stream: bool,

    /// With --stream: send them
    #[arg(long, short = 'R', requires = "stream")]
    pub reverse: bool,

    /// Bytes of a message that is sent with --reverse
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub size: u64,

    #[command(flatten)]
    pub secure: SecureArgs,
}

/// What both servers have in common.
#[derive(Debug, Args)]
pub struct ServeStreamArgs {
    /// Where to listen; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub listen: SocketAddr,

    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,
}
