//! The lab's scratch folder, on a tmpfs of the lab's mount namespace that ends with it.
//!
//! Systems write to their folders in it, so nothing there is trusted: no step of the agent follows a link,
//! and a file is always a new one.

use super::exposed::Grants;
use super::namespaces::Privileges;
use super::view::Mount;
use crate::SCRATCH;
use crate::protocol::File;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Private temporary folders, one for each role's folder.
const TEMPORARY: &str = "/run/linerate-tmp";

pub(super) struct Files {
    owner: Option<(Uid, Gid)>,
    /// Below [`SCRATCH`]; every role may read them.
    shared: BTreeSet<PathBuf>,
}

impl Files {
    pub(super) fn new(privileges: &Privileges) -> Self {
        Self { owner: privileges.run_as(), shared: BTreeSet::new() }
    }

    pub(super) fn path(&self, relative: &Path) -> PathBuf {
        Path::new(SCRATCH).join(relative)
    }

    /// Makes a folder that the systems' user may write to.
    pub(super) fn make_folder(&self, relative: &Path) -> Result<(), String> {
        self.folder(SCRATCH, relative).map(drop)
    }

    /// Writes files that every role may read.
    pub(super) fn share(&mut self, files: &[File]) -> Result<(), String> {
        self.shared.extend(files.iter().filter_map(|file| file.path.parent()).map(Path::to_owned));
        self.write_all(files)
    }

    /// Files that the role with this folder has besides the system folders.
    pub(super) fn grants(&self, relative: &Path) -> Result<Grants, String> {
        let (own, temporary) = (self.path(relative), Path::new(TEMPORARY).join(relative));
        self.folder(TEMPORARY, relative)?;
        let shared = self.shared.iter().map(|folder| self.path(folder));
        let mut mounts: Vec<Mount> = shared.map(|folder| Mount::reading(folder.clone(), folder)).collect();
        mounts.extend([Mount::writing(own.clone(), own), Mount::writing(temporary, "/tmp".into())]);
        Ok(Grants { mounts, ..Grants::default() })
    }

    pub(super) fn write_all(&self, files: &[File]) -> Result<(), String> {
        for file in files {
            let (Some(folder), Some(name)) = (file.path.parent(), file.path.file_name()) else {
                return Err(format!("`{}` is not the path of a file", file.path.display()));
            };
            let folder = self.folder(SCRATCH, folder)?;
            write_new(&folder, name, file.contents.as_bytes())
                .map_err(|e| format!("cannot write {}: {e}", self.path(&file.path).display()))?;
        }
        Ok(())
    }

    /// Opens a folder below `root` step by step, and makes what is missing.
    fn folder(&self, root: &str, relative: &Path) -> Result<OwnedFd, String> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut path = PathBuf::from(root);
        let failed = |path: &Path, e: Errno| {
            let reason = match e {
                Errno::ELOOP | Errno::ENOTDIR => "a system has put something else in its place".to_owned(),
                e => e.to_string(),
            };
            format!("cannot make the lab's folder {}: {reason}", path.display())
        };
        fs::create_dir_all(root).map_err(|e| format!("cannot make the lab's folder {root}: {e}"))?;
        let mut folder = open(root, flags, Mode::empty()).map_err(|e| failed(&path, e))?;
        for component in relative.components() {
            let Component::Normal(name) = component else {
                return Err(format!(
                    "`{}` is not a relative path below the lab's folder",
                    relative.display()
                ));
            };
            path.push(name);
            match mkdirat(&folder, name, Mode::from_bits_truncate(0o755)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(e) => return Err(failed(&path, e)),
            }
            folder = openat(&folder, name, flags, Mode::empty()).map_err(|e| failed(&path, e))?;
            if let Some((uid, gid)) = self.owner {
                fchown(&folder, Some(uid), Some(gid)).map_err(|e| failed(&path, e))?;
            }
        }
        Ok(folder)
    }

    /// Removes the files of the last trial.
    pub(super) fn clear(&mut self) {
        self.shared.clear();
        let _ = fs::remove_dir_all(SCRATCH);
        let _ = fs::remove_dir_all(TEMPORARY);
    }
}

/// Writes a new file; one of that name, or a link, is removed before and not opened.
fn write_new(folder: &OwnedFd, name: &OsStr, contents: &[u8]) -> std::io::Result<()> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(e) => return Err(e.into()),
    }
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = openat(folder, name, flags, Mode::from_bits_truncate(0o644))?;
    fchmod(&file, Mode::from_bits_truncate(0o644))?;
    fs::File::from(file).write_all(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::os::unix::fs::symlink;

    /// A folder of this test in place of [`SCRATCH`], and a victim outside of it.
    fn folders(name: &str) -> (String, PathBuf) {
        let root = std::env::temp_dir().join(format!("linerate-files-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("victim")).unwrap();
        fs::write(root.join("victim/a.conf"), "own").unwrap();
        (root.join("scratch").display().to_string(), root.join("victim"))
    }

    fn files() -> Files {
        Files { owner: None, shared: BTreeSet::new() }
    }

    #[test]
    fn a_link_in_place_of_a_folder_is_refused() {
        let (scratch, victim) = folders("folder");
        files().folder(&scratch, Path::new("server")).unwrap();
        symlink(&victim, Path::new(&scratch).join("server/sub")).unwrap();
        for below in ["server/sub", "server/sub/sub"] {
            let error = files().folder(&scratch, Path::new(below)).unwrap_err();
            assert!(error.contains("/server/sub: a system has put something else"), "{error}");
        }
        assert!(!victim.join("sub").exists());
        assert!(files().folder(&scratch, Path::new("../victim")).is_err());
        fs::remove_dir_all(victim.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_link_or_a_pipe_in_place_of_a_file_is_replaced() {
        let (scratch, victim) = folders("file");
        let folder = files().folder(&scratch, Path::new("server")).unwrap();
        let own = Path::new(&scratch).join("server");
        symlink(victim.join("a.conf"), own.join("link")).unwrap();
        fs::hard_link(victim.join("a.conf"), own.join("hard")).unwrap();
        mkfifo(&own.join("pipe"), Mode::S_IRWXU).unwrap();
        fs::write(own.join("old"), "a longer text").unwrap();
        for name in ["link", "hard", "pipe", "old", "new"] {
            write_new(&folder, OsStr::new(name), b"config").unwrap();
            assert_eq!(fs::read_to_string(own.join(name)).unwrap(), "config");
            assert!(own.join(name).symlink_metadata().unwrap().is_file());
        }
        assert_eq!(fs::read_to_string(victim.join("a.conf")).unwrap(), "own");
        fs::remove_dir_all(victim.parent().unwrap()).unwrap();
    }
}
