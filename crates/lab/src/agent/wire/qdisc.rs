//! The kernel's means: netem and TBF (tc-netem(8), tc-tbf(8)) as messages of rtnetlink. Their options are
//! structures of `linux/pkt_sched.h`.

use linerate_contract::{Bytes, Nanos};
use linerate_model::path::Impairment;
use netlink_packet_core::{DefaultNla, Emitable, Nla};

/// Packets that netem delays at the same time, more than any path here has in flight.
const NETEM_LIMIT: u32 = 100_000;
/// The time whose bytes TBF may send at once: its timer is exact to some tens of microseconds, and this is
/// ten times as long.
const TBF_BURST: Nanos = Nanos(1_000_000);
/// A burst contains two frames at least.
const FRAME_HEADER: u64 = 14;
/// `TC_LINKLAYER_ETHERNET`: the kernel computes times itself, without a table.
const ETHERNET: u8 = 1;

mod netem {
    pub(super) const REORDER: u16 = 3;
    pub(super) const LOSS: u16 = 5;
    pub(super) const LOSS_GE: u16 = 2;
    pub(super) const LATENCY64: u16 = 10;
    pub(super) const JITTER64: u16 = 11;
}

mod tbf {
    pub(super) const PARMS: u16 = 1;
    pub(super) const RATE64: u16 = 4;
    pub(super) const BURST: u16 = 6;
}

/// A queueing discipline of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qdisc {
    pub(super) kind: &'static str,
    /// Major numbers of its handle and of its parent; `None`: at the root.
    pub(super) handle: u16,
    pub(super) parent: Option<u16>,
    pub(super) options: Vec<u8>,
}

/// True if netem is needed for a direction; TBF alone makes a rate.
fn needs_netem(way: &Impairment) -> bool {
    way.rate.is_none() || Impairment { rate: None, queue: None, ..*way } != Impairment::default()
}

/// The disciplines of a direction, from the root: netem, and TBF behind it.
pub(super) fn disciplines(way: &Impairment, mtu: u32) -> Vec<Qdisc> {
    let mut all = Vec::new();
    if needs_netem(way) {
        all.push(Qdisc { kind: "netem", handle: 1, parent: None, options: netem_options(way) });
    }
    if let Some(options) = tbf_options(way, mtu) {
        let parent = all.first().map(|_| 1);
        all.push(Qdisc { kind: "tbf", handle: 2, parent, options });
    }
    all
}

/// `struct tc_netem_qopt`, and attributes.
fn netem_options(way: &Impairment) -> Vec<u8> {
    let independent = if way.burst.is_none() { way.loss.0 } else { 0.0 };
    // A gap of 1: every packet is a candidate for reordering.
    let gap = u32::from(!way.reorder.is_zero());
    let mut bytes = words(&[0, NETEM_LIMIT, of_32_bits(independent), gap, 0, 0]);
    attribute(&mut bytes, netem::LATENCY64, &way.delay.0.to_ne_bytes());
    attribute(&mut bytes, netem::JITTER64, &way.jitter.0.to_ne_bytes());
    if !way.reorder.is_zero() {
        attribute(&mut bytes, netem::REORDER, &words(&[of_32_bits(way.reorder.0), 0]));
    }
    if let Some(burst) = way.burst {
        // Gilbert's model: into the bad state, out of it, no packet survives it, none is lost outside.
        let into = way.loss.0 / (burst * (1.0 - way.loss.0));
        let model = words(&[of_32_bits(into), of_32_bits(1.0 / burst), 0, 0]);
        let mut nested = Vec::new();
        attribute(&mut nested, netem::LOSS_GE, &model);
        attribute(&mut bytes, netem::LOSS, &nested);
    }
    bytes
}

