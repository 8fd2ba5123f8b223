//! `stream` over KCP: the crate `kcp` is the state machine; the loop and the datagrams are linerate's.
//!
//! A state machine is fed and flushed once per turn and not once per datagram, and its output leaves with one
//! call: a flush walks the whole send window, so one per datagram would cost as much as everything else
//! together.

pub(crate) mod client;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod held;
mod output;
pub(crate) mod server;

#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_kcp;

use crate::packets::{Inbox, Mode};
use crate::refusal::{Doing, Refusal};
use kcp::Kcp;
use linerate_contract::{Direction, Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use output::Output;
use std::os::fd::OwnedFd;

/// The KCP header; a segment has at least one byte behind it.
const OVERHEAD: u64 = kcp::KCP_OVERHEAD as u64;
/// The payload limit of a UDP datagram over IPv4.
const LARGEST_MTU: u64 = linerate_contract::datagram::LARGEST as u64;
/// The state machine stores windows in 16 bits.
const LARGEST_WINDOW: u64 = u16::MAX as u64;
/// Bytes of a receive buffer that a datagram uses beside its payload: the headers, rounded up with the
/// payload to a power of two, and the kernel's own structure.
const HEADERS: usize = 64;
const SKB: usize = 256;
/// The largest write. KCP accepts fewer than 128 segments per write; see the check against the MTU.
const LARGEST_WRITE: u64 = 65_536;

/// How long a thread spins before it blocks, unless the spec has `options.spin`: about the time that the peer
/// needs for 64 KiB, half of the data in flight. It tripled the rate and halved the CPU time per byte
/// (docs/decisions/engine.md).
const SPIN: Nanos = Nanos(50_000);

/// The options of both ends (sdk/CONTRACT.md).
#[derive(Debug, Clone, Copy)]
struct KcpConfig {
    mode: Mode,
    /// Bytes of content in a write.
    size: usize,
    mtu: usize,
    window: u16,
    interval: Nanos,
    no_delay: bool,
    resend: i32,
    no_congestion_window: bool,
}

impl KcpConfig {
    fn from_spec(spec: &Spec) -> Result<Self, Refusal> {
        let number = |name: &str, otherwise: u64, range: std::ops::RangeInclusive<u64>| {
            spec.number(name, range).map(|given| given.unwrap_or(otherwise))
        };
        if spec.choice::<Direction>()?.is_some_and(|direction| direction != Direction::ClientWrites) {
            return Err(Refusal::Unsupported("a direction other than client-writes over KCP".into()));
        }
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let config = Self {
            // A window is many datagrams of one length: joined by default.
            mode: if spec.options.contains_key("mode") { Mode::from_spec(spec)? } else { Mode::Gso },
            size: spec.size as usize,
            mtu: number("mtu", 1_400, OVERHEAD + 1..=LARGEST_MTU)? as usize,
            window: number("window", 1_024, 1..=LARGEST_WINDOW)? as u16,
            interval: Nanos(number("interval_us", 10_000, 1..=5_000_000)? * 1_000),
            no_delay: number("nodelay", 1, 0..=1)? == 1,
            resend: number("resend", 2, 0..=1_000)? as i32,
            no_congestion_window: number("nc", 1, 0..=1)? == 1,
        };
        if (spec.size + 4).div_ceil((config.mtu as u64) - OVERHEAD) >= 128 {
            return Err(Refusal::BadSpec(format!(
                "a write of \"size\" {} would be 128 segments or more of \"options.mtu\" {}",
                spec.size, config.mtu
            )));
        }
        Ok(config)
    }

    /// The largest number of segments in flight: the window, or the capacity of the socket's receive buffer
    /// if that is smaller. KCP's window ignores that buffer, and a burst that overflows it costs a timeout.
    /// Both ends have the same buffer.
    fn in_flight(&self, socket: &OwnedFd) -> Result<u16, Refusal> {
        let buffer = getsockopt(socket, sockopt::RcvBuf).doing("SO_RCVBUF")?;
        let each = (self.mtu + HEADERS).next_power_of_two() + SKB;
        Ok(self.window.min(u16::try_from(buffer / each).unwrap_or(u16::MAX)).max(2))
    }

    /// Receives half of what can be in flight per call: both ends then work at the same time, each on one
    /// half. If a call received everything, each end would wait for the other's whole turn.
    fn inbox(&self, in_flight: u16) -> Inbox {
        Inbox::with_limit(self.mode, self.mtu, usize::from(in_flight / 2))
    }

    /// A conversation that writes its datagrams to `output` and has up to `in_flight` segments in flight.
    fn conversation(&self, conv: u32, output: Output, in_flight: u16) -> Result<Kcp<Output>, Refusal> {
        let mut kcp = Kcp::new_stream(conv, output);
        let refused = |e: kcp::Error| Refusal::BadSpec(format!("\"options.mtu\" {}: {e}", self.mtu));
        kcp.set_mtu(self.mtu).map_err(refused)?;
        kcp.set_wndsize(in_flight, self.window);
        let millis = (self.interval.0 / 1_000_000).max(1) as i32;
        kcp.set_nodelay(self.no_delay, millis, self.resend, self.no_congestion_window);
        // KCP flushes nothing before its first update.
        kcp.update(0).map_err(|_| Errno::EIO).doing("starting a KCP conversation")?;
        Ok(kcp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn the_error_for_an_option_out_of_range_contains_its_name() {
        let spec = |name: &str, value: &str| {
            let mut spec = Spec::new(Role::Client, Layer::Kcp, Workload::Stream);
            spec.size = 63_488;
            spec.options.insert(name.into(), value.into());
            KcpConfig::from_spec(&spec)
        };
        for (name, wrong) in
            [("mtu", "24"), ("mtu", "70000"), ("window", "0"), ("interval_us", "x"), ("nc", "2")]
        {
            let error = spec(name, wrong).unwrap_err();
            assert!(error.exit_status() == 2 && error.to_string().contains(name), "{error}");
        }
        assert!(spec("mtu", "500").unwrap_err().to_string().contains("128 segments"));
        let default = spec("nodelay", "1").unwrap();
        assert_eq!((default.mtu, default.window, default.interval), (1_400, 1_024, Nanos(10_000_000)));
    }
}
