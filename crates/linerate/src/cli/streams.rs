//! `linerate load tcp|ws` and `linerate serve tcp|ws`.

use super::{FlowArgs, SecureArgs, SpinArgs, ThreadArgs, TrustArgs, rate, u64_in};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Send or receive TCP streams, like iperf3; every byte is verified
///
/// The server is `linerate serve tcp`; the client chooses the direction. With --ping-pong each connection
/// sends a message, waits for its echo and reports latencies; the server is then `linerate serve tcp --echo`
/// or any echo server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load tcp 127.0.0.1:9000
  linerate load tcp 127.0.0.1:9000 -P 4 -d 30s --reverse
  linerate load tcp 127.0.0.1:9000 --both --json result.json
  linerate load tcp 127.0.0.1:9000 --ping-pong -c 16 --rate 10000

Exit status: 0 done, 1 failed connections or a server that hung, 2 bad usage, \
3 nothing arrived, 130 interrupted (the partial result is printed).")]
pub struct LoadTcpArgs {
    /// IP address and port of the server
    #[arg(value_name = "ADDRESS")]
    pub address: SocketAddr,

    #[command(flatten)]
    pub flows: FlowArgs,

    #[command(flatten)]
    pub spin: SpinArgs,

    /// Bytes per write, or per message [default: 131072, or 64 with --ping-pong]
    #[arg(long, short = 'l', value_name = "BYTES", value_parser = u64_in(1..=1_048_576))]
    pub size: Option<u64>,

    /// The server sends, the client receives
    #[arg(long, short = 'R')]
    pub reverse: bool,

    /// Both directions at once, each with its own connections
    #[arg(long, visible_alias = "bidir", conflicts_with = "reverse")]
    pub both: bool,

    /// Round trips: one outstanding message per connection
    #[arg(long, conflicts_with_all = ["reverse", "both"])]
    pub ping_pong: bool,

    /// Open loop with N messages per second, regardless of outstanding echoes
    #[arg(long, value_name = "N", requires = "ping_pong", value_parser = rate)]
    pub rate: Option<f64>,

    /// Write what was measured in each second, which --json has too
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Send WebSocket messages, as round trips or as a stream; with TLS 1.3 for wss URLs
///
/// Each connection sends a message and waits for its echo; the server is `linerate serve ws` or any echo
/// server. With --stream messages go one way and every byte is verified; the server is then `linerate serve
/// ws --stream`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load ws ws://127.0.0.1:9000/ -c 100
  linerate load ws ws://127.0.0.1:9000/ --rate 10000 --size 1024
  linerate load ws ws://127.0.0.1:9000/ --stream --size 65536
  linerate load ws wss://localhost:9000/ --authority ca.pem

Exit status: 0 done, 1 too many failures or a server that hung, 2 bad usage, \
3 no message was echoed or delivered, 130 interrupted (the partial result is printed).")]
pub struct LoadWsArgs {
    /// URL of the server, ws:// or wss://
    #[arg(value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub flows: FlowArgs,

    #[command(flatten)]
    pub spin: SpinArgs,

    /// Bytes per message [default: 64, or 65536 with --stream]
    #[arg(long, value_name = "BYTES", value_parser = u64_in(1..=1_048_576))]
    pub size: Option<u64>,

    /// Messages in one direction, at full speed
    #[arg(long, conflicts_with = "rate")]
    pub stream: bool,

    /// With --stream: the server sends, the client receives; the server needs --reverse as well
    #[arg(long, short = 'R', requires = "stream")]
    pub reverse: bool,

    /// Open loop with N messages per second, regardless of outstanding echoes
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    #[command(flatten)]
    pub trust: TrustArgs,

    /// Write what was measured in each second, which --json has too
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Receive and verify streams of `linerate load tcp`, or send them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve tcp --listen 0.0.0.0:9000
  linerate serve tcp --echo                  # for load tcp --ping-pong")]
pub struct ServeTcpArgs {
    #[command(flatten)]
    pub common: ServeStreamArgs,

    /// Bytes per write
    #[arg(
        long,
        short = 'l',
        value_name = "BYTES",
        default_value_t = 131_072,
        value_parser = u64_in(1..=1_048_576)
    )]
    pub size: u64,

    /// Echo all received bytes
    #[arg(long)]
    pub echo: bool,
}

/// Echo WebSocket messages, or receive or send streams of them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate serve ws
  linerate serve ws --stream --reverse       # for load ws --stream --reverse
  linerate serve ws --tls ca.pem             # for load ws wss://localhost:9000/ --authority ca.pem")]
pub struct ServeWsArgs {
    #[command(flatten)]
    pub common: ServeStreamArgs,

    /// Receive and verify streams of messages
    #[arg(long)]
    pub stream: bool,

    /// With --stream: send streams instead of receiving them
    #[arg(long, short = 'R', requires = "stream")]
    pub reverse: bool,

    /// Bytes per message that is sent with --reverse
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = u64_in(1..=1_048_576))]
    pub size: u64,

    #[command(flatten)]
    pub secure: SecureArgs,
}

/// Options of both servers.
#[derive(Debug, Args)]
pub struct ServeStreamArgs {
    /// Address to listen on; port 0: chosen by the kernel
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub listen: SocketAddr,

    #[command(flatten)]
    pub threads: ThreadArgs,

    #[command(flatten)]
    pub spin: SpinArgs,
}
