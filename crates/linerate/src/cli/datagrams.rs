//! `linerate load udp|kcp` and `linerate serve udp|kcp`.

use super::{rate, span};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Numbered datagrams, as one would with iperf3 -u: how many arrive, and which are lost
///
/// The other end is `linerate serve udp` with the same --size. Without --rate datagrams leave as fast as they go. With --search the
/// highest rate is found of which no more than so many percent are lost (RFC 2544), by short trials that are repeated until a statistic decides.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate load udp 127.0.0.1:9000 --rate 100000
  linerate load udp 127.0.0.1:9000 --mode gso --search 0.1

Exit status: 0 done, 2 bad usage, 3 nothing arrived, 130 interrupted (what was measured is printed).")]
pub struct LoadUdpArgs {
    #[command(flatten)]
    pub common: LoadDatagramArgs,

    /// Bytes of a datagram, 64 to 65507
    #[arg(long, value_name = "BYTES", default_value_t = 1472, value_parser = clap::value_parser!(u64).range(64..=65_507))]
    pub size: u64,

    /// Datagrams a second over all flows
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,

    /// Find the highest rate with at most so many percent of loss
    #[arg(long, value_name = "PERCENT", conflicts_with = "rate", value_parser = percent)]
    pub search: Option<f64>,
}

/// A framed stream over KCP, every byte compared
///
/// The other end is `linerate serve kcp` with the same settings, or any KCP without encryption and error correction (sdk/CONTRACT.md).
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate load kcp 127.0.0.1:9000 --window 256 --interval-us 1000

Exit status: 0 done, 2 bad usage, 3 nothing arrived, 130 interrupted (what was measured is printed).")]
pub struct LoadKcpArgs {
    #[command(flatten)]
    pub common: LoadDatagramArgs,

    #[command(flatten)]
    pub kcp: KcpArgs,

    /// Bytes of a write
    #[arg(long, value_name = "BYTES", default_value_t = 63_488, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub size: u64,
}

/// What both loads have in common.
#[derive(Debug, Args)]
pub struct LoadDatagramArgs {
    #[arg(value_name = "ADDRESS")]
    pub address: SocketAddr,

    /// Flows at the same time, each with a socket of its own
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: u32,

    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub duration: Duration,

    /// How datagrams pass the kernel's border: one a call, sendmmsg and recvmmsg, or UDP_SEGMENT and UDP_GRO
    #[arg(long, value_enum, value_name = "MODE", default_value = "batch")]
    pub mode: PacketMode,

    /// Who does not answer for so long is gone
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub timeout: Duration,

    /// Write the account as JSON; - is standard output, in place of the text
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Settings of the protocol, the same at both ends.
#[derive(Debug, Args)]
pub struct KcpArgs {
    /// Bytes of a datagram's payload
    #[arg(long, value_name = "BYTES", default_value_t = 1_400, value_parser = clap::value_parser!(u32).range(25..=65_507))]
    pub mtu: u32,

    /// Segments of the send and of the receive window
    #[arg(long, value_name = "N", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub window: u32,

    /// Microseconds between flushes where nothing comes and nothing is written
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    pub interval_us: u32,
}

/// Receives what `linerate load udp` sends, and reports what came
#[derive(Debug, Args)]
pub struct ServeUdpArgs {
    #[command(flatten)]
    pub common: ServeDatagramArgs,

    /// Bytes of a datagram: others are damaged
    #[arg(long, value_name = "BYTES", default_value_t = 1472, value_parser = clap::value_parser!(u64).range(64..=65_507))]
    pub size: u64,
}

/// Receives what `linerate load kcp` sends, and compares it
#[derive(Debug, Args)]
pub struct ServeKcpArgs {
    #[command(flatten)]
    pub common: ServeDatagramArgs,

    #[command(flatten)]
    pub kcp: KcpArgs,
}

/// What both servers have in common.
#[derive(Debug, Args)]
pub struct ServeDatagramArgs {
    /// Where to listen; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub listen: SocketAddr,

    /// How datagrams pass the kernel's border: one a call, recvmmsg, or UDP_GRO
    #[arg(long, value_enum, value_name = "MODE", default_value = "batch")]
    pub mode: PacketMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PacketMode {
    Single,
    Batch,
    Gso,
}

impl PacketMode {
    /// Its name in the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
            Self::Gso => "gso",
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("expected percent, 0 to below 100".into()),
    }
}
