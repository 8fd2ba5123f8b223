//! Facts of a real interface that is part of the path.

#![allow(unsafe_code, reason = "the ethtool ioctl has no safe wrapper")]

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// `ETHTOOL_GDRVINFO` of linux/ethtool.h.
const DRIVER: u32 = 0x03;
/// Offloads and their commands of linux/ethtool.h, which return 0 or 1.
const OFFLOADS: [(&str, u32); 5] =
    [("rx-checksum", 0x14), ("tx-checksum", 0x16), ("tso", 0x1e), ("gso", 0x23), ("gro", 0x2b)];

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// Name, driver, speed, MTU, queues and offloads of the interface with this address, as far as the kernel
/// reports them.
///
/// # Errors
/// No interface of this host has the address.
pub(super) fn facts(address: Ipv4Addr) -> Result<BTreeMap<String, String>, String> {
    let name = name_of(address)?;
    let device = |file: &str| fs::read_to_string(format!("/sys/class/net/{name}/{file}")).ok();
    let value = |file: &str| device(file).map(|text| text.trim().to_owned());
    let queues = fs::read_dir(format!("/sys/class/net/{name}/queues")).ok().map(|folder| {
        let names = folder.flatten().map(|queue| queue.file_name().to_string_lossy().into_owned());
        let (rx, tx): (Vec<String>, Vec<String>) = names.partition(|name| name.starts_with("rx"));
        format!("{} rx, {} tx", rx.len(), tx.len())
    });
    let speed = value("speed").filter(|speed| !speed.starts_with('-'));
    let control = Ethtool::open(&name);
    let offloads: Option<Vec<String>> = control.as_ref().map(|control| {
        let known = OFFLOADS.iter().filter_map(|(name, command)| Some((name, control.value(*command)?)));
        known.map(|(name, on)| format!("{name} {}", if on == 0 { "off" } else { "on" })).collect()
    });
    let facts = [
        ("interface", Some(format!("{name}, {address}"))),
        ("interface driver", control.as_ref().and_then(Ethtool::driver)),
        ("interface speed", speed.map(|speed| format!("{speed} Mbit/s"))),
        ("interface MTU", value("mtu")),
        ("interface queues", queues),
        ("interface offloads", offloads.map(|all| all.join(", ")).filter(|all| !all.is_empty())),
    ];
    Ok(facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn name_of(address: Ipv4Addr) -> Result<String, String> {
    let all = nix::ifaddrs::getifaddrs().map_err(|e| format!("getifaddrs: {e}"))?;
    let has_it = |found: &nix::ifaddrs::InterfaceAddress| {
        found.address.and_then(|a| a.as_sockaddr_in().map(|a| a.ip())) == Some(address)
    };
    let found = all.into_iter().find(has_it).map(|found| found.interface_name);
    found.ok_or_else(|| format!("no interface of this host has the address {address}"))
}

struct Ethtool {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Ethtool {
    fn open(interface: &str) -> Option<Self> {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).ok()?;
        let mut name = [0; libc::IFNAMSIZ];
        // The last byte stays 0.
        for (to, from) in name[..libc::IFNAMSIZ - 1].iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        Some(Self { socket, name })
    }

    fn value(&self, command: u32) -> Option<u32> {
        let mut value = EthtoolValue { command, data: 0 };
        self.request((&raw mut value).cast()).then_some(value.data)
    }

    fn driver(&self) -> Option<String> {
        let mut info = DriverInfo { command: DRIVER, driver: [0; 32], rest: [0; 160] };
        let is_known = self.request((&raw mut info).cast());
        let name: String = info.driver.iter().take_while(|b| **b != 0).map(|b| *b as char).collect();
        Some(name).filter(|name| is_known && !name.is_empty())
    }

    /// `data` is a structure that begins with its command.
    fn request(&self, data: *mut libc::c_char) -> bool {
        let mut request =
            libc::ifreq { ifr_name: self.name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data } };
        // SAFETY: the kernel reads the name, and writes no more than the structure of the command, which the
        // caller keeps alive during this call.
        unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) == 0 }
    }
}
