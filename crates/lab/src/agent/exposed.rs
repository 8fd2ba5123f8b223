//! Programs outside of the system folders, such as those in a home: what the view of a process has of them.
//!
//! All of it is at its own path, so that a program finds there what it finds outside
//! (docs/decisions/safety.md).

use super::named::Named;
use super::process::PATH;
use super::view::Mount;
use super::way::Way;
use crate::SCRATCH;
use crate::program::{self, is_program, is_shared};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that every system may read and execute.
pub(super) const PUBLIC: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"];
/// Besides [`PUBLIC`].
pub(super) const READABLE: [&str; 2] = ["/etc", "/sys"];
/// A script's interpreter may be a script with an interpreter; the kernel follows no more.
const MOST_INTERPRETERS: u32 = 4;

/// Files that a process has besides the system folders.
#[derive(Debug, Default)]
pub(super) struct Grants {
    pub(super) mounts: Vec<Mount>,
    /// Where a link is, and what it refers to.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Folders that exist, and may be empty.
    pub(super) folders: Vec<PathBuf>,
    /// Searched for programs before [`PATH`].
    pub(super) path: Vec<PathBuf>,
}

impl Grants {
    /// Grants a program: read-only, the folder of each of its names, and what its file names.
    ///
    /// # Errors
    /// There is no such program.
    pub(super) fn program(&mut self, program: &Path) -> Result<(), String> {
        // A bare name is searched for on the lab's own PATH.
        let is_bare = program.components().count() == 1;
        if is_bare || program.starts_with(SCRATCH) {
            return Ok(());
        }
        self.with_interpreters(program, MOST_INTERPRETERS)
            .map_err(|e| format!("cannot start {}: {e}", program.display()))
    }

    /// As [`Self::program`] for an argument that is the path of a program, such as that of a launcher.
    pub(super) fn argument(&mut self, argument: &str) -> Result<(), String> {
        let path = Path::new(argument);
        if path.is_absolute() && is_program(path) { self.program(path) } else { Ok(()) }
    }

    fn with_interpreters(&mut self, program: &Path, depth: u32) -> std::io::Result<()> {
        let names = self.lead_to(program)?;
        for name in &names {
            self.beside(name);
            self.installation(name);
        }
        let Some(file) = names.last().filter(|_| depth > 0) else { return Ok(()) };
        let named = Named::by(file);
        for folder in &named.libraries {
            self.libraries(folder);
        }
        let on_path = named.on_path.and_then(|name| self.on_path(&name));
        for interpreter in named.interpreters.iter().chain(&on_path) {
            // Without it the program does not start, and says why.
            let _ = self.with_interpreters(interpreter, depth - 1);
        }
        Ok(())
    }

    /// Grants the links on the way to a path; returns its names.
    fn lead_to(&mut self, path: &Path) -> std::io::Result<Vec<PathBuf>> {
        let way = Way::to(path)?;
        self.links.extend(way.links.into_iter().filter(|(link, _)| !is_public(link)));
        self.folders.extend(way.left.into_iter().filter(|folder| !is_public(folder)));
        Ok(way.names)
    }

    /// Grants the folder of a program; the program alone where files of others are beside it.
    fn beside(&mut self, name: &Path) {
        match name.parent() {
            Some(folder) if !is_shared(folder) => self.read(folder),
            // A link is made by itself.
            _ if !name.is_symlink() => self.read(name),
            _ => {}
        }
    }

    /// Grants the installation of a program in `bin` of a home, such as pyenv's or nvm's: interpreters look
    /// for their libraries there.
    fn installation(&mut self, program: &Path) {
        let is_of_programs =
            |folder: &&Path| ["bin", "sbin", "shims"].iter().any(|bin| folder.ends_with(bin));
        let Some(prefix) = program.parent().filter(is_of_programs).and_then(Path::parent) else { return };
        // The home and `~/.local` have files of all other programs too.
        let is_local = prefix.ends_with(".local") && prefix.parent().is_some_and(is_shared);
        if is_shared(prefix) || is_local {
            let parts = ["bin", "lib"].map(|part| prefix.join(part));
            parts.iter().filter(|part| part.is_dir()).for_each(|part| self.read(part));
        } else {
            self.read(prefix);
        }
    }

    /// Grants a folder of shared libraries that a program names.
    fn libraries(&mut self, folder: &Path) {
        let is_library = |entry: fs::DirEntry| entry.file_name().to_string_lossy().contains(".so");
        let has_some = fs::read_dir(folder).is_ok_and(|mut all| all.any(|entry| entry.is_ok_and(is_library)));
        if let Ok(names) = self.lead_to(folder)
            && let Some(real) = names.last().filter(|real| has_some && !is_shared(real))
        {
            self.read(real);
        }
    }

    /// The program that `env` finds outside of the lab, which it then finds inside as well.
    fn on_path(&mut self, name: &str) -> Option<PathBuf> {
        let found = program::on_path(name, &std::env::var_os("PATH")?)?;
        if program::on_path(name, PATH.as_ref()).as_ref() != Some(&found) {
            self.path.extend(found.parent().map(Path::to_owned));
        }
        Some(found)
    }

    /// True if the view has all that a path leads to, if that is there at all.
    pub(super) fn show(&self, path: &Path) -> bool {
        let is_granted = |place: &Path| {
            is_public(place)
                || self.links.iter().any(|(link, _)| link == place)
                || self.mounts.iter().any(|mount| place.starts_with(&mount.at))
        };
        let Ok(way) = Way::to(path) else { return true };
        let file = way.names.last().map(PathBuf::as_path);
        way.links.iter().map(|(link, _)| link.as_path()).chain(file).all(is_granted)
    }

