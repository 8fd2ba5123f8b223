//! Enters new namespaces: user (where needed), network, pid, mount and UTS; as root or as another user.

#![allow(unsafe_code, reason = "fork(2) has no safe wrapper")]

use super::PathOf;
use super::side::{Folder, folders_of_run};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, getgid, getuid};
use std::fmt;
use std::fs;

/// The user of the lab's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privileges {
    /// linerate runs as root; systems run as an unprivileged user, with the capabilities that networking
    /// needs.
    Root,
    /// linerate runs as another user; systems run as the same, in a user namespace with the capabilities.
    UserNamespace,
}

/// `nobody` on Debian and Fedora; some servers refuse uid 0 or change it (docs/decisions/safety.md).
const NOBODY: u32 = 65_534;

impl Privileges {
    /// The user and group to change to before a system is started; `None`: no change.
    pub(super) fn run_as(self) -> Option<(Uid, Gid)> {
        (self == Self::Root).then(|| (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY)))
    }
}

impl fmt::Display for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::UserNamespace => "user namespace",
        })
    }
}

/// The process in which [`enter`] returned.
pub(super) enum Entered {
    /// In pid 1 of the new namespaces; with the folders of the host's `/run`, which are hidden there.
    Inside(Privileges, Vec<Folder>),
    /// In the process outside, after pid 1 ended: its exit status.
    Outside(i32),
}

/// Enters new namespaces and forks; both processes return, see [`Entered`].
///
/// # Errors
/// The step that was refused, and the remedy.
pub(super) fn enter(path: PathOf) -> Result<Entered, String> {
    die_with_parent()?;
    // Ctrl-C in a terminal goes to the foreground process group. Only linerate handles it, so the lab leaves.
    nix::unistd::setsid().map_err(|e| format!("setsid: {e}"))?;
    let privileges = unshare_all(path)?;
    // SAFETY: the agent has one thread, so the child may run any code.
    match unsafe { fork() }.map_err(|e| format!("fork into the pid namespace: {e}"))? {
        ForkResult::Parent { child } => Ok(Entered::Outside(match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, status)) => status,
            _ => 1,
        })),
        ForkResult::Child => {
            die_with_parent()?;
            let folders = folders_of_run();
            make_mounts()?;
            if privileges == Privileges::Root && path == PathOf::Lab {
                super::tun::open_to_all();
            }
            super::view::make()?;
            Ok(Entered::Inside(privileges, folders))
        }
    }
}

/// The kernel kills this process when its parent ends; the closed socket would end it a moment later.
fn die_with_parent() -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| format!("prctl(PR_SET_PDEATHSIG): {e}"))
}

fn unshare_all(path: PathOf) -> Result<Privileges, String> {
    let network = if path == PathOf::Lab { CloneFlags::CLONE_NEWNET } else { CloneFlags::empty() };
    // With names of their own, processes with root's rights cannot rename the host.
    let flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWUTS | network;
    if getuid().is_root() && unshare(flags).is_ok() {
        return Ok(Privileges::Root);
    }
    let (uid, gid) = (getuid(), getgid());
    unshare(flags | CloneFlags::CLONE_NEWUSER).map_err(no_user_namespace)?;
    // The user's ids map to themselves: as uid 0 a server tries to change its group, which a user namespace
    // with a single mapped group does not allow.
    for (file, map) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{uid} {uid} 1")),
        ("/proc/self/gid_map", format!("{gid} {gid} 1")),
    ] {
        fs::write(file, map).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(Privileges::UserNamespace)
}

fn no_user_namespace(error: Errno) -> String {
    let mut reason = format!("the kernel refuses namespaces (unshare: {error})");
    for (file, refusing, change) in [
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ] {
        if fs::read_to_string(file).is_ok_and(|value| value.trim() == refusing) {
            reason = format!("{reason}; {file} is {refusing}: to allow it, run `{change}` as root");
        }
    }
    format!("{reason}; or run linerate as root")
}

/// A private mount tree with a new `/proc` (of the new pid namespace) and a new `/run` in memory.
fn make_mounts() -> Result<(), String> {
    let step = |what: &str, result: nix::Result<()>| result.map_err(|e| format!("{what}: {e}"));
    let none = None::<&str>;
    let private = mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none);
    if private == Err(Errno::EINVAL) {
        let remedy = "in a chroot, bind its folder onto itself before (`mount --bind DIR DIR`)";
        return Err(format!("/ is no mount point, so its mounts cannot be made private: {remedy}"));
    }
    step("making mounts private", private)?;
    // The user's own mask could close the folders that are made for the systems' user.
    umask(Mode::from_bits_truncate(0o022));
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    // Refused in containers that mask parts of /proc. The old /proc then stays; it has the sysctls as well.
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags | MsFlags::MS_NOEXEC, none);
    step("mounting a tmpfs on /run", mount(Some("linerate"), "/run", Some("tmpfs"), flags, Some("mode=1777")))
}
