//! A copy of a folder, within limits.

use nix::unistd::{AccessFlags, access};
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::Path;

/// The room that is left for copies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub(super) bytes: u64,
    pub(super) entries: u32,
}

/// The room that is left after a copy of a folder; `None` if there is not enough, if the folder has a socket,
/// a pipe, a device or a file that cannot be read, or if another file system is mounted in it.
pub(super) fn after(from: &Path, mut left: Left) -> Option<Left> {
    let of_folder = from.metadata().ok()?;
    for entry in fs::read_dir(from).ok()? {
        let path = entry.ok()?.path();
        let found = path.symlink_metadata().ok()?;
        left.entries = left.entries.checked_sub(1)?;
        if found.dev() != of_folder.dev() {
            return None;
        } else if found.is_dir() {
            left = after(&path, left)?;
        } else if found.is_file() {
            left.bytes = left.bytes.checked_sub(found.len())?;
            access(&path, AccessFlags::R_OK).ok()?;
        } else if !found.is_symlink() {
            return None;
        }
    }
    Some(left)
}

/// Copies what a folder has into one that is there: files, folders and links, with their modes and times and,
/// where the kernel lets it, their owners. A file that cannot be read is left out, as it is for the server.
///
/// # Errors
/// There is more than `left`, or no room.
pub(super) fn copy(from: &Path, to: &Path, left: &mut Left) -> io::Result<()> {
    let of_folder = from.metadata()?;
    for entry in fs::read_dir(from)?.flatten() {
        let (path, at) = (entry.path(), to.join(entry.file_name()));
        let found = path.symlink_metadata()?;
        let size = if found.is_file() { found.len() } else { 0 };
        let too_much = || io::Error::other("it has too much to be copied");
        left.bytes = left.bytes.checked_sub(size).ok_or_else(too_much)?;
        left.entries = left.entries.checked_sub(1).ok_or_else(too_much)?;
        if found.is_symlink() {
            symlink(fs::read_link(&path)?, &at)?;
        } else if found.is_dir() {
            fs::create_dir(&at)?;
            copy(&path, &at, left)?;
        } else if found.is_file() {
            match fs::copy(&path, &at) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                copied => copied?,
            };
            let times = FileTimes::new().set_modified(found.modified()?);
            let _ = File::open(&at).and_then(|file| file.set_times(times));
        } else {
            continue;
        }
        let _ = lchown(&at, Some(found.uid()), Some(found.gid()));
    }
    let _ = chown(to, Some(of_folder.uid()), Some(of_folder.gid()));
    fs::set_permissions(to, of_folder.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_copy_has_files_folders_links_and_modes_up_to_its_limit() {
        let folder = std::env::temp_dir().join(format!("linerate-copy-{}", std::process::id()));
        let [from, to, small] = ["from", "to", "small"].map(|name| folder.join(name));
        fs::create_dir_all(from.join("deep/er")).unwrap();
        [&to, &small].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        fs::write(from.join("deep/er/run"), "x".repeat(100)).unwrap();
        fs::set_permissions(from.join("deep/er/run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("deep/er/run", from.join("link")).unwrap();
        let mut left = Left { bytes: 100, entries: 4 };
        assert!(after(&from, left).is_some_and(|left| (left.bytes, left.entries) == (0, 0)));
        assert!(after(&from, Left { bytes: 99, ..left }).is_none());
        assert!(after(&from, Left { entries: 3, ..left }).is_none());
        copy(&from, &to, &mut left).unwrap();
        assert_eq!((left.bytes, left.entries), (0, 0));
        assert_eq!(fs::read_to_string(to.join("link")).unwrap().len(), 100);
        let [was, is] = [&from, &to].map(|folder| fs::metadata(folder.join("deep/er/run")).unwrap());
        assert_eq!(is.permissions().mode() & 0o777, 0o755);
        assert_eq!(is.modified().unwrap(), was.modified().unwrap());
        let error = copy(&from, &small, &mut Left { bytes: 99, entries: 4 }).unwrap_err();
        assert_eq!(error.to_string(), "it has too much to be copied");
        let _socket = UnixListener::bind(from.join("deep/socket")).unwrap();
        assert!(after(&from, Left { bytes: 1000, entries: 10 }).is_none());
        fs::remove_dir_all(folder).unwrap();
    }
}
