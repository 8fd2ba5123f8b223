//! Landlock (landlock(7)): a system can neither trace nor signal processes of other roles, nor of the agent,
//! nor connect to their abstract sockets. Roles have the same user, so file permissions do not separate them.
//!
//! Files are not restricted by it: the mount namespace does that, a restriction of files would forbid the
//! mounts of programs such as pasta, and it would add a check to every open(2) of a server.

#![allow(unsafe_code, reason = "the system calls of Landlock have no wrapper")]

use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The first version of the interface that has scopes.
pub const SCOPES: u32 = 6;

/// `struct landlock_ruleset_attr`.
#[repr(C)]
#[derive(Default)]
struct Ruleset {
    files: u64,
    network: u64,
    scoped: u64,
}

const ABSTRACT_SOCKETS: u64 = 1;
const SIGNALS: u64 = 2;
/// LANDLOCK_CREATE_RULESET_VERSION.
const VERSION: u32 = 1;

/// The version of the kernel's interface; `None` without Landlock.
pub(super) fn version() -> Option<u32> {
    // SAFETY: with this flag the call takes no structure.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Ruleset>(), 0_usize, VERSION)
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// True if this version can separate the roles.
pub(super) fn separates(version: Option<u32>) -> bool {
    version.is_some_and(|version| version >= SCOPES)
}

/// Restricts the calling process and its children for good. `no_new_privs` must be set.
///
/// # Errors
/// The kernel refuses it.
pub(super) fn restrict() -> io::Result<()> {
    let ruleset = Ruleset { scoped: ABSTRACT_SOCKETS | SIGNALS, ..Ruleset::default() };
    // SAFETY: the structure outlives the call, and the size is its own.
    let fd = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const ruleset, size_of::<Ruleset>(), 0_u32)
    };
    let Ok(fd @ 0..) = i32::try_from(fd) else { return Err(io::Error::last_os_error()) };
    // SAFETY: the kernel has just made this descriptor; it has no other owner.
    let ruleset = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the call takes numbers only.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
