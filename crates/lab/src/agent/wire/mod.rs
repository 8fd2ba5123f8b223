//! A wire: a namespace between two neighbours of a path, whose frames it delays, drops and holds back. It has
//! no addresses, so neighbours, systems on routers and routes are the same with it and without it.
//!
//! | module | means |
//! |---|---|
//! | [`qdisc`] | the kernel: a bridge with netem and TBF on both ports |
//! | [`relay`] | a process with a packet socket on both links: [`socket`], [`shaper`] |

mod qdisc;
mod relay;
mod shaper;
mod socket;

use super::netlink::Netlink;
use super::topology::index_of;
use linerate_model::path::units::BitRate;
use linerate_model::path::{Impairment, Link, Means};
use linerate_model::{PacketCounts, WireCounts};
use relay::Counters;
use socket::LinkSocket;

/// The link of the wire to the neighbour on the client's side, and to that on the server's.
pub(super) const NEAR: &str = "near";
pub(super) const FAR: &str = "far";
const BRIDGE: &str = "bridge";

/// A wire at work. Its namespace and processes end with the lab's.
#[derive(Debug)]
pub(super) struct Wire {
    /// Counted from the client, from 1.
    number: usize,
    means: &'static str,
    /// Only the relay counts.
    counters: Option<Counters>,
}

impl Wire {
    /// Impairs the frames between [`NEAR`] and [`FAR`] of the current network namespace.
    ///
    /// # Errors
    /// The step that the kernel refused.
    pub(super) fn raise(number: usize, link: &Link) -> Result<Self, String> {
        let [near, far] = [index_of(NEAR)?, index_of(FAR)?];
        let netlink = Netlink::open()?;
        netlink.set_up(near)?;
        netlink.set_up(far)?;
        let [up, down] = [link.up.unwrap_or_default(), link.down.unwrap_or_default()];
        if link.means != Means::Relay {
            // For all paths of a run alike: also where TBF alone would do.
            let is_usual = link.means == Means::Auto;
            let disciplines = |way: &Impairment| {
                let is_needed = is_usual || *way != Impairment::default();
                if is_needed { qdisc::disciplines(way, link.mtu) } else { Vec::new() }
            };
            // A packet leaves the wire by the link on the other side, whose discipline impairs it.
            let ways = [(far, disciplines(&up)), (near, disciplines(&down))];
            match by_kernel(&netlink, [near, far], &ways, is_usual) {
                Ok(means) => return Ok(Self { number, means, counters: None }),
                Err(reason) if link.means == Means::Kernel => return Err(reason),
                Err(_) => {}
            }
        }
        let links = [LinkSocket::open(near, link.mtu)?, LinkSocket::open(far, link.mtu)?];
        let counters = Some(relay::start(links, [up, down])?);
        Ok(Self { number, means: "relay", counters })
    }

    /// So far.
    pub(super) fn counts(&self) -> WireCounts {
        let ways = self.counters.as_ref().map(Counters::read);
        let [up, down] = ways.map_or([None, None], |ways| ways.map(Some));
        let cpu = self.counters.as_ref().map(Counters::cpu).unwrap_or_default();
        WireCounts { link: self.number as u32, means: self.means.to_owned(), up, down, cpu }
    }
}

/// The counts between two reads.
pub(super) fn between(before: &[WireCounts], after: Vec<WireCounts>) -> Vec<WireCounts> {
    let since = |now: Option<PacketCounts>, then: Option<PacketCounts>| Some(now?.since(then?));
    let of_wire = |(now, then): (WireCounts, &WireCounts)| WireCounts {
        up: since(now.up, then.up),
        down: since(now.down, then.down),
        cpu: now.cpu.since(then.cpu),
        ..now
    };
    after.into_iter().zip(before).map(of_wire).collect()
}

/// A bridge with the disciplines. With `needs_both`, only if the kernel has netem and TBF.
fn by_kernel(
    netlink: &Netlink,
    links: [u32; 2],
    ways: &[(u32, Vec<qdisc::Qdisc>)],
    needs_both: bool,
) -> Result<&'static str, String> {
    if needs_both {
        // Tried on `lo`, which carries nothing here.
        let rate = Impairment { rate: Some(BitRate(1_000_000)), ..Impairment::default() };
        let probes = [Impairment::default(), rate].map(|way| qdisc::disciplines(&way, 1_500));
        for probe in probes.iter().flatten() {
            netlink.replace_qdisc(
                super::topology::LOOPBACK_INDEX,
                probe.kind,
                probe.handle,
                None,
                &probe.options,
            )?;
        }
    }
    for (link, disciplines) in ways {
        for qdisc in disciplines {
            netlink.replace_qdisc(*link, qdisc.kind, qdisc.handle, qdisc.parent, &qdisc.options)?;
        }
    }
    netlink.add_bridge(BRIDGE)?;
    let bridge = index_of(BRIDGE)?;
    for link in links {
        netlink.set_controller(link, bridge)?;
    }
    netlink.set_up(bridge)?;
    let has = |kind| ways.iter().any(|(_, all)| all.iter().any(|qdisc| qdisc.kind == kind));
    Ok(match (has("netem"), has("tbf")) {
        (true, true) => "netem, tbf",
        (true, false) => "netem",
        (false, true) => "tbf",
        (false, false) => "bridge",
    })
}
