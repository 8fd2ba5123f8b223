//! The text files of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that git tracks, with its path from the root.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|name| name.to_str()).unwrap_or_default()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines()
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All but published runs, golden output, snapshots (made by code) and lock files.
pub(crate) fn text_files() -> Vec<TextFile> {
    let root = root();
    let paths = tracked(&root).unwrap_or_else(|| walk(&root));
    let is_own = |path: &String| {
        let made = ["/snapshots/", "/golden/"].iter().any(|folder| path.contains(folder));
        let published = path.starts_with("results/") && path != "results/README.md";
        !made && !published && !path.ends_with(".lock") && !path.ends_with("go.sum")
    };
    let read = |path: String| fs::read_to_string(root.join(&path)).ok().map(|text| TextFile { path, text });
    let files: Vec<_> = paths.into_iter().filter(is_own).filter_map(read).collect();
    assert!(files.len() > 100, "only {} text files were found below {}", files.len(), root.display());
    files
}

/// The paths of what git tracks; `None` without git.
pub(crate) fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<_> = names.split_terminator('\0').map(String::from).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

/// Without git: everything but hidden and built files.
fn walk(root: &Path) -> Vec<String> {
    let mut folders = vec![PathBuf::new()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if name.starts_with('.') && name != ".ci" || name == "target" {
                continue;
            }
            let path = folder.join(name);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                paths.push(path.to_string_lossy().into_owned());
            }
        }
    }
    paths
}
