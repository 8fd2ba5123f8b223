//! TUN devices (see the kernel's `Documentation/networking/tuntap.rst`): made persistent here, so that they have their address, MTU
//! and route before the process opens them that answers behind them. They end with their namespace.

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
/// Of misc devices, and of this one: the kernel's `Documentation/admin-guide/devices.txt`.
const NUMBERS: (u64, u64) = (10, 200);

nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(set_persistent, libc::TUNSETPERSIST);

/// A node of our own that systems, which are not root, may open; seen by nobody outside of the lab's mount namespace.
/// Where this is refused, the host's node stays, and [`check`] tells what it allows.
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

/// May this user have TUN devices at all?
///
/// # Errors
/// A sentence that says what is in the way, and who can change that.
pub(super) fn check() -> Result<(), String> {
    open().map(drop).map_err(|e| {
        let change = match e.kind() {
            io::ErrorKind::NotFound => "load the kernel's module by `modprobe tun`",
            _ => "open it to all users by `chmod 666 /dev/net/tun`",
        };
        format!("{DEVICE}: {e}; an administrator may {change}, or run linerate as root")
    })
}

/// A descriptor for a device of the current namespace; which one is up to whoever gets it.
pub(super) fn open() -> io::Result<OwnedFd> {
    OpenOptions::new().read(true).write(true).open(DEVICE).map(OwnedFd::from)
}

/// Makes a device in the current namespace that outlives this call; it carries packets without any header before them.
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
