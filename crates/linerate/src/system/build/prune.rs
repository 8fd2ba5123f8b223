//! Builds that no system uses any more: one of their inputs has changed, or their system was removed.

use super::{cache, place};
use crate::error::Error;
use crate::system::Registry;
use linerate_contract::Bytes;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Hex digits of a key.
const KEY: usize = 16;

/// Result of [`prune`].
#[derive(Debug, Default)]
pub struct Pruned {
    /// Names of the removed builds, and their size on disk.
    pub removed: Vec<(String, Bytes)>,
    pub kept: usize,
}

/// Removes every build that no system of the registry uses in this environment. Builds under way are kept.
///
/// # Errors
/// A build that cannot be removed.
pub fn prune(registry: &Registry) -> Result<Pruned, Error> {
    let mut pruned = Pruned::default();
    let Ok(folder) = cache() else { return Ok(pruned) };
    let wanted = wanted(registry, &folder);
    for name in names(&folder)? {
        let is_unclear = |system: &str| wanted.unclear.contains(system);
        if wanted.names.contains(&name) || system_of(&name).is_none_or(is_unclear) {
            pruned.kept += 1;
        } else if let Some(size) = remove(&folder, &name)? {
            pruned.removed.push((name, size));
        } else {
            pruned.kept += 1;
        }
    }
    Ok(pruned)
}

/// The builds that the manifests need.
struct Wanted {
    names: BTreeSet<String>,
    /// Systems whose builds have no names today, since an input cannot be read.
    unclear: BTreeSet<String>,
}

fn wanted(registry: &Registry, folder: &Path) -> Wanted {
    let mut wanted = Wanted { names: BTreeSet::new(), unclear: BTreeSet::new() };
    for system in registry.systems.values() {
        let Some(build) = &system.manifest.build else { continue };
        match place(system, build, &[], folder) {
            Ok(site) => {
                let names = [&site.out, &site.python].map(|path| path.file_name().unwrap_or_default());
                wanted.names.extend(names.map(|name| name.to_string_lossy().into_owned()));
            }
            Err(_) => {
                wanted.unclear.insert(system.name.clone());
            }
        }
    }
    wanted
}

/// Folders of builds, also those of builds that were killed.
fn names(folder: &Path) -> Result<BTreeSet<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries.map_err(Error::file(folder))?,
    };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    Ok(folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// `asio` of `asio-0123456789abcdef`; `None` if it is not the name of a build.
fn system_of(name: &str) -> Option<&str> {
    let (system, key) = name.rsplit_once('-')?;
    (key.len() == KEY && key.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(system)
}

/// Bytes that were freed; `None` if a build is under way there.
fn remove(folder: &Path, name: &str) -> Result<Option<Bytes>, Error> {
    let lock = folder.join(format!("{name}.lock"));
    let file = File::create(&lock).map_err(Error::file(&lock))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(Error::file(&lock)(e)),
    }
    let build = folder.join(name);
    let size = size(&build);
    fs::remove_dir_all(&build).map_err(Error::file(&build))?;
    for file in [folder.join(format!("{name}.log")), lock] {
        match fs::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::file(&file)(e)),
            _ => {}
        }
    }
    Ok(Some(size))
}

/// Size on disk.
fn size(path: &Path) -> Bytes {
    /// The unit of `st_blocks` (stat(2)) on every file system.
    const BLOCK: u64 = 512;
    let Ok(data) = path.symlink_metadata() else { return Bytes(0) };
    let own = data.blocks() * BLOCK;
    if !data.is_dir() {
        return Bytes(own);
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    Bytes(own + entries.map(|entry| size(&entry.path()).0).sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_builds_are_recognised() {
        assert_eq!(system_of("rust-websockets-0123456789abcdef"), Some("rust-websockets"));
        for other in ["asio", "asio-backup", "asio-0123456789abcde", "asio-0123456789abcdeg"] {
            assert_eq!(system_of(other), None, "{other}");
        }
    }
}
