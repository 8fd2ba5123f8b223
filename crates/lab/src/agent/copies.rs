//! A copy of a folder, within limits.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::Path;

/// The room that is left for copies.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) bytes: u64,
    pub(super) entries: u32,
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
        copy(&from, &to, &mut left).unwrap();
        assert_eq!((left.bytes, left.entries), (0, 0));
        assert_eq!(fs::read_to_string(to.join("link")).unwrap().len(), 100);
        let [was, is] = [&from, &to].map(|folder| fs::metadata(folder.join("deep/er/run")).unwrap());
        assert_eq!(is.permissions().mode() & 0o777, 0o755);
        assert_eq!(is.modified().unwrap(), was.modified().unwrap());
        let error = copy(&from, &small, &mut Left { bytes: 99, entries: 4 }).unwrap_err();
        assert_eq!(error.to_string(), "it has too much to be copied");
        fs::remove_dir_all(folder).unwrap();
    }
}
