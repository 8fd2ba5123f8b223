//! The view that a system has of the host's files: a root folder of its own, in a mount namespace of its own.
//!
//! | folder | access |
//! |---|---|
//! | `/usr`, `/bin`, `/lib`, ..., `/etc`, `/sys` | the host's, read-only, without set-user-id |
//! | `/dev` | `null`, `zero`, `full`, `random`, `urandom`, `net/tun` |
//! | `/proc` | of the lab's pid namespace |
//! | the role's folder | to write |
//! | the pages, and what the role's program needs ([`super::exposed`]) | read-only |
//! | `/tmp` (also `/var/tmp`, `/dev/shm`), `/run` | its own, in memory |
//!
//! Nothing else exists there. What all have in common is made once, in the agent; the rest between fork and
//! exec of each process.

#![allow(unsafe_code, reason = "mount_setattr(2) has no safe wrapper")]

use super::exposed::{Grants, PUBLIC, READABLE, hidden};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat, openat2, readlinkat};
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, chdir, pivot_root, symlinkat, unlinkat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The new root folder, in the agent's mount namespace.
const ROOT: &str = "/run/linerate-view";
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "net"];
const LINKS: [(&str, &str); 7] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/shm", "/tmp"),
    ("/var/tmp", "/tmp"),
    ("/var/run", "/run"),
];
/// Besides [`PUBLIC`] and [`READABLE`].
const OWN: [&str; 5] = ["/dev", "/proc", "/run", "/tmp", "/var"];
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
    fs::create_dir_all(ROOT)
        .and_then(|()| tmpfs(ROOT, "mode=0755"))
        .map_err(|e| failed(Path::new(ROOT), e))?;
    let root = Root::open().map_err(|e| failed(Path::new(ROOT), e))?;
    for folder in PUBLIC.iter().chain(&READABLE).map(Path::new) {
        root.share(folder).map_err(|e| failed(folder, e))?;
    }
    let proc = Path::new("/proc");
    root.bind(proc, proc).map_err(|e| failed(proc, e))?;
    for device in DEVICES.iter().map(|name| Path::new("/dev").join(name)).filter(|device| device.exists()) {
        root.bind(&device, &device).map_err(|e| failed(&device, e))?;
    }
    for (link, target) in LINKS.map(|(link, target)| (Path::new(link), Path::new(target))) {
        root.link(link, target).map_err(|e| failed(link, e))?;
    }
    for folder in ["/run", "/tmp"].map(Path::new) {
        root.folder(folder).map_err(|e| failed(folder, e.into()))?;
    }
    for folder in hidden() {
        root.hide(&folder).map_err(|e| failed(&folder, e))?;
    }
    Ok(())
}

/// Enters the view, between fork and exec; needs the right to mount.
///
/// # Errors
/// The kernel refuses a step.
pub(super) fn enter(grants: &Grants, folder: &Path) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let root = Root::open()?;
    tmpfs(&in_proc(&root.folder(Path::new("/run"))?), "mode=1777")?;
    // What is above a program is made for its process alone.
    let above = above(grants);
    for top in &above {
        tmpfs(&in_proc(&root.folder(top)?), "mode=0755")?;
    }
    for Mount { source, at, writable } in &grants.mounts {
        let read_only = if *writable { 0 } else { libc::MOUNT_ATTR_RDONLY };
        restrict(&root.bind(source, at)?, SAFE | read_only, libc::AT_RECURSIVE)?;
    }
    for folder in &grants.folders {
        root.folder(folder)?;
    }
    let is_of_view = |link: &Path| LINKS.iter().any(|(own, _)| Path::new(own) == link);
    for (link, target) in grants.links.iter().filter(|(link, _)| !is_of_view(link)) {
        root.link(link, target)?;
    }
    restrict(&root.0, libc::MOUNT_ATTR_RDONLY | SAFE, 0)?;
    for made in above.into_iter().chain(hidden()).filter_map(|folder| root.at(&folder).ok()) {
        match restrict(&made, libc::MOUNT_ATTR_RDONLY | SAFE, 0) {
            // No mount of its own: a hidden folder inside of another.
            Err(e) if e.raw_os_error() == Some(Errno::EINVAL as i32) => {}
            done => done?,
        }
    }
    chdir(ROOT)?;
    // The old root is mounted over the new one for a moment, see pivot_root(2).
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    Ok(chdir(folder)?)
}

