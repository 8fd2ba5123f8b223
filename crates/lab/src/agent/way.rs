//! The way to a program: each link on it, so that its own path leads to it in the view as outside.

use nix::errno::Errno;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows, path_resolution(7).
const MOST_LINKS: usize = 40;

/// See the module's documentation. No path in it passes a link, but for the last name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// Where the path ends: the place of a link, then what it refers to, and at last the file itself.
    pub(super) names: Vec<PathBuf>,
    /// Where each link is, and what it says.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Folders that are left by `..`.
    pub(super) left: Vec<PathBuf>,
}

impl Way {
    /// # Errors
    /// There is no such file, or a circle of links.
    pub(super) fn to(path: &Path) -> io::Result<Self> {
        let (mut way, mut here) = (Self::default(), PathBuf::from("/"));
        let mut rest: Vec<PathBuf> = parts(path);
        while let Some(part) = rest.pop() {
            if part == Path::new("..") {
                way.left.push(here.clone());
                here.pop();
                continue;
            }
            let next = here.join(part);
            if rest.is_empty() {
                way.names.push(next.clone());
            }
            let Ok(target) = fs::read_link(&next) else {
                here = next;
                continue;
            };
            if way.links.len() == MOST_LINKS {
                return Err(Errno::ELOOP.into());
            }
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            rest.extend(parts(&target));
            way.links.push((next, target));
        }
        here.metadata()?;
        Ok(way)
    }
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_of_folders_and_files_are_found_in_their_order_and_a_circle_is_an_error() {
        let folder = std::env::temp_dir().join(format!("linerate-way-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for part in ["v2/out", "bin", "alternatives"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        fs::write(folder.join("v2/out/server"), "").unwrap();
        symlink("v2", folder.join("current")).unwrap();
        symlink(folder.join("alternatives/server"), folder.join("bin/server")).unwrap();
        symlink("../current/out/server", folder.join("alternatives/server")).unwrap();
        symlink("circle", folder.join("circle")).unwrap();
        let way = Way::to(&folder.join("v2/../bin/./server")).unwrap();
        let circle = Way::to(&folder.join("circle"));
        let missing = Way::to(&folder.join("bin/nothing"));
        let canonical = folder.join("bin/server").canonicalize().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let [bin, alternatives, out] =
            ["bin/server", "alternatives/server", "v2/out/server"].map(|name| folder.join(name));
        assert_eq!(way.names, [bin.clone(), alternatives.clone(), out.clone()]);
        assert_eq!(canonical, out);
        let links = [
            (bin, alternatives.clone()),
            (alternatives, PathBuf::from("../current/out/server")),
            (folder.join("current"), PathBuf::from("v2")),
        ];
        assert_eq!(way.links, links);
        assert_eq!(way.left, [folder.join("v2"), folder.join("alternatives")]);
        assert_eq!(circle.unwrap_err().raw_os_error(), Some(Errno::ELOOP as i32));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