/// `struct tc_tbf_qopt` and attributes.
fn tbf_options(way: &Impairment, mtu: u32) -> Option<Vec<u8>> {
    let rate = way.rate?;
    let bytes_per_second = rate.0 / 8;
    let burst = rate.bytes_in(TBF_BURST).0.max(2 * (u64::from(mtu) + FRAME_HEADER));
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    // `struct tc_ratespec`: cell_log, linklayer, overhead, cell_align, mpu, rate.
    let mut parameters = vec![0, ETHERNET, 0, 0, 0, 0, 0, 0];
    let limit = way.queue.map_or(u32::MAX, |Bytes(queue)| u32::try_from(queue).unwrap_or(u32::MAX));
    let narrow = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    // No peak rate; then limit, buffer and MTU.
    parameters.extend(words(&[narrow, 0, 0, 0, limit, 0, 0]));
    let mut bytes = Vec::new();
    attribute(&mut bytes, tbf::PARMS, &parameters);
    attribute(&mut bytes, tbf::RATE64, &bytes_per_second.to_ne_bytes());
    attribute(&mut bytes, tbf::BURST, &burst.to_ne_bytes());
    Some(bytes)
}

/// A probability as the kernel has it.
fn of_32_bits(share: f64) -> u32 {
    (share * f64::from(u32::MAX)).round() as u32
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let attributes = [attribute];
    let at = bytes.len();
    bytes.resize(at + attributes.as_slice().buffer_len(), 0);
    attributes.as_slice().emit(&mut bytes[at..]);
    debug_assert_eq!(attributes[0].value_len(), value.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::path::units::{BitRate, Share};

    #[test]
    fn a_rate_alone_is_tbf_and_all_else_is_netem_before_it() {
        let rate = Impairment {
            rate: Some(BitRate(10_000_000)),
            queue: Some(Bytes(125_000)),
            ..Impairment::default()
        };
        let kinds = |way: &Impairment| -> Vec<_> {
            disciplines(way, 1_500).iter().map(|qdisc| (qdisc.kind, qdisc.parent)).collect()
        };
        assert_eq!(kinds(&rate), [("tbf", None)]);
        let delayed = Impairment { delay: Nanos(20_000_000), ..rate };
        assert_eq!(kinds(&delayed), [("netem", None), ("tbf", Some(1))]);
        assert_eq!(kinds(&Impairment::default()), [("netem", None)]);
    }

    /// As `tc` sends them (strace of `tc qdisc add ... netem delay 20ms loss 1%`, with the 64-bit times).
    #[test]
    fn options_of_netem_are_the_structure_and_attributes_of_the_kernel() {
        let way = Impairment { delay: Nanos(20_000_000), loss: Share(0.01), ..Impairment::default() };
        let bytes = netem_options(&way);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(4), word(8), word(12)), (NETEM_LIMIT, 42_949_673, 0));
        // The attribute: length 12, type 10, 8 bytes.
        assert_eq!(bytes[24..28], words(&[12 | 10 << 16])[..]);
        assert_eq!(bytes[28..36], 20_000_000_u64.to_ne_bytes());
        assert_eq!(bytes.len(), 24 + 2 * 12);
        let bursts = netem_options(&Impairment { burst: Some(4.0), ..way });
        assert_eq!(bursts[8..12], [0; 4], "no independent loss beside the model");
        // Nested: 4 + 4 + 16 bytes behind the others.
        assert_eq!(bursts.len(), bytes.len() + 24);
        let out = u32::from_ne_bytes(bursts[bursts.len() - 12..bursts.len() - 8].try_into().unwrap());
        assert_eq!(out, 1 << 30, "a burst ends after each packet with a probability of a quarter");
    }

    #[test]
    fn a_burst_of_tbf_is_a_millisecond_and_two_frames_at_least() {
        let burst = |bits| {
            let way = Impairment { rate: Some(BitRate(bits)), ..Impairment::default() };
            let bytes = tbf_options(&way, 1_500).unwrap();
            u32::from_ne_bytes(bytes[bytes.len() - 4..].try_into().unwrap())
        };
        assert_eq!((burst(1_000_000), burst(100_000_000)), (3_028, 12_500));
    }
}
