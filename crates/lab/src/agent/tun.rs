//! TUN devices (the kernel's `Documentation/networking/tuntap.rst`). They are persistent, so that address,
//! MTU and route are set before the process under test opens them. They end with their namespace.

#![allow(unsafe_code, reason = "ioctl(2) has no safe wrapper")]

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

const DEVICE: &str = "/dev/net/tun";
const FOLDER: &str = "/dev/net";
/// Major and minor number, from the kernel's `Documentation/admin-guide/devices.txt`.
const NUMBERS: (u64, u64) = (10, 200);

nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(set_persistent, libc::TUNSETPERSIST);

/// Makes a device node that systems, which are not root, may open; it exists only in the lab's mount
/// namespace. Where this is refused, the host's node remains, and [`check`] reports its permissions.
pub(super) fn open_to_all() {
    let make = || -> nix::Result<()> {
        mount(Some("linerate"), FOLDER, Some("tmpfs"), MsFlags::MS_NOSUID, Some("mode=0755"))?;
        let node = mknod(DEVICE, SFlag::S_IFCHR, Mode::empty(), makedev(NUMBERS.0, NUMBERS.1));
        let opened = node.is_ok()
            && fs::set_permissions(DEVICE, Permissions::from_mode(0o666)).is_ok()
            && open().is_ok();
        if opened { Ok(()) } else { nix::mount::umount(FOLDER) }
    };
    if fs::exists(DEVICE).unwrap_or(false) {
        let _ = make();
    }
}

/// Checks whether this user may open TUN devices.
///
/// # Errors
/// The reason why not, and the remedy.
pub(super) fn check() -> Result<(), String> {
    open().map(drop).map_err(|e| {
        let change = match e.kind() {
            io::ErrorKind::NotFound => "modprobe tun",
            _ => "chmod 666 /dev/net/tun",
        };
        format!("{DEVICE}: {e}; run `{change}` as root, or run linerate as root")
    })
}

/// A descriptor for the current namespace, not yet attached to a device.
pub(super) fn open() -> io::Result<OwnedFd> {
    OpenOptions::new().read(true).write(true).open(DEVICE).map(OwnedFd::from)
}

/// Makes a persistent device in the current namespace; its packets have no header of the driver.
pub(super) fn make(name: &str) -> Result<(), String> {
    let failed = |e: &dyn std::fmt::Display| format!("making the TUN device {name}: {e}");
    let device = File::from(open().map_err(|e| failed(&e))?);
    let request = interface(name, libc::IFF_TUN | libc::IFF_NO_PI).map_err(|e| failed(&e))?;
    // SAFETY: the descriptor is open and the request outlives the call, which reads an ifreq(7).
    unsafe { set_interface(device.as_raw_fd(), &request) }.map_err(|e| failed(&e))?;
    // SAFETY: this request takes a number.
    unsafe { set_persistent(device.as_raw_fd(), 1) }.map_err(|e| failed(&e))?;
    Ok(())
}

fn interface(name: &str, flags: libc::c_int) -> nix::Result<libc::ifreq> {
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(Errno::ENAMETOOLONG);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    Ok(request)
}
