//! The mounts of a process: `/proc/self/mountinfo`, proc_pid_mountinfo(5).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File systems that show the kernel's state and contain no files of users.
const OF_KERNEL: [&str; 19] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// Folders that a view has anew, or from the lab.
const REPLACED: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) path: PathBuf,
    kind: String,
    pub(super) is_writable: bool,
}

impl Mounted {
    /// The mount contains files, is not the root folder, and can be reached.
    pub(super) fn is_of_user(&self) -> bool {
        self.path != Path::new("/")
            && !OF_KERNEL.contains(&&*self.kind)
            && !REPLACED.iter().any(|folder| self.path.starts_with(folder))
            && self.path.exists()
    }
}

/// All mounts, those above before those below; of several at one place the last.
pub(super) fn mounts() -> io::Result<Vec<Mounted>> {
    Ok(parse(&fs::read_to_string("/proc/self/mountinfo")?))
}

fn parse(text: &str) -> Vec<Mounted> {
    let mut all: Vec<Mounted> = Vec::new();
    for line in text.lines() {
        // id parent major:minor root PLACE OPTIONS [tags] - TYPE source options
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let mut fields = before.split(' ').skip(4);
        let (Some(place), Some(options)) = (fields.next(), fields.next()) else { continue };
        let mut of_type = after.split(' ');
        let (kind, of_super) = (of_type.next().unwrap_or_default(), of_type.next_back().unwrap_or_default());
        let is_writable = ![options, of_super].iter().any(|all| all.split(',').any(|one| one == "ro"));
        let path = PathBuf::from(unescaped(place));
        all.retain(|other| other.path != path);
        all.push(Mounted { path, kind: kind.to_owned(), is_writable });
    }
    all.sort_by_key(|mounted| mounted.path.components().count());
    all
}

/// A blank is `\040`.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, sign)| text.replace(code, sign))
}

/// A path in the options of an overlay, where some characters have a meaning.
pub(super) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        if matches!(c, '\\' | ':' | ',') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_have_places_types_and_rights_and_the_last_one_of_a_place_counts() {
        let text = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                    40 27 0:9 / /a\\040b ro,nosuid shared:1 - xfs /dev/vdb rw\n\
                    41 27 0:8 / /a\\040b/c rw - tmpfs x rw,size=4k\n\
                    42 27 0:8 / /a\\040b rw - ext4 /dev/vdc ro\n";
        let all = parse(text);
        let seen: Vec<_> =
            all.iter().map(|one| (one.path.to_str().unwrap(), &*one.kind, one.is_writable)).collect();
        assert_eq!(seen, [("/", "ext4", true), ("/a b", "ext4", false), ("/a b/c", "tmpfs", true)]);
    }

    #[test]
    fn the_kernels_file_systems_are_not_the_users() {
        let of = |path: &str, kind: &str| {
            Mounted { path: path.into(), kind: kind.into(), is_writable: true }.is_of_user()
        };
        assert!(of("/usr", "ext4") && !of("/", "ext4") && !of("/usr", "cgroup2"));
        assert!(!of("/dev/shm", "tmpfs") && !of("/no/such/folder", "ext4"));
    }

    #[test]
    fn a_path_with_signs_of_mount_options_is_one_path() {
        assert_eq!(escaped(Path::new("/a:b,c\\d")), "/a\\:b\\,c\\\\d");
    }
}
