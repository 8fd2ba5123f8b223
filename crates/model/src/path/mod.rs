//! The path between client and server, as data: links, routers in a row, and what they do to packets.
//!
//! | module | contents |
//! |---|---|
//! | [`units`] | rates, shares, times and sizes |
//! | `impairment` | what a link does to packets: its keys, their rules, its text |
//! | `text` | a path as text, for plans and reports |
//!
//! Suites describe it (`suite/path.rs` of the command), and the lab raises it (`lab/agent/`).

mod impairment;
mod text;
pub mod units;

pub use impairment::{Impairment, KEYS as IMPAIRMENTS};
use serde::{Deserialize, Serialize};

/// Ethernet's MTU, for segments as on a real network; a suite may set another.
const MTU: u32 = 1_500;
/// The kernel's default for `lo`.
const LOOPBACK_MTU: u32 = 65_536;
/// Each router has a subnet of its own behind it; the longest paths of the Internet have four times as many.
pub const MOST_ROUTERS: usize = 8;

/// The kind of device at the server's end of the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// Client and server in one namespace, connected by its loopback.
    Loopback,
    /// veth pairs only.
    #[default]
    Veth,
    /// The last link is a TUN device to the server, a process with its own TCP/IP stack.
    Tun,
    /// The last link is two TUN devices; the server's process connects the two.
    TunPair,
}

/// The path of a cell. Each two links are joined by a router, so there is one router less than links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredPath")]
pub struct NetworkPath {
    pub device: Device,
    /// From the client to the server; at least one.
    pub links: Vec<Link>,
}

/// A link between two neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// In bytes.
    pub mtu: u32,
    /// The impairment of packets to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Impairment>,
    /// The impairment of packets to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Impairment>,
    #[serde(default, skip_serializing_if = "Means::is_auto")]
    pub means: Means,
}

/// By what packets are impaired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// The kernel's netem and TBF where it has both, else the relay: one of the two for all paths of a run.
    #[default]
    Auto,
    /// tc-netem(8) and tc-tbf(8), as far as this path needs them.
    Kernel,
    /// linerate's own relay of packets.
    Relay,
}

impl Means {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

impl Link {
    fn with_device(device: Device) -> Self {
        let mtu = if device == Device::Loopback { LOOPBACK_MTU } else { MTU };
        Self { mtu, up: None, down: None, means: Means::Auto }
    }

    /// True if packets pass a means of impairment, even one that changes nothing.
    pub fn is_impaired(&self) -> bool {
        self.up.is_some() || self.down.is_some()
    }
}

impl NetworkPath {
    /// Plain links with this number of routers.
    pub fn new(device: Device, routers: usize) -> Self {
        Self { device, links: vec![Link::with_device(device); routers + 1] }
    }

    pub fn routers(&self) -> usize {
        self.links.len().saturating_sub(1)
    }

    pub fn has_router(&self) -> bool {
        self.routers() > 0
    }

    pub fn has_tun(&self) -> bool {
        matches!(self.device, Device::Tun | Device::TunPair)
    }

    /// True if it has two TUN devices, which a process must connect.
    pub fn has_two_tuns(&self) -> bool {
        self.device == Device::TunPair
    }

    pub fn is_impaired(&self) -> bool {
        self.links.iter().any(Link::is_impaired)
    }

    /// True if packets are lost on the way.
    pub fn loses(&self) -> bool {
        let ways = self.links.iter().flat_map(|link| [&link.up, &link.down]);
        ways.flatten().any(|way| !way.loss.is_zero())
    }

    /// MTU of the last link, in bytes.
    pub fn last_mtu(&self) -> u32 {
        self.links.last().map_or(MTU, |link| link.mtu)
    }

    /// Replaces what a system needs; see the keys `device` and `routers` of its manifest.
    pub fn adapt(&mut self, device: Option<Device>, routers: Option<usize>) {
        if let Some(device) = device
            && device != self.device
        {
            // A path of one device may have become shorter or longer for another one.
            let usual = Link::with_device(self.device).mtu;
            for link in self.links.iter_mut().filter(|link| link.mtu == usual) {
                link.mtu = Link::with_device(device).mtu;
            }
            self.device = device;
        }
        if let Some(routers) = routers {
            self.links.truncate(routers + 1);
            self.need_routers(routers);
        }
        // A TUN device is not impaired itself, but the link to its router.
        if self.has_tun() && self.links.last().is_some_and(Link::is_impaired) {
            self.links.push(Link { up: None, down: None, means: Means::Auto, ..self.links[0].clone() });
        }
    }

