//! How datagrams are sent, with the settings of QUIC and of KCP, for both ends.

use super::u32_in;
use clap::Args;
use linerate_contract::{Layer, Spec};

#[derive(Debug, Args)]
#[command(next_help_heading = "Datagrams")]
pub struct DatagramArgs {
    /// h3, quic, udp, kcp: datagrams per system call. gso joins them in the kernel, batch passes up to 64,
    /// single one [default: of h3 and quic gso, of udp and kcp batch]
    #[arg(
        hide_short_help = true,
        long,
        alias = "mode",
        value_name = "MODE",
        value_parser = ["single", "batch", "gso"]
    )]
    pub datagrams: Option<String>,

    /// h3, quic: congestion control of this end
    #[arg(hide_short_help = true, long, value_parser = ["cubic", "reno", "bbr"], default_value = "cubic")]
    pub congestion: String,

    /// TLS: handshakes of a client; with resumed it resumes its sessions after one full handshake for each
    /// connection, and a server gives tickets [default: full; of a client of https and h2 as the server
    /// offers]
    #[arg(long, value_name = "KIND", value_parser = ["full", "resumed"])]
    pub handshake: Option<String>,

    /// kcp, equal at both ends: bytes of a datagram's payload
    #[arg(
        hide_short_help = true,
        long,
        value_name = "BYTES",
        default_value_t = 1_400,
        value_parser = u32_in(25..=65_507)
    )]
    pub mtu: u32,

    /// kcp, equal at both ends: segments of the send window and of the receive window
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        default_value_t = 1_024,
        value_parser = u32_in(1..=65_535)
    )]
    pub window: u32,

    /// kcp, equal at both ends: microseconds between flushes of an idle connection
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        default_value_t = 10_000,
        value_parser = u32_in(1..=5_000_000)
    )]
    pub interval_us: u32,
}

impl DatagramArgs {
    /// Sets the options that the layer of `spec` has.
    pub(crate) fn set(&self, spec: &mut Spec) {
        spec.options.extend(self.handshake.iter().map(|kind| ("handshake".into(), kind.clone())));
        let usual = match spec.layer {
            Layer::H3 | Layer::Quic => {
                spec.set_option("congestion", &self.congestion);
                "gso"
            }
            Layer::Kcp => {
                spec.set_option("mtu", self.mtu);
                spec.set_option("window", self.window);
                spec.set_option("interval_us", self.interval_us);
                "batch"
            }
            Layer::Udp => "batch",
            _ => return,
        };
        spec.set_option("mode", self.datagrams.as_deref().unwrap_or(usual));
    }
}
