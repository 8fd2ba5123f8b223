//! The lab's scratch folder, on a tmpfs of the lab's mount namespace that ends with it.

use super::namespaces::Privileges;
use crate::lab::SCRATCH;
use crate::lab::protocol::File;
use crate::system::probe::is_program;
use nix::mount::{MsFlags, mount};
use nix::unistd::{Gid, Uid, chown};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
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
        let is_public = |path: &Path| PUBLIC.iter().any(|public| path.starts_with(public));
        if is_bare || is_public(program) {
            return Ok(program.to_owned());
        }
        let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
            return Err(format!("`{}` is not the path of a program", program.display()));
        };
        if let Some(inside) = self.exposed.get(folder) {
            return Ok(inside.join(name));
        }
        let failed = |e: &dyn std::fmt::Display| format!("cannot mount {} in the lab: {e}", folder.display());
        let real = program.canonicalize().map_err(|e| failed(&e))?;
        let is_elsewhere = program.is_symlink() && !is_public(&real) && !real.starts_with(folder);
        let target = if is_elsewhere { Some(self.expose(&real)?) } else { None };
        let inside = PathBuf::from(format!("{}-programs/{}", SCRATCH, self.exposed.len()));
        fs::create_dir_all(&inside).map_err(|e| failed(&e))?;
        match target {
            // The name of an arm of a comparison: what it refers to may be in a closed folder too.
            Some(target) => symlink(target, inside.join(name)).map_err(|e| failed(&e))?,
            None => mount(Some(folder), &inside, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .map_err(|e| failed(&e))?,
        }
        self.exposed.insert(folder.to_owned(), inside.clone());
        Ok(inside.join(name))
    }

    /// As [`Self::expose`] for an argument that is the path of a program, such as that of a launcher.
    pub(super) fn expose_argument(&mut self, argument: &str) -> Result<String, String> {
        let path = Path::new(argument);
        if path.is_absolute() && !path.starts_with(SCRATCH) && is_program(path) {
            Ok(self.expose(path)?.display().to_string())
        } else {
            Ok(argument.to_owned())
        }
    }

    /// Removes the files of the last trial.
    pub(super) fn clear(&self) {
        let _ = fs::remove_dir_all(SCRATCH);
    }
}
