//! The files of a user's own server: all that the user has, at its own paths, and what the server writes goes
//! to memory and ends with the trial (docs/decisions/lab.md).
//!
//! A mount namespace of its own has an overlay over each file system of the host, with its upper layer in a
//! tmpfs. `/run` and `/dev/shm` are new; `/proc`, `/sys` and the rest of `/dev` are the lab's. All processes
//! of a side enter it: a server, and its companions. An image has its own root folder in place of the host's.

#![allow(unsafe_code, reason = "fork(2) and descriptors in messages have no safe wrappers")]

use super::copies::{Left, copy};
use super::mounts::{Mounted, escaped, mounts};
use super::side::{Folder, MEMORY};
use crate::protocol::OwnFiles;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::waitpid;
use nix::unistd::{AccessFlags, ForkResult, access, chdir, fork, geteuid, pivot_root};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folders that are the lab's, not the user's.
const OF_KERNEL: [&str; 3] = ["proc", "sys", "dev"];
/// A child that answers later has ended.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a result of a child, in JSON.
const LONGEST: usize = 64 << 10;
const NONE: Option<&str> = None;
/// The most of a working folder that is copied where the kernel refuses an overlay.
const MOST_COPIED: Left = Left { bytes: 64 << 20, entries: 10_000 };

/// The files of one side, until its trial ends.
pub(super) struct Own {
    namespace: OwnedFd,
    /// Remarks about what could not be done, for the report.
    pub(super) remarks: Vec<String>,
}

impl Own {
    /// Makes a root folder; `number` tells those of a side apart.
    ///
    /// # Errors
    /// The step that the kernel refused.
    pub(super) fn make(wanted: &OwnFiles, run: &[Folder], number: usize) -> Result<Self, String> {
        let failed = |e: io::Error| format!("a view of the user's files: {e}");
        let (receiver, sender) = UnixDatagram::pair().map_err(failed)?;
        // SAFETY: the agent has one thread, so the child may run any code.
        match unsafe { fork() }.map_err(|e| failed(e.into()))? {
            ForkResult::Child => {
                let _ = Layers::new(number).and_then(|layers| layers.build(wanted, run)).map_or_else(
                    |e| answer(&sender, &Err(e.to_string()), None),
                    |(namespace, remarks)| answer(&sender, &Ok(remarks), Some(&namespace)),
                );
                std::process::exit(0);
            }
            ForkResult::Parent { child } => {
                drop(sender);
                let received = receiver.set_read_timeout(Some(PATIENCE)).and_then(|()| receive(&receiver));
                let _ = waitpid(child, None);
                let (built, namespace) = received.map_err(failed)?;
                let remarks = built.map_err(|reason| failed(io::Error::other(reason)))?;
                let lost = || failed(io::Error::other("its process has ended"));
                Ok(Self { namespace: namespace.ok_or_else(lost)?, remarks })
            }
        }
    }

    pub(super) fn namespace(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

/// Remarks about what could not be done, or why nothing was.
type Built = Result<Vec<String>, String>;

/// Sends the result of a child, and its mount namespace. `/proc` may show other numbers of processes, so that
/// the agent cannot open that by itself.
fn answer(sender: &UnixDatagram, built: &Built, namespace: Option<&File>) -> io::Result<()> {
    let text = serde_json::to_vec(built)?;
    let fds: Vec<RawFd> = namespace.map(AsRawFd::as_raw_fd).into_iter().collect();
    let rights: Vec<_> = namespace.map(|_| ControlMessage::ScmRights(&fds)).into_iter().collect();
    let pieces = [IoSlice::new(&text)];
    sendmsg::<UnixAddr>(sender.as_raw_fd(), &pieces, &rights, MsgFlags::empty(), None)?;
    Ok(())
}

fn receive(receiver: &UnixDatagram) -> io::Result<(Built, Option<OwnedFd>)> {
    let (mut text, mut space) = (vec![0; LONGEST], nix::cmsg_space!(RawFd));
    let mut pieces = [IoSliceMut::new(&mut text)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(receiver.as_raw_fd(), &mut pieces, Some(&mut space), flags)?;
    let fd = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
        _ => None,
    });
    let length = message.bytes;
    // SAFETY: the kernel has made this descriptor for the message, and nothing else owns it.
    let namespace = fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Ok((serde_json::from_slice(&text[..length])?, namespace))
}

/// The overlays of a root folder while it is made.
struct Layers {
    /// The folder for what they need in memory.
    folder: PathBuf,
    root: PathBuf,
    made: usize,
    /// Attributes of the upper layers have names that a user namespace may set.
    of_user: bool,
    remarks: Vec<String>,
    /// Folders that the kernel refused to cover, and why.
    refused: Vec<(PathBuf, io::Error)>,
}

impl Layers {
    fn new(number: usize) -> io::Result<Self> {
        umask(Mode::empty());
        unshare(CloneFlags::CLONE_NEWNS)?;
        let folder = Path::new(MEMORY).join(number.to_string());
        let root = folder.join("root");
        fs::create_dir_all(&root)?;
        let all = "4294967295";
        let of_user = !fs::read_to_string("/proc/self/uid_map")?.trim_end().ends_with(all);
        Ok(Self { folder, root, made: 0, of_user, remarks: Vec::new(), refused: Vec::new() })
    }

