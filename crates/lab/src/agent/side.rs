//! The files of all of the user's own processes of a side, and the memory for what they write.

use super::own::Own;
use crate::protocol::OwnFiles;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::statvfs;
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Where the memory is mounted, in the agent's mount namespace; a folder in it for each root folder.
pub(super) const MEMORY: &str = "/run/linerate-own";
/// The part of the memory that is available which one side may fill.
const PART_OF_MEMORY: u64 = 4;
/// A file system with less room is full.
const ROOM: u64 = 1 << 20;
/// Folders of `/run` that a server may expect: so deep, and so many.
const DEPTH: usize = 3;
const MOST_FOLDERS: usize = 500;

/// See the module's documentation.
pub(super) struct Side {
    folders_of_run: Vec<Folder>,
    own: BTreeMap<OwnFiles, Own>,
    memory: Option<Memory>,
}

impl Side {
    pub(super) fn new(folders_of_run: Vec<Folder>) -> Self {
        Self { folders_of_run, own: BTreeMap::new(), memory: None }
    }

    /// Makes files, unless they are there; what could not be done.
    pub(super) fn make(&mut self, files: OwnFiles) -> Result<Vec<String>, String> {
        if self.memory.is_none() {
            self.memory = Some(Memory::mount()?);
        }
        if let Some(known) = self.own.get(&files) {
            return Ok(known.remarks.clone());
        }
        let own = Own::make(&files, &self.folders_of_run, self.own.len())?;
        Ok(self.own.entry(files).or_insert(own).remarks.clone())
    }

    /// The mount namespace with these files.
    pub(super) fn namespace(&self, files: &OwnFiles) -> Option<BorrowedFd<'_>> {
        self.own.get(files).map(Own::namespace)
    }

    /// An error if the servers have filled their memory.
    pub(super) fn check(&self) -> Result<(), String> {
        self.memory.as_ref().map_or(Ok(()), Memory::check)
    }

    pub(super) fn clear(&mut self) {
        self.own.clear();
        self.memory = None;
    }
}

/// A folder of the host's `/run`, which is hidden in the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) owner: [u32; 2],
}

/// The folders of the host's `/run`, before it is hidden.
pub(super) fn folders_of_run() -> Vec<Folder> {
    let (mut all, mut next) = (Vec::new(), vec![PathBuf::from("/run")]);
    for _ in 0..DEPTH {
        let entries = next.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        next = folders.map(|entry| entry.path()).take(MOST_FOLDERS.saturating_sub(all.len())).collect();
        all.extend(next.iter().filter_map(|path| {
            let found = path.metadata().ok()?;
            Some(Folder { path: path.clone(), mode: found.mode(), owner: [found.uid(), found.gid()] })
        }));
    }
    all
}

/// The memory that all root folders of a side write to.
struct Memory {
    bound: u64,
}

impl Memory {
    /// # Errors
    /// The kernel refuses a tmpfs.
    fn mount() -> Result<Self, String> {
        let bound = available().unwrap_or(1 << 30) / PART_OF_MEMORY;
        let options = format!("size={bound},mode=0755");
        let flags = MsFlags::empty();
        fs::create_dir_all(MEMORY)
            .and_then(|()| Ok(mount(Some("linerate"), MEMORY, Some("tmpfs"), flags, Some(&*options))?))
            .map_err(|e| format!("memory for what servers write: {MEMORY}: {e}"))?;
        Ok(Self { bound })
    }

    /// An error if the servers have filled it.
    fn check(&self) -> Result<(), String> {
        match statvfs(MEMORY) {
            Ok(found) if found.blocks_available() * found.fragment_size() < ROOM => Err(format!(
                "what the server writes is kept in memory until its unit ends, and it has filled the {} MiB \
                 that there are: --share PATH for a folder or file whose contents may be written to the disk",
                self.bound >> 20
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = umount2(MEMORY, MntFlags::MNT_DETACH);
    }
}

/// Bytes of memory that new files can have.
fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_run_have_their_owners_and_modes() {
        let all = folders_of_run();
        assert!(all.len() <= MOST_FOLDERS && all.iter().all(|one| one.path.starts_with("/run/")), "{all:?}");
    }
}
