//! `linerate selftest --path`: impairments of a path, measured by linerate's own client and server.
//!
//! The ground truth is the description of the path. Echoes measure delays, streams of datagrams at a fixed
//! rate measure losses, rates and reordering. The difference of an echo's time to that over the means alone
//! is the delay: so the hosts' own time is no part of it.

mod bench;
mod rows;

pub use bench::Bench;
pub use rows::{is_exact, median, rows};

use crate::path::units::{BitRate, Share};
use crate::path::{Device, Impairment, Link, Means, NetworkPath};
use linerate_contract::{Bytes, Nanos};

/// Datagrams per second of streams whose losses are counted: no queue of an endpoint overflows.
const PACE: f64 = 10_000.0;
/// A queue before a rate: a busy machine may not run the sender for as long.
const QUEUE_TIME: Nanos = Nanos(100_000_000);
/// The payload of a datagram that fills a frame: MTU without the headers of IP and UDP.
const FULL: u64 = 1_472;
/// The payload of other datagrams.
const SMALL: u64 = 200;
/// Headers of a frame: Ethernet, IP, UDP.
const HEADERS: u64 = 42;

/// One measurement of the test.
#[derive(Debug, Clone)]
pub struct PathCase {
    pub name: String,
    /// The impairment of packets to the server. Packets to the client pass the same means, unchanged.
    pub up: Impairment,
    pub traffic: Traffic,
}

/// The traffic of the client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Traffic {
    /// Datagrams that the server returns, one after the other.
    Echoes(u64),
    /// Datagrams of `size` bytes at this rate.
    Stream { per_second: f64, size: u64, time: Nanos },
}

impl PathCase {
    /// The path, with this means.
    pub fn path(&self, means: Means) -> NetworkPath {
        let mut path = NetworkPath::new(Device::Veth, 0);
        let down = Some(Impairment::default());
        path.links[0] = Link { up: Some(self.up), down, means, ..path.links[0].clone() };
        path
    }
}

/// The name of the case that delays are compared with.
pub const REFERENCE: &str = "no impairment";

/// Every case; streams last for `time`.
pub fn cases(time: Nanos) -> Vec<PathCase> {
    let none = Impairment::default();
    let case = |name: &str, up, traffic| PathCase { name: name.into(), up, traffic };
    let stream = |per_second, size| Traffic::Stream { per_second, size, time };
    let mut all = vec![case(REFERENCE, none, Traffic::Echoes(1_000))];
    for (delay, count) in [(1, 500), (20, 150), (100, 30)] {
        let delay = Nanos(delay * 1_000_000);
        all.push(case("delay", Impairment { delay, ..none }, Traffic::Echoes(count)));
    }
    let jitter = Impairment { delay: Nanos(20_000_000), jitter: Nanos(5_000_000), ..none };
    all.push(case("jitter", jitter, Traffic::Echoes(300)));
    for (loss, burst) in [(0.01, None), (0.1, None), (0.02, Some(5.0))] {
        all.push(case("loss", Impairment { loss: Share(loss), burst, ..none }, stream(PACE, SMALL)));
    }
    for mbit in [1, 10, 100] {
        let rate = BitRate(mbit * 1_000_000);
        let queue = rate.bytes_in(QUEUE_TIME).max(Bytes(10 * (FULL + HEADERS)));
        let limited = Impairment { rate: Some(rate), queue: Some(queue), ..none };
        let offered = 1.3 * rate.0 as f64 / 8.0 / (FULL + HEADERS) as f64;
        all.push(case("rate", limited, stream(offered, FULL)));
    }
    // Of echoes, those that are not delayed are counted; in a stream they overtake others.
    let reorder = Impairment { delay: Nanos(5_000_000), reorder: Share(0.1), ..none };
    all.push(case("reordering", reorder, Traffic::Echoes(500)));
    all.push(case("reordering", reorder, stream(1_000.0, SMALL)));
    all
}

/// The case that shows up to which rate of packets a means is exact.
pub fn at_rate(per_second: f64) -> PathCase {
    let up = Impairment { delay: Nanos(5_000_000), ..Impairment::default() };
    let traffic = Traffic::Stream { per_second, size: SMALL, time: Nanos(1_000_000_000) };
    PathCase { name: "packets per second".into(), up, traffic }
}