/// The folders in the root folder that the view has not, and in which these grants are.
fn above(grants: &Grants) -> BTreeSet<PathBuf> {
    let Grants { mounts, links, folders, .. } = grants;
    let places = mounts.iter().map(|mount| &mount.at).chain(links.iter().map(|(link, _)| link));
    let tops = places.filter_map(|place| place.parent()).chain(folders.iter().map(PathBuf::as_path));
    let tops = tops.filter_map(|place| place.ancestors().find(|top| top.parent() == Some(Path::new("/"))));
    let is_own = |top: &&Path| {
        let mut own = PUBLIC.iter().chain(&READABLE).chain(&OWN);
        own.any(|own| Path::new(own) == *top)
    };
    tops.filter(|top| !is_own(top)).map(Path::to_owned).collect()
}

/// The new root folder, from outside. What a system writes to its `/tmp` is not trusted, so links on the way
/// to a place lead to places in it only, as they do for the system.
struct Root(OwnedFd);

impl Root {
    fn open() -> io::Result<Self> {
        Ok(Self(open(ROOT, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?))
    }

    /// A file or folder that is there.
    fn at(&self, path: &Path) -> nix::Result<OwnedFd> {
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
        openat2(&self.0, path, how.resolve(ResolveFlag::RESOLVE_IN_ROOT))
    }

    /// As [`Self::at`]; `make` makes what is not there, in its folder and with its name.
    fn at_or(
        &self,
        path: &Path,
        make: impl FnOnce(&OwnedFd, &OsStr) -> nix::Result<()>,
    ) -> nix::Result<OwnedFd> {
        let (Err(Errno::ENOENT), Some(parent), Some(name)) = (self.at(path), path.parent(), path.file_name())
        else {
            return self.at(path);
        };
        make(&self.folder(parent)?, name)?;
        self.at(path)
    }

    fn folder(&self, path: &Path) -> nix::Result<OwnedFd> {
        self.at_or(path, |parent, name| mkdirat(parent, name, Mode::from_bits_truncate(0o755)))
    }

    fn file(&self, path: &Path) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o644);
        self.at_or(path, |parent, name| openat(parent, name, flags, mode).map(drop))
    }

    fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let folder = self.folder(parent)?;
        match symlinkat(target, &folder, name) {
            Err(Errno::EEXIST) if readlinkat(&folder, name).is_ok_and(|found| found == target) => Ok(()),
            // That of an earlier process, before the user changed it.
            Err(Errno::EEXIST) => {
                unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)?;
                Ok(symlinkat(target, &folder, name)?)
            }
            made => Ok(made?),
        }
    }

    /// Mounts a folder or file of the host, with what is mounted below it: in a user namespace the kernel
    /// keeps both together. Returns the mount.
    fn bind(&self, source: &Path, at: &Path) -> io::Result<OwnedFd> {
        let place = if source.is_dir() { self.folder(at)? } else { self.file(at)? };
        mount(Some(source), &*in_proc(&place), NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)?;
        Ok(self.at(at)?)
    }

    /// A system folder of the host; on many hosts some are links to others.
    fn share(&self, folder: &Path) -> io::Result<()> {
        match fs::read_link(folder) {
            Ok(target) => self.link(folder, &target),
            Err(_) if !folder.exists() => Ok(()),
            Err(_) => {
                let bound = self.bind(folder, folder)?;
                restrict(&bound, libc::MOUNT_ATTR_RDONLY | SAFE, libc::AT_RECURSIVE)
            }
        }
    }

    /// Makes a folder empty, if it is there.
    fn hide(&self, folder: &Path) -> io::Result<()> {
        match self.at(folder) {
            Err(Errno::ENOENT) => Ok(()),
            place => tmpfs(&in_proc(&place?), "mode=0755"),
        }
    }
}

/// The path of an open file or folder, for mount(2).
fn in_proc(place: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}

fn tmpfs(at: &str, mode: &str) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(Some("linerate"), at, Some("tmpfs"), flags, Some(mode))?)
}

/// Adds attributes to a mount.
fn restrict(mounted: &OwnedFd, attributes: u64, flags: i32) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: descriptor, text and structure outlive the call, and the size is that of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mounted.as_raw_fd(),
            c"".as_ptr(),
            flags | libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