    fn build(mut self, wanted: &OwnFiles, run: &[Folder]) -> io::Result<(File, Vec<String>)> {
        let namespace = File::open("/proc/self/ns/mnt")?;
        match &wanted.image {
            None => self.host(&wanted.folder)?,
            Some(image) => {
                self.overlay(&image.root, &self.root.clone())?;
                for folder in OF_KERNEL.iter().chain(&["run", "tmp"]) {
                    fs::create_dir_all(self.root.join(folder))?;
                }
            }
        }
        for folder in OF_KERNEL {
            bind(&Path::new("/").join(folder), &self.root.join(folder))?;
        }
        self.fresh(run, wanted.image.is_some())?;
        for (source, at) in wanted.image.iter().flat_map(|image| &image.volumes) {
            let at = self.place(source, at)?;
            if wanted.share.iter().any(|shared| source.starts_with(shared)) {
                bind(source, &at)?;
            } else {
                self.cover(source, &at)?;
            }
        }
        self.settle(wanted.image.is_none().then_some(&*wanted.folder));
        for path in wanted.share.iter().filter(|_| wanted.image.is_none()) {
            bind(path, &self.inside(path))?;
        }
        chdir(&self.root)?;
        // The old root is mounted over the new one for a moment, see pivot_root(2).
        pivot_root(".", ".")?;
        umount2(".", MntFlags::MNT_DETACH)?;
        Ok((namespace, self.remarks))
    }

