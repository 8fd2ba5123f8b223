//! The TUN bridge: two threads join two TUN devices, so that the kernel's TCP answers behind the same TUN
//! path as a stack in a process. The difference between such a stack and the bridge is the cost of TCP in a
//! process; the cost of the bridge is that of the TUN devices.
//!
//! | `options.tun_bridge` | a packet is |
//! |---|---|
//! | `plain` | a packet of the link: one read and one write each |
//! | `offload` | up to 64 KiB of segments, not yet cut and without checksums (`IFF_VNET_HDR`, TSO, USO) |

#![allow(unsafe_code, reason = "ioctl(2) has no safe wrapper, and inherited descriptors have no owner yet")]

use linerate_contract::Spec;
use linerate_load::process::spawn;
use linerate_load::refusal::{Doing, Refusal};
use nix::errno::Errno;
use nix::unistd::{read, write};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// The environment variable with the numbers of the two descriptors of `/dev/net/tun`, separated by a comma.
/// They are inherited because the devices are in two network namespaces and a process is in one.
const DESCRIPTORS: &str = "LINERATE_TUN";
/// The largest IP packet and a `virtio_net_hdr`, in bytes.
const LARGEST_PACKET: usize = 65_535 + 12;

nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(set_offload, libc::TUNSETOFFLOAD);

/// Starts the bridge that the spec requests, if any; it ends with the process.
///
/// # Errors
/// An unknown value, a missing device name, or a device that is missing or refused.
pub fn start(spec: &Spec) -> Result<(), Refusal> {
    let offload = match spec.options.get("tun_bridge").map(String::as_str) {
        None => return Ok(()),
        Some("plain") => false,
        Some("offload") => true,
        Some(other) => {
            return Err(Refusal::BadSpec(format!(
                "\"options.tun_bridge\" must be plain or offload, not {other:?}"
            )));
        }
    };
    let [near, far] = descriptors(&std::env::var(DESCRIPTORS).unwrap_or_default())?;
    let name =
        spec.options.get("tun").ok_or_else(|| Refusal::BadSpec("\"options.tun\" is missing".into()))?;
    let near = attach(near, name, offload)?;
    let far = attach(far, name, offload)?;
    let twice = |device: &File| device.try_clone().map_err(|e| Refusal::BadSpec(format!("{name}: {e}")));
    let (from, to) = (twice(&near)?, twice(&far)?);
    spawn(move || forward(&from, &to))?;
    spawn(move || forward(&far, &near))?;
    Ok(())
}

fn descriptors(list: &str) -> Result<[RawFd; 2], Refusal> {
    let numbers: Result<Vec<RawFd>, _> = list.split(',').map(str::parse).collect();
    let two = numbers.ok().and_then(|numbers| <[RawFd; 2]>::try_from(numbers).ok());
    two.ok_or_else(|| {
        Refusal::Unsupported(format!(
            "a TUN bridge outside of linerate's lab, which passes two TUN devices in {DESCRIPTORS}"
        ))
    })
}

/// Attaches an inherited descriptor to the device of this name, in the namespace in which it was opened.
fn attach(fd: RawFd, name: &str, offload: bool) -> Result<File, Refusal> {
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(Refusal::BadSpec(format!("\"options.tun\" is longer than the name of a link: {name}")));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let header = if offload { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as libc::c_short;
    // SAFETY: the request outlives the call, which reads an ifreq(7) and fails if the descriptor is no TUN
    // device.
    unsafe { set_interface(fd, &request) }.doing(&format!("attaching to {name} by descriptor {fd}"))?;
    // SAFETY: it is open, as the call above has shown, and nothing else in this process uses it.
    let device = unsafe { File::from_raw_fd(fd) };
    let all = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let wanted = if offload { all } else { 0 };
    // SAFETY: this request takes a number.
    unsafe { set_offload(device.as_raw_fd(), wanted as libc::c_int) }
        .doing(&format!("setting offloads of {name}"))?;
    Ok(device)
}

/// Forwards packets in one direction until a device is removed. A packet that the other device does not
/// accept is lost, as on any link.
fn forward(from: &File, to: &File) {
    let mut packet = vec![0; LARGEST_PACKET];
    loop {
        match read(from, &mut packet) {
            Ok(n) => {
                let _ = write(to, &packet[..n]);
            }
            Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Layer, Role, Workload};

    #[test]
    fn two_numbers_are_two_descriptors_and_anything_else_is_refused() {
        assert_eq!(descriptors("5,7").unwrap(), [5, 7]);
        for list in ["", "5", "5,7,9", "5,x"] {
            let refusal = descriptors(list).unwrap_err();
            assert!(refusal.to_string().contains(DESCRIPTORS), "{list}: {refusal}");
        }
    }

    #[test]
    fn an_unknown_bridge_is_refused_by_name_and_none_is_needed() {
        let mut spec = Spec::new(Role::Server, Layer::Tcp, Workload::Rr);
        assert!(start(&spec).is_ok());
        spec.options.insert("tun_bridge".into(), "fast".into());
        assert!(start(&spec).unwrap_err().to_string().contains("fast"));
    }
}