    fn read(&mut self, path: &Path) {
        let has = |mount: &Mount| mount.source == mount.at && path.starts_with(&mount.at);
        if !is_public(path) && !self.mounts.iter().any(has) {
            self.mounts.push(Mount::reading(path.to_owned(), path.to_owned()));
        }
    }
}

fn is_public(path: &Path) -> bool {
    let mut folders = PUBLIC.iter().chain(&READABLE);
    folders.any(|public| path.starts_with(public)) && !hidden().any(|folder| path.starts_with(folder))
}

/// The home and the cache, where they are inside of a system folder.
pub(super) fn hidden() -> impl Iterator<Item = PathBuf> {
    let is_inside = |folder: &PathBuf| {
        ["/opt", "/usr/local"].iter().any(|public| folder.starts_with(public) && folder != Path::new(public))
    };
    [program::home(), program::cache()].into_iter().flatten().filter(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

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

    fn granted(program: &Path) -> Grants {
        let mut grants = Grants::default();
        grants.program(program).unwrap();
        assert!(grants.mounts.iter().all(|mount| !mount.writable && mount.source == mount.at), "{grants:?}");
        grants
    }

    fn read(grants: &Grants) -> Vec<&Path> {
        grants.mounts.iter().map(|mount| mount.at.as_path()).collect()
    }

    #[test]
    fn system_programs_need_no_grant_and_others_get_their_folder_at_its_own_path() {
        let build = folder("build", &[("out put/server", "")]);
        for program in ["nginx", "/usr/sbin/nginx", "/bin/sh", "/run/linerate/server/start"] {
            let mut grants = Grants::default();
            grants.program(Path::new(program)).unwrap_or_default();
            assert!(grants.mounts.is_empty() && grants.links.is_empty(), "{program}: {grants:?}");
        }
        let server = build.join("out put/server");
        assert_eq!(read(&granted(&server)), [build.join("out put")]);
        let mut launcher = Grants::default();
        for argument in ["--config", "/etc/passwd", server.to_str().unwrap()] {
            launcher.argument(argument).unwrap();
        }
        assert_eq!(read(&launcher), [build.join("out put")]);
        let missing = Grants::default().program(&build.join("other")).unwrap_err();
        assert!(missing.contains("cannot start") && missing.contains("other"), "{missing}");
        fs::remove_dir_all(build).unwrap();
    }

    #[test]
    fn a_link_brings_the_folders_of_all_its_names_and_links_of_folders_on_the_way() {
        let folder = folder("links", &[("v2/bin/server", ""), ("v2/lib/libx.so", ""), ("names/other", "")]);
        symlink("v2", folder.join("current")).unwrap();
        symlink("../current/bin/server", folder.join("names/server")).unwrap();
        let grants = granted(&folder.join("names/server"));
        // An installation is there as a whole.
        assert_eq!(read(&grants), ["names", "v2/bin", "v2"].map(|name| folder.join(name)));
        assert!(grants.links.contains(&(folder.join("current"), "v2".into())), "{grants:?}");
        assert_eq!(grants.folders, [folder.join("names")]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_interpreter_in_a_home_brings_its_installation_also_that_of_a_virtual_environment() {
        let folder = folder("pyenv", &[("versions/3/bin/python3", ""), ("venv/bin/activate", "")]);
        let python = folder.join("versions/3/bin/python3");
        symlink(&python, folder.join("venv/bin/python")).unwrap();
        let script = folder.join("app/run");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        for (interpreter, expected) in [
            (python, &["app", "versions/3/bin", "versions/3"][..]),
            (folder.join("venv/bin/python"), &["app", "venv/bin", "venv", "versions/3/bin", "versions/3"]),
        ] {
            fs::write(&script, format!("#!{} -u\nprint()\n", interpreter.display())).unwrap();
            let expected: Vec<PathBuf> = expected.iter().map(|name| folder.join(name)).collect();
            assert_eq!(read(&granted(&script)), expected, "{interpreter:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_env_finds_outside_is_found_in_the_lab_before_the_system_folders() {
        let folder = folder("env", &[("app/run", "#!/usr/bin/env sh\n")]);
        let grants = granted(&folder.join("app/run"));
        let outside = program::on_path("sh", &std::env::var_os("PATH").unwrap()).unwrap();
        let inside = program::on_path("sh", PATH.as_ref()).unwrap();
        let expected = (outside != inside).then(|| outside.parent().unwrap().to_owned());
        assert_eq!(grants.path, Vec::from_iter(expected));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn folders_of_libraries_that_a_program_names_are_there() {
        let folder = folder("libraries", &[("app/main.c", "int main(void) { return 0; }\n")]);
        for (name, file) in [("lib", "libx.so.1"), ("secret", "key")] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join(file), "").unwrap();
        }
        let paths = format!("-Wl,-rpath,$ORIGIN/../lib:{0}/secret:{0}", folder.display());
        let mut compile = Command::new("cc");
        compile.args([&paths, "-o", "server", "main.c"]).current_dir(folder.join("app"));
        if compile.status().is_ok_and(|status| status.success()) {
            let grants = granted(&folder.join("app/server"));
            assert_eq!(read(&grants), [folder.join("app"), folder.join("lib")]);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_program_beside_files_of_others_is_granted_alone() {
        let home = program::home().unwrap_or_else(|| "/root".into());
        let mut grants = Grants::default();
        for program in ["server", "bin/server", ".local/bin/server"].map(|name| home.join(name)) {
            grants.beside(&program);
            grants.installation(&program);
        }
        let all = read(&grants);
        assert!(all.contains(&home.join("server").as_path()), "{all:?}");
        assert!(!all.contains(&home.as_path()) && !all.contains(&home.join(".local").as_path()), "{all:?}");
    }
}
