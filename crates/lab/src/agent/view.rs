//! What a system sees of the host's files: a root folder of its own, in a mount namespace of its own.
//!
//! | folder | access |
//! |---|---|
//! | `/usr`, `/bin`, `/lib`, ..., `/etc`, `/sys` | the host's, read-only, without set-user-id |
//! | `/dev` | `null`, `zero`, `full`, `random`, `urandom`, `net/tun` |
//! | `/proc` | of the lab's pid namespace |
//! | the role's folder | to write |
//! | the pages, and the folder of the role's program | read-only |
//! | `/tmp` (also `/var/tmp`, `/dev/shm`), `/run` | its own, in memory |
//!
//! Nothing else exists there. What all have in common is made once, in the agent; the rest between fork and
//! exec of each process.

#![allow(unsafe_code, reason = "mount_setattr(2) has no safe wrapper")]

use super::exposed::{Grants, PUBLIC, hidden};
use nix::errno::Errno;
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{chdir, pivot_root};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The new root folder, in the agent's mount namespace.
const ROOT: &str = "/run/linerate-view";
/// Besides [`PUBLIC`].
const READABLE: [&str; 2] = ["/etc", "/sys"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "net"];
const NONE: Option<&str> = None;
const SAFE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// A folder or file of the agent's namespace in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) source: PathBuf,
    /// An absolute path.
    pub(super) at: PathBuf,
    pub(super) writable: bool,
}

impl Mount {
    pub(super) fn reading(source: PathBuf, at: PathBuf) -> Self {
        Self { source, at, writable: false }
    }

    pub(super) fn writing(source: PathBuf, at: PathBuf) -> Self {
        Self { source, at, writable: true }
    }
}

/// Makes what all systems have in common.
///
/// # Errors
/// The step that the kernel refused.
pub(super) fn make() -> Result<(), String> {
    let failed = |what: &Path, e: io::Error| match e.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSYS) => {
            "the kernel lacks mount_setattr(2): Linux 5.12 or newer is required".to_owned()
        }
        _ => format!("hiding the host's files from systems: {}: {e}", what.display()),
    };
    let root = Path::new(ROOT);
    tmpfs(root, "mode=0755").map_err(|e| failed(root, e))?;
    for folder in PUBLIC.iter().chain(&READABLE).map(Path::new) {
        share(folder).map_err(|e| failed(folder, e))?;
    }
    let proc = Path::new("/proc");
    bind(proc, proc).map_err(|e| failed(proc, e))?;
    for device in DEVICES.iter().map(|name| Path::new("/dev").join(name)).filter(|device| device.exists()) {
        bind(&device, &device).map_err(|e| failed(&device, e))?;
    }
    for (link, target) in [
        ("dev/fd", "/proc/self/fd"),
        ("dev/stdin", "/proc/self/fd/0"),
        ("dev/stdout", "/proc/self/fd/1"),
        ("dev/stderr", "/proc/self/fd/2"),
        ("dev/shm", "/tmp"),
        ("var/tmp", "/tmp"),
        ("var/run", "/run"),
    ] {
        let link = root.join(link);
        fs::create_dir_all(link.parent().unwrap_or(root))
            .and_then(|()| symlink(target, &link))
            .map_err(|e| failed(&link, e))?;
    }
    for folder in ["run", "tmp"].map(|name| root.join(name)) {
        fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
    }
    for folder in hidden().filter(|folder| inside(folder).is_dir()) {
        tmpfs(&inside(&folder), "mode=0755").map_err(|e| failed(&folder, e))?;
    }
    Ok(())
}

/// A system folder of the host; on many hosts some are links to others.
fn share(folder: &Path) -> io::Result<()> {
    match fs::read_link(folder) {
        Ok(target) => symlink(target, inside(folder)),
        Err(_) if !folder.exists() => Ok(()),
        Err(_) => {
            bind(folder, folder)?;
            restrict(&inside(folder), libc::MOUNT_ATTR_RDONLY | SAFE, libc::AT_RECURSIVE)
        }
    }
}

/// Enters the view, between fork and exec; needs the right to mount.
///
/// # Errors
/// The kernel refuses a step.
pub(super) fn enter(grants: &Grants, folder: &Path) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    tmpfs(&inside(Path::new("/run")), "mode=1777")?;
    for Mount { source, at, writable } in &grants.mounts {
        bind(source, at)?;
        let read_only = if *writable { 0 } else { libc::MOUNT_ATTR_RDONLY };
        restrict(&inside(at), SAFE | read_only, libc::AT_RECURSIVE)?;
    }
    for (link, target) in &grants.links {
        let link = inside(link);
        fs::create_dir_all(link.parent().unwrap_or(&link))?;
        symlink(target, &link)?;
    }
    restrict(Path::new(ROOT), libc::MOUNT_ATTR_RDONLY | SAFE, 0)?;
    chdir(ROOT)?;
    // The old root is mounted over the new one for a moment, see pivot_root(2).
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    Ok(chdir(folder)?)
}

/// The place of an absolute path in the agent's namespace.
fn inside(path: &Path) -> PathBuf {
    Path::new(ROOT).join(path.strip_prefix("/").unwrap_or(path))
}

fn tmpfs(at: &Path, mode: &str) -> io::Result<()> {
    fs::create_dir_all(at)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(Some("linerate"), at, Some("tmpfs"), flags, Some(mode))?)
}

/// Mounts a folder or file of the host, with what is mounted below it: in a user namespace the kernel keeps
/// both together.
fn bind(source: &Path, at: &Path) -> io::Result<()> {
    let at = inside(at);
    if source.is_dir() {
        fs::create_dir_all(&at)?;
    } else if !at.exists() {
        fs::create_dir_all(at.parent().unwrap_or(&at))?;
        File::create(&at)?;
    }
    Ok(mount(Some(source), &at, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?)
}

/// Adds attributes to a mount.
fn restrict(at: &Path, attributes: u64, flags: i32) -> io::Result<()> {
    let path = CString::new(at.as_os_str().as_bytes())?;
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: path and structure outlive the call, and the size is that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
