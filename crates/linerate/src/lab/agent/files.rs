//! The lab's scratch folder, on a tmpfs of the lab's mount namespace that ends with it.

use super::namespaces::Privileges;
use crate::lab::SCRATCH;
use crate::lab::protocol::File;
use nix::mount::{MsFlags, mount};
use nix::unistd::{Gid, Uid, chown};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders whose programs every user may execute; other folders get a bind mount.
const PUBLIC: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix"];

pub(super) struct Files {
    owner: Option<(Uid, Gid)>,
    /// Folders of programs, and their mount points inside the lab.
    exposed: BTreeMap<PathBuf, PathBuf>,
}

impl Files {
    pub(super) fn new(privileges: &Privileges) -> Self {
        Self { owner: privileges.run_as(), exposed: BTreeMap::new() }
    }

    pub(super) fn path(&self, relative: &Path) -> PathBuf {
        Path::new(SCRATCH).join(relative)
    }

    /// Makes a folder that the systems' user may write to.
    pub(super) fn make_folder(&self, relative: &Path) -> Result<(), String> {
        if relative.components().any(|c| !matches!(c, Component::Normal(_))) {
            return Err(format!("`{}` is not a relative path below the lab's folder", relative.display()));
        }
        let path = self.path(relative);
        let failed =
            |e: &dyn std::fmt::Display| format!("cannot make the lab's folder {}: {e}", path.display());
        fs::create_dir_all(&path).map_err(|e| failed(&e))?;
        if let Some((uid, gid)) = self.owner {
            chown(&path, Some(uid), Some(gid)).map_err(|e| failed(&e))?;
        }
        Ok(())
    }

    pub(super) fn write_all(&self, files: &[File]) -> Result<(), String> {
        for file in files {
            if let Some(folder) = file.path.parent() {
                self.make_folder(folder)?;
            }
            let path = self.path(&file.path);
            fs::write(&path, &file.contents).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        }
        Ok(())
    }

    /// A path to a program that the systems' user can read: a home folder may be closed to it.
    pub(super) fn expose(&mut self, program: &Path) -> Result<PathBuf, String> {
        // A bare name is searched on the lab's own PATH.
        let is_bare = program.components().count() == 1;
        if is_bare || PUBLIC.iter().any(|public| program.starts_with(public)) {
            return Ok(program.to_owned());
        }
        let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
            return Err(format!("`{}` is not the path of a program", program.display()));
        };
        if let Some(inside) = self.exposed.get(folder) {
            return Ok(inside.join(name));
        }
        let inside = PathBuf::from(format!("{}-programs/{}", SCRATCH, self.exposed.len()));
        let failed = |e: &dyn std::fmt::Display| format!("cannot mount {} in the lab: {e}", folder.display());
        fs::create_dir_all(&inside).map_err(|e| failed(&e))?;
        mount(Some(folder), &inside, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(|e| failed(&e))?;
        self.exposed.insert(folder.to_owned(), inside.clone());
        Ok(inside.join(name))
    }

    /// Removes the files of the last trial.
    pub(super) fn clear(&self) {
        let _ = fs::remove_dir_all(SCRATCH);
    }
}
