//! Programs of this machine and the user's folders: where they are, and their names as words of a shell.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folders of programs that are not on a normal user's `PATH`.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Finds a program by name, in linerate's own folder, on `PATH` and in system folders; or a file by its path.
pub fn locate(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        beside.into_iter().chain(std::env::split_paths(&path)).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// True for a file that is executable.
pub fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The user's home folder.
pub fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    (home.is_absolute() && home.parent().is_some()).then_some(home)
}

/// linerate's cache folder: builds, trial times, and linerate itself on other hosts (XDG Base Directory 0.8).
pub fn cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("linerate"))
}

/// One word of a POSIX shell, whatever it contains.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_programs_are_found_and_others_are_not() {
        assert!(locate("sh").is_some());
        assert_eq!(locate("no-such-program-anywhere"), None);
    }
}
