//! Programs outside of the system folders, such as those in a home: where a system finds them.

use super::view::Mount;
use crate::SCRATCH;
use crate::program::{self, is_program};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Folders that every system may read and execute.
pub(super) const PUBLIC: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"];
/// Inside of [`SCRATCH`]'s parent, a folder for each that is exposed.
const PROGRAMS: &str = "/run/linerate-programs";

/// The numbers of exposed folders, for the whole life of the lab: arguments of later processes name them.
#[derive(Debug, Default)]
pub(super) struct Exposed {
    numbers: BTreeMap<PathBuf, usize>,
}

/// What a process has besides the system folders.
#[derive(Debug, Default)]
pub(super) struct Grants {
    pub(super) mounts: Vec<Mount>,
    /// Where a link is, and what it refers to.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Exposed {
    /// The path of a program for a process that gets these grants: its folder, read-only, and no other.
    pub(super) fn expose(&mut self, program: &Path, grants: &mut Grants) -> Result<PathBuf, String> {
        // A bare name is searched on the lab's own PATH.
        let is_bare = program.components().count() == 1;
        if is_bare || is_public(program) {
            return Ok(program.to_owned());
        }
        let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
            return Err(format!("`{}` is not the path of a program", program.display()));
        };
        let failed = |e: std::io::Error| format!("cannot start {}: {e}", program.display());
        let real = program.canonicalize().map_err(failed)?;
        // The name of an arm of a comparison: what it refers to may be in another folder.
        let is_elsewhere = program.is_symlink() && !real.starts_with(folder);
        // Beside a program in a home itself is all that the user has.
        let is_alone = is_elsewhere || program::home().is_some_and(|home| home.starts_with(folder));
        let exposed = if is_alone { program } else { folder };
        let next = self.numbers.len();
        let number = *self.numbers.entry(exposed.to_owned()).or_insert(next);
        let inside = PathBuf::from(format!("{PROGRAMS}/{number}"));
        if is_elsewhere {
            let target = self.expose(&real, grants)?;
            grants.link(inside.join(name), target);
        } else {
            let at = if is_alone { inside.join(name) } else { inside.clone() };
            grants.mount(Mount::reading(exposed.to_owned(), at));
        }
        for needed in [Some(real.clone()), interpreter(&real)].into_iter().flatten() {
            grants.installation(&needed);
        }
        Ok(inside.join(name))
    }

    /// As [`Self::expose`] for an argument that is the path of a program, such as that of a launcher.
    pub(super) fn expose_argument(&mut self, argument: &str, grants: &mut Grants) -> Result<String, String> {
        let path = Path::new(argument);
        if path.is_absolute() && !path.starts_with(SCRATCH) && is_program(path) {
            Ok(self.expose(path, grants)?.display().to_string())
        } else {
            Ok(argument.to_owned())
        }
    }
}

impl Grants {
    fn mount(&mut self, mount: Mount) {
        if !self.mounts.contains(&mount) {
            self.mounts.push(mount);
        }
    }

    fn link(&mut self, at: PathBuf, target: PathBuf) {
        if !self.links.iter().any(|(other, _)| *other == at) {
            self.links.push((at, target));
        }
    }

    /// Grants the installation of a program in `bin` of a home, such as pyenv's or nvm's, at its own path:
    /// interpreters look for their libraries there.
    fn installation(&mut self, program: &Path) {
        let bin = program.parent().filter(|folder| folder.ends_with("bin") && !is_public(folder));
        let Some(prefix) = bin.and_then(Path::parent) else { return };
        let home = program::home().unwrap_or_default();
        // The home and `~/.local` have files of all other programs too.
        if home.starts_with(prefix) || prefix == home.join(".local") {
            for part in ["bin", "lib"].map(|part| prefix.join(part)).into_iter().filter(|part| part.is_dir())
            {
                self.mount(Mount::reading(part.clone(), part));
            }
        } else {
            self.mount(Mount::reading(prefix.to_owned(), prefix.to_owned()));
        }
    }
}

