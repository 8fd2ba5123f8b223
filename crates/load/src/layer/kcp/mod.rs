//! `stream` over KCP: the state machine is the crate `kcp`'s, the loop around it and the datagrams are ours.
//!
//! A machine is fed and flushed once for all datagrams of a turn and not for each, and what it puts out leaves with one call:
//! a flush walks the whole send window, so one for each datagram would cost as much as the rest together.

pub mod client;
mod frames;
mod outlet;
pub mod server;
mod watch;

use crate::option;
use crate::packets::{Inbox, Mode};
use crate::refusal::{Doing, Refusal};
use kcp::Kcp;
use linerate_contract::{Nanos, Spec};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use outlet::Outlet;
use std::os::fd::OwnedFd;

/// KCP's own header; a segment has at least one byte behind it.
const OVERHEAD: u64 = kcp::KCP_OVERHEAD as u64;
/// The largest that fits an IPv4 datagram.
const LARGEST_MTU: u64 = linerate_contract::datagram::LARGEST as u64;
/// The state machine keeps windows in 16 bits.
const LARGEST_WINDOW: u64 = u16::MAX as u64;
/// What a datagram takes of a receive buffer beside its payload: headers, rounded up with it to a power of two, and the
/// kernel's own structure.
const HEADERS: usize = 64;
const SKB: usize = 256;
/// The largest write: fewer than 128 segments of the smallest useful MTU, which is all that one write may become.
const LARGEST_WRITE: u64 = 65_536;

/// What both ends have in common (sdk/CONTRACT.md).
#[derive(Debug, Clone, Copy)]
struct Setting {
    packets: Mode,
    /// Bytes of content in a write.
    size: usize,
    mtu: usize,
    window: u16,
    interval: Nanos,
    no_delay: bool,
    resend: i32,
    no_congestion_window: bool,
}

impl Setting {
    fn of(spec: &Spec) -> Result<Self, Refusal> {
        let number = |name: &str, otherwise: u64, range: std::ops::RangeInclusive<u64>| {
            option::number(spec, name, range, "").map(|given| given.unwrap_or(otherwise))
        };
        if spec.options.get("direction").is_some_and(|direction| direction != "client-writes") {
            return Err(Refusal::Unsupported("a direction other than client-writes over KCP".into()));
        }
        if !(1..=LARGEST_WRITE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_WRITE} bytes")));
        }
        let setting = Self {
            // A window is many datagrams of one length, so they leave and come joined unless the spec wants it otherwise.
            packets: if spec.options.contains_key("mode") { Mode::of(spec)? } else { Mode::Gso },
            size: spec.size as usize,
            mtu: number("mtu", 1_400, OVERHEAD + 1..=LARGEST_MTU)? as usize,
            window: number("window", 1_024, 1..=LARGEST_WINDOW)? as u16,
            interval: Nanos(number("interval_us", 10_000, 1..=5_000_000)? * 1_000),
            no_delay: number("nodelay", 1, 0..=1)? == 1,
            resend: number("resend", 2, 0..=1_000)? as i32,
            no_congestion_window: number("nc", 1, 0..=1)? == 1,
        };
        if (spec.size + 4).div_ceil((setting.mtu as u64) - OVERHEAD) >= 128 {
            return Err(Refusal::BadSpec(format!(
                "a write of \"size\" {} would be 128 segments or more of \"options.mtu\" {}",
                spec.size, setting.mtu
            )));
        }
        Ok(setting)
    }

    /// Segments in flight at most: the window, or what a socket's receive buffer holds if that is less. KCP's window knows nothing
    /// of that buffer, and a burst that overflows it costs a timeout; both ends have the same buffer, the kernel's default.
    fn in_flight(&self, socket: &OwnedFd) -> Result<u16, Refusal> {
        let buffer = getsockopt(socket, sockopt::RcvBuf).doing("SO_RCVBUF")?;
        let each = (self.mtu + HEADERS).next_power_of_two() + SKB;
        Ok(self.window.min(u16::try_from(buffer / each).unwrap_or(u16::MAX)).max(2))
    }

    /// Takes half of what can be in flight with a call, not all that is there: while one end works through its half the other works
    /// through the other, where taking all would have each wait for the other's whole turn.
    fn inbox(&self, in_flight: u16) -> Inbox {
        Inbox::at_most(self.packets, self.mtu, usize::from(in_flight / 2))
    }

    /// A conversation that puts its datagrams into `outlet` and has so many segments in flight.
    fn conversation(&self, conv: u32, outlet: Outlet, in_flight: u16) -> Result<Kcp<Outlet>, Refusal> {
        let mut kcp = Kcp::new_stream(conv, outlet);
        let refused = |e: kcp::Error| Refusal::BadSpec(format!("\"options.mtu\" {}: {e}", self.mtu));
        kcp.set_mtu(self.mtu).map_err(refused)?;
        kcp.set_wndsize(in_flight, self.window);
        let millis = (self.interval.0 / 1_000_000).max(1) as i32;
        kcp.set_nodelay(self.no_delay, millis, self.resend, self.no_congestion_window);
        // Until the first update nothing can be flushed.
        kcp.update(0).map_err(|_| Errno::EIO).doing("starting a KCP conversation")?;
        Ok(kcp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Role;

    #[test]
    fn options_out_of_range_are_named() {
        let spec = |name: &str, value: &str| {
            let mut spec = Spec::new(Role::Client, "kcp", "stream");
            spec.size = 63_488;
            spec.options.insert(name.into(), value.into());
            Setting::of(&spec)
        };
        for (name, wrong) in
            [("mtu", "24"), ("mtu", "70000"), ("window", "0"), ("interval_us", "x"), ("nc", "2")]
        {
            let said = spec(name, wrong).unwrap_err();
            assert!(said.exit_status() == 2 && said.to_string().contains(name), "{said}");
        }
        assert!(spec("mtu", "500").unwrap_err().to_string().contains("128 segments"));
        let default = spec("nodelay", "1").unwrap();
        assert_eq!((default.mtu, default.window, default.interval), (1_400, 1_024, Nanos(10_000_000)));
    }
}
