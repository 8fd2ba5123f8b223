//! Programs of this machine and the user's folders: where they are, and their names as words of a shell.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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

/// Finds a program by name in the folders of a PATH.
pub fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let files = std::env::split_paths(path).map(|folder| folder.join(name));
    files.into_iter().find(|file| file.is_absolute() && is_program(file))
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

/// True for a folder in which a program is beside files of others: a home, a folder of homes, the root
/// folder, one around linerate's cache, and those that each process in the lab has of its own.
pub fn is_shared(folder: &Path) -> bool {
    let is_home = |homes: &Path| folder.parent() == Some(homes);
    SHARED.iter().any(|other| other.starts_with(folder)) || HOMES.iter().any(|homes| is_home(homes))
}

/// Folders with the homes of users who are not in passwd(5).
static HOMES: LazyLock<Vec<PathBuf>> = LazyLock::new(|| with_real(["/home".into()]));

/// The homes of all others, linerate's cache, and what each process has of its own.
static SHARED: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = users.lines().filter_map(|user| user.split(':').nth(5)).map(PathBuf::from);
    let of_each = ["/home", "/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from);
    with_real(homes.chain(of_each).chain([home(), cache()].into_iter().flatten()))
});

/// The folders, and where they are without links.
fn with_real(folders: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let both = |folder: PathBuf| [folder.canonicalize().ok(), Some(folder)];
    folders.into_iter().flat_map(both).flatten().collect()
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
    fn a_folder_of_a_program_is_told_from_those_with_files_of_others() {
        for shared in ["/", "/home", "/home/somebody", "/root", "/tmp", "/var", "/var/tmp"] {
            assert!(is_shared(Path::new(shared)), "{shared}");
        }
        for own in ["/home/somebody/project", "/tmp/build", "/srv/haproxy-3.2"] {
            assert!(!is_shared(Path::new(own)), "{own}");
        }
        let own = home().into_iter().chain(cache().and_then(|cache| Some(cache.parent()?.to_owned())));
        assert!(own.into_iter().all(|folder| is_shared(&folder)));
    }

    #[test]
    fn a_program_on_a_path_is_the_first_that_can_be_executed() {
        let found = on_path("sh", "relative:/nowhere:/etc:/bin:/usr/bin".as_ref());
        assert_eq!(found, Some(PathBuf::from("/bin/sh")));
        assert_eq!(on_path("passwd", "/etc".as_ref()), None);
    }

    #[test]
    fn existing_programs_are_found_and_others_are_not() {
        assert!(locate("sh").is_some());
        assert_eq!(locate("no-such-program-anywhere"), None);
    }
}