fn is_public(path: &Path) -> bool {
    PUBLIC.iter().any(|public| path.starts_with(public)) && !hidden().any(|folder| path.starts_with(folder))
}

/// The home and the cache, where they are inside of a system folder.
pub(super) fn hidden() -> impl Iterator<Item = PathBuf> {
    let is_inside = |folder: &PathBuf| {
        ["/opt", "/usr/local"].iter().any(|public| folder.starts_with(public) && folder != Path::new(public))
    };
    [program::home(), program::cache()].into_iter().flatten().filter(is_inside)
}

/// The program in the first line of a script, with links resolved.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    std::fs::File::open(script).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let program = str::from_utf8(line).ok()?.split_whitespace().next()?;
    Path::new(program).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder of this test with an executable in it for each name.
    fn folder(name: &str, programs: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("linerate-exposed-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for (program, text) in programs {
            let path = folder.join(program);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn sources(grants: &Grants) -> Vec<&Path> {
        grants.mounts.iter().map(|mount| mount.source.as_path()).collect()
    }

    #[test]
    fn system_programs_need_no_grant_and_others_get_their_folder() {
        let build = folder("build", &[("out/server", "")]);
        let (mut exposed, mut grants) = (Exposed::default(), Grants::default());
        for program in ["nginx", "/usr/sbin/nginx", "/bin/sh"] {
            assert_eq!(exposed.expose(Path::new(program), &mut grants).unwrap(), Path::new(program));
        }
        assert!(grants.mounts.is_empty());
        let server = build.join("out/server");
        let inside = exposed.expose(&server, &mut grants).unwrap();
        assert_eq!(
            exposed.expose_argument(server.to_str().unwrap(), &mut grants).unwrap(),
            inside.to_str().unwrap()
        );
        assert_eq!(sources(&grants), [build.join("out")]);
        assert!(grants.mounts.iter().all(|mount| !mount.writable));
        // The same path for a later process, whose grants are its own.
        let mut later = Grants::default();
        assert_eq!(exposed.expose(&server, &mut later).unwrap(), inside);
        assert_eq!(sources(&later), [build.join("out")]);
        fs::remove_dir_all(build).unwrap();
    }

    #[test]
    fn the_name_of_an_arm_is_a_link_and_the_folder_that_has_it_is_not_granted() {
        let folder = folder("arm", &[("real/server", ""), ("arms/other", "")]);
        symlink("../real/server", folder.join("arms/base")).unwrap();
        let (mut exposed, mut grants) = (Exposed::default(), Grants::default());
        let inside = exposed.expose(&folder.join("arms/base"), &mut grants).unwrap();
        assert!(inside.ends_with("base"));
        assert_eq!(sources(&grants), [folder.join("real")]);
        assert_eq!(grants.links.len(), 1);
        assert_eq!(grants.links[0].0, inside);
        assert!(grants.links[0].1.ends_with("server"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_interpreter_in_a_home_brings_its_installation_at_its_own_path() {
        let folder = folder("pyenv", &[("versions/3/bin/python3", "")]);
        let python = folder.join("versions/3/bin/python3");
        let script = folder.join("app/run");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(&script, format!("#!{} -u\nprint()\n", python.display())).unwrap();
        let mut grants = Grants::default();
        Exposed::default().expose(&script, &mut grants).unwrap();
        let prefix = folder.join("versions/3");
        assert!(grants.mounts.contains(&Mount::reading(prefix.clone(), prefix)), "{grants:?}");
        assert_eq!(sources(&grants)[0], folder.join("app"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_program_in_the_home_itself_is_granted_alone() {
        let Some(home) = program::home() else { return };
        let mut grants = Grants::default();
        grants.installation(&home.join("bin/program"));
        grants.installation(&home.join(".local/bin/program"));
        assert!(!sources(&grants).contains(&home.as_path()), "{grants:?}");
        assert!(!sources(&grants).contains(&home.join(".local").as_path()), "{grants:?}");
    }
}