    /// Where an absolute path of the server is, from outside.
    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A folder or file in the image, for what is mounted there. Links in the image lead out of it.
    fn place(&self, source: &Path, at: &Path) -> io::Result<PathBuf> {
        let mut place = self.root.clone();
        for part in at.strip_prefix("/").unwrap_or(at) {
            place.push(part);
            let is_last = place == self.inside(at);
            match place.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    return Err(io::Error::other(format!("-v {}: a link in the image", at.display())));
                }
                Ok(_) => {}
                Err(_) if is_last && source.is_file() => drop(File::create(&place)?),
                Err(_) => fs::create_dir(&place)?,
            }
        }
        Ok(place)
    }

    /// `/run` and `/dev/shm` are new, with the folders that the host has in `/run`.
    fn fresh(&mut self, run: &[Folder], is_image: bool) -> io::Result<()> {
        let shm = self.inside(Path::new("/dev/shm"));
        let mut folders = vec![("shm", shm)];
        if !is_image {
            folders.push(("run", self.inside(Path::new("/run"))));
        }
        for (name, at) in folders.into_iter().filter(|(_, at)| at.is_dir()) {
            let new = self.folder.join(name);
            fs::create_dir_all(&new)?;
            fs::set_permissions(&new, Permissions::from_mode(0o1777))?;
            bind(&new, &at)?;
        }
        for folder in run.iter().filter(|_| !is_image) {
            let path = self.inside(&folder.path);
            fs::create_dir_all(&path)?;
            // In a user namespace others do not exist.
            let _ = std::os::unix::fs::chown(&path, Some(folder.owner[0]), Some(folder.owner[1]));
            fs::set_permissions(&path, Permissions::from_mode(folder.mode & 0o7777))?;
        }
        Ok(())
    }

    /// The host's files. In a user namespace the kernel keeps a folder and the mounts below it together, so
    /// that it gives each folder in the root folder a layer of its own there.
    fn host(&mut self, working: &Path) -> io::Result<()> {
        let mounts: Vec<Mounted> = mounts()?.into_iter().filter(Mounted::is_of_user).collect();
        let root = self.root.clone();
        match self.overlay(Path::new("/"), &root) {
            Ok(()) => {
                for mounted in &mounts {
                    let at = self.inside(&mounted.path);
                    if mounted.is_writable && mounted.path.is_dir() {
                        self.cover(&mounted.path, &at)?;
                    } else {
                        bind(&mounted.path, &at)?;
                    }
                }
                Ok(())
            }
            Err(_) => {
                mount(Some("linerate"), &root, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))?;
                self.piece_by_piece(Path::new("/"), &mounts, working)?;
                // A folder of another owner cannot be copied to a layer, so that one of the user's own below
                // it needs a layer for itself.
                let home = std::env::var_os("HOME").map(PathBuf::from);
                let tops = [Some(working), home.as_deref()].into_iter().flatten().filter_map(owned);
                for folder in tops.chain([working]).collect::<BTreeSet<_>>() {
                    let is_told = |refused: &(PathBuf, io::Error)| {
                        folder.starts_with(&refused.0) || refused.0.starts_with(folder)
                    };
                    if let Err(e) = self.overlay(folder, &self.inside(folder))
                        && !self.refused.iter().any(is_told)
                    {
                        self.remarks.push(format!("{} has no layer of its own: {e}", folder.display()));
                    }
                }
                Ok(())
            }
        }
    }

    fn piece_by_piece(&mut self, folder: &Path, mounts: &[Mounted], working: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)?.flatten() {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let at = self.inside(&path);
            let is_above = |mounted: &Mounted| mounted.path != path && mounted.path.starts_with(&path);
            if kind.is_symlink() {
                symlink(fs::read_link(&path)?, &at)?;
            } else if !kind.is_dir() {
                File::create(&at)?;
                bind(&path, &at)?;
            } else if folder == Path::new("/") && is_special(&path) {
                fs::create_dir(&at)?;
            } else if !mounts.iter().any(is_above) {
                fs::create_dir(&at)?;
                self.cover(&path, &at)?;
            } else if working.starts_with(&path) {
                fs::create_dir(&at)?;
                self.piece_by_piece(&path, mounts, working)?;
            } else {
                fs::create_dir(&at)?;
                bind(&path, &at)?;
            }
        }
        Ok(())
    }

    /// An overlay over what may be written; where the kernel refuses one, the folder itself, which is said if
    /// the user can write there.
    fn cover(&mut self, path: &Path, at: &Path) -> io::Result<()> {
        if path.is_file() {
            let copy = self.folder.join(format!("copy-{}", self.made));
            self.made += 1;
            fs::copy(path, &copy)?;
            return bind(&copy, at);
        }
        let Err(e) = self.overlay(path, at) else { return Ok(()) };
        bind(path, at)?;
        self.refused.push((path.to_owned(), e));
        Ok(())
    }

    /// Where the kernel refuses an overlay, the working folder is a copy if it is small; what is written
    /// elsewhere stays, which is said if the user can write there.
    fn settle(&mut self, working: Option<&Path>) {
        for (path, e) in std::mem::take(&mut self.refused) {
            let why = format!("the kernel refuses an overlay: {e}");
            let mut remark = format!("what is written to {} stays there: {why}", path.display());
            let below = working.filter(|working| working.starts_with(&path));
            if let Some(working) = below {
                const ENDS: &str = "is a copy, which ends with the unit";
                let shown = working.display();
                match self.copied(working) {
                    Ok(()) if working == path => {
                        remark = format!("{shown} {ENDS}: {why}");
                    }
                    Ok(()) => remark += &format!("; {shown} {ENDS}"),
                    Err(e) => remark += &format!("; {shown} is no copy: {e}"),
                }
            }
            if below.is_some() || access(&path, AccessFlags::W_OK).is_ok() {
                self.remarks.push(remark);
            }
        }
    }

    fn copied(&mut self, working: &Path) -> io::Result<()> {
        let to = self.folder.join(format!("copy-{}", self.made));
        self.made += 1;
        fs::create_dir_all(&to)?;
        copy(working, &to, &mut { MOST_COPIED })?;
        bind(&to, &self.inside(working))
    }

    fn overlay(&mut self, lower: &Path, at: &Path) -> io::Result<()> {
        let [upper, work] = ["upper", "work"].map(|part| self.folder.join(format!("{part}-{}", self.made)));
        self.made += 1;
        fs::create_dir_all(&upper)?;
        fs::create_dir_all(&work)?;
        let found = lower.metadata()?;
        let _ = std::os::unix::fs::chown(&upper, Some(found.uid()), Some(found.gid()));
        fs::set_permissions(&upper, Permissions::from_mode(found.mode() & 0o7777))?;
        let mut options = OsString::from("lowerdir=");
        options.push(escaped(lower));
        options.push(format!(",upperdir={},workdir={}", upper.display(), work.display()));
        options.push(if self.of_user { ",userxattr" } else { ",redirect_dir=on,metacopy=off" });
        Ok(mount(Some("linerate"), at, Some("overlay"), MsFlags::empty(), Some(&*options))?)
    }
}

/// The first folder on the way to this one that belongs to the user.
fn owned(folder: &Path) -> Option<&Path> {
    let all: Vec<&Path> = folder.ancestors().collect();
    // The root folder is never the user's; that of an owner who does not exist here looks like nobody's.
    let mut all = all.into_iter().rev().skip(1);
    all.find(|one| one.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw()))
}

/// A folder in the root folder that is not an overlay.
fn is_special(path: &Path) -> bool {
    OF_KERNEL.iter().chain(&["run"]).any(|name| path == Path::new("/").join(name))
}

/// With what is mounted below it: in a user namespace the kernel keeps both together.
fn bind(source: &Path, at: &Path) -> io::Result<()> {
    let bound = mount(Some(source), at, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE);
    bound.map_err(|e: Errno| io::Error::other(format!("{}: {e}", source.display())))
}