    /// Adds links until there are this many routers. Loopback becomes veth pairs: it has no room for one.
    pub fn need_routers(&mut self, routers: usize) {
        if routers > 0 && self.device == Device::Loopback {
            self.adapt(Some(Device::Veth), None);
        }
        let plain =
            Link { up: None, down: None, means: Means::Auto, ..self.links[self.links.len() - 1].clone() };
        while self.routers() < routers {
            self.links.push(plain.clone());
        }
    }
}

impl Default for NetworkPath {
    /// Client - router - server.
    fn default() -> Self {
        Shape::Router.into()
    }
}

/// Paths with a name of their own: `path = "loopback"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Loopback,
    /// Client and server, connected by one veth pair.
    Link,
    /// Client - router - server, connected by two veth pairs.
    Router,
    Tun,
    TunPair,
    /// As `tun`, with the device on a router, which a veth pair connects to the client.
    TunRouter,
    /// As `tun-pair`, with the client's device on such a router.
    TunPairRouter,
}

impl Shape {
    /// Each with its word.
    pub const WORDS: [(&'static str, Self); 7] = [
        ("loopback", Self::Loopback),
        ("link", Self::Link),
        ("router", Self::Router),
        ("tun", Self::Tun),
        ("tun-pair", Self::TunPair),
        ("tun-router", Self::TunRouter),
        ("tun-pair-router", Self::TunPairRouter),
    ];
}

impl From<Shape> for NetworkPath {
    fn from(shape: Shape) -> Self {
        let (device, routers) = match shape {
            Shape::Loopback => (Device::Loopback, 0),
            Shape::Link => (Device::Veth, 0),
            Shape::Router => (Device::Veth, 1),
            Shape::Tun => (Device::Tun, 0),
            Shape::TunPair => (Device::TunPair, 0),
            Shape::TunRouter => (Device::Tun, 1),
            Shape::TunPairRouter => (Device::TunPair, 1),
        };
        Self::new(device, routers)
    }
}

/// As it was read: without a link, if it was written by others.
#[derive(Deserialize)]
struct StoredPath {
    device: Device,
    links: Vec<Link>,
}

impl From<StoredPath> for NetworkPath {
    fn from(StoredPath { device, links }: StoredPath) -> Self {
        if links.is_empty() { Self::new(device, 0) } else { Self { device, links } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Nanos;

    #[test]
    fn a_path_is_read_as_it_was_written_and_has_at_least_one_link() {
        let read = |json: &str| serde_json::from_str::<NetworkPath>(json).unwrap();
        for (word, shape) in Shape::WORDS {
            let path = NetworkPath::from(shape);
            assert_eq!(read(&serde_json::to_string(&path).unwrap()), path, "{word}");
        }
        assert_eq!(read(r#"{"device":"veth","links":[]}"#), Shape::Link.into());
        let tun: NetworkPath = Shape::TunRouter.into();
        assert_eq!((tun.routers(), tun.has_tun(), tun.has_two_tuns()), (1, true, false));
    }

    #[test]
    fn an_impaired_tun_path_has_a_router_whose_link_is_impaired() {
        let mut path = NetworkPath::new(Device::Veth, 0);
        path.links[0].up = Some(Impairment { delay: Nanos(1), ..Impairment::default() });
        path.adapt(Some(Device::Tun), None);
        assert_eq!(path.links.iter().map(Link::is_impaired).collect::<Vec<_>>(), [true, false]);
        path.adapt(Some(Device::Veth), None);
        assert_eq!(path.routers(), 1, "a router stays");
    }

    #[test]
    fn a_system_replaces_the_device_and_the_number_of_routers() {
        let mut path = NetworkPath::from(Shape::Loopback);
        path.need_routers(2);
        assert_eq!((path.device, path.routers(), path.last_mtu()), (Device::Veth, 2, 1_500));
        path.adapt(None, Some(0));
        assert_eq!(path, Shape::Link.into());
        path.adapt(Some(Device::TunPair), None);
        assert_eq!(path, Shape::TunPair.into());
    }
}
