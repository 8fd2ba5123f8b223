//! `linerate load udp|kcp` and `linerate serve udp|kcp`.

use super::{FlowArgs, rate, u32_in, u64_in};
use clap::Args;
use std::net::SocketAddr;

/// Values of the contract's option `mode`.
const MODES: [&str; 3] = ["single", "batch", "gso"];

/// Send numbered datagrams, like iperf3 -u: throughput, loss, reordering
///
/// The server is `linerate serve udp` with the same --size. Without --rate datagrams are sent at full speed.
/// --search finds the highest rate with at most PERCENT of loss (RFC 2544), by short trials that are repeated
/// until a statistical test decides.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load udp 127.0.0.1:9000 --rate 100000
  linerate load udp 127.0.0.1:9000 --mode gso --search 0.1

Exit status: 0 done, 1 failed flows, 2 bad usage, 3 nothing arrived, \
130 interrupted (the partial result is printed).")]
pub struct LoadUdpArgs {
    #[command(flatten)]
    pub common: LoadDatagramArgs,

    /// Bytes per datagram, 64 to 65507
    #[arg(long, value_name = "BYTES", default_value_t = 1472, value_parser = u64_in(64..=65_507))]
    pub size: u64,

    /// Datagrams per second, all flows together
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Find the highest rate with at most this loss
    #[arg(long, value_name = "PERCENT", conflicts_with = "rate", value_parser = percent)]
    pub search: Option<f64>,
}

/// Send a framed stream over KCP; every byte is verified
///
/// The server is `linerate serve kcp` with the same settings, or any KCP without encryption and error
/// correction (sdk/CONTRACT.md).
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate load kcp 127.0.0.1:9000 --window 256 --interval-us 1000

Exit status: 0 done, 1 failed flows, 2 bad usage, 3 nothing arrived, \
130 interrupted (the partial result is printed).")]
pub struct LoadKcpArgs {
    #[command(flatten)]
    pub common: LoadDatagramArgs,

    #[command(flatten)]
    pub kcp: KcpArgs,

    /// Bytes per write
    #[arg(long, value_name = "BYTES", default_value_t = 63_488, value_parser = u64_in(1..=65_536))]
    pub size: u64,
}

/// Options of both loads.
#[derive(Debug, Args)]
pub struct LoadDatagramArgs {
    /// IP address and port of the server
    #[arg(value_name = "ADDRESS")]
    pub address: SocketAddr,

    #[command(flatten)]
    pub flows: FlowArgs,

    /// System calls: one datagram per call (single), sendmmsg and recvmmsg (batch), UDP_SEGMENT and UDP_GRO
    /// (gso)
    #[arg(long, value_parser = MODES, value_name = "MODE", default_value = "batch")]
    pub mode: String,
}

/// Settings of the protocol, equal at both ends.
#[derive(Debug, Args)]
pub struct KcpArgs {
    /// Bytes of a datagram's payload
    #[arg(long, value_name = "BYTES", default_value_t = 1_400, value_parser = u32_in(25..=65_507))]
    pub mtu: u32,

    /// Segments of the send window and of the receive window
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = u32_in(1..=65_535))]
    pub window: u32,

    /// Microseconds between flushes of an idle connection
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = u32_in(1..=5_000_000))]
    pub interval_us: u32,
}

/// Receive datagrams of `linerate load udp` and report them to it
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate serve udp --listen 0.0.0.0:9000")]
pub struct ServeUdpArgs {
    #[command(flatten)]
    pub common: ServeDatagramArgs,

    /// Bytes per datagram; other sizes count as damaged
    #[arg(long, value_name = "BYTES", default_value_t = 1472, value_parser = u64_in(64..=65_507))]
    pub size: u64,
}

/// Receive streams of `linerate load kcp` and verify every byte
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate serve kcp --listen 0.0.0.0:9000 --window 256 --interval-us 1000")]
pub struct ServeKcpArgs {
    #[command(flatten)]
    pub common: ServeDatagramArgs,

    #[command(flatten)]
    pub kcp: KcpArgs,
}

/// Options of both servers.
#[derive(Debug, Args)]
pub struct ServeDatagramArgs {
    /// Address to listen on; port 0: chosen by the kernel
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub listen: SocketAddr,

    /// System calls: one datagram per call (single), recvmmsg (batch), UDP_GRO (gso)
    #[arg(long, value_parser = MODES, value_name = "MODE", default_value = "batch")]
    pub mode: String,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0 to below 100".into()),
    }
}
