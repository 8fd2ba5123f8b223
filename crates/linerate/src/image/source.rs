//! An image as a folder with its files: that of an OCI layout, or what an archive contains.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// The beginnings of images' names.
pub(super) const KINDS: [&str; 3] = ["image:", "oci:", "docker-archive:"];
/// An archive has fewer files, as images have fewer layers, and fewer bytes than a disk should lose.
const MOST_FILES: usize = 10_000;
pub(super) const MOST_BYTES: u64 = 32 << 30;

/// The folder of an image's files, and the tag that is meant, if there may be several.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) folder: PathBuf,
    pub(super) tag: Option<String>,
    /// Removed at the end: what an archive contained.
    is_temporary: bool,
}

impl Drop for Source {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Finds an image by its whole name. `images` is the folder for what is unpacked.
pub(super) fn find(name: &str, folder: &Path, images: &Path) -> Result<Source, String> {
    let (kind, name) = name.split_once(':').unwrap_or(("", name));
    match kind {
        "oci" => {
            let whole = folder.join(name);
            let (path, tag) = match name.rsplit_once(':') {
                Some((path, tag)) if !whole.exists() => (folder.join(path), Some(tag.to_owned())),
                _ => (whole, None),
            };
            if path.is_file() {
                archive(&path, tag, images)
            } else {
                Ok(Source { folder: path, tag, is_temporary: false })
            }
        }
        "docker-archive" => archive(&folder.join(name), None, images),
        _ => exported(name, images),
    }
}

/// Unpacks an archive of files.
fn archive(path: &Path, tag: Option<String>, images: &Path) -> Result<Source, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let folder =
        images.join(format!(".archive-{}-{}", std::process::id(), tag.as_deref().unwrap_or_default().len()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(failed)?;
    let source = Source { folder, tag, is_temporary: true };
    let mut all = tar::Archive::new(File::open(path).map_err(failed)?);
    let mut bytes = 0;
    for (number, entry) in all.entries().map_err(failed)?.enumerate() {
        let entry = entry.map_err(failed)?;
        bytes += entry.size();
        if number >= MOST_FILES || bytes > MOST_BYTES {
            return Err(format!("{}: more than {MOST_FILES} files or {MOST_BYTES} bytes", path.display()));
        }
        let kind = entry.header().entry_type();
        let name = entry.path().map_err(failed)?.into_owned();
        let is_plain = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_plain || !(kind.is_file() || kind.is_symlink()) {
            continue;
        }
        let place = source.folder.join(&name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        if kind.is_symlink() {
            // `docker save` had links between layers that are the same: what they refer to is copied.
            let target = entry.link_name().map_err(failed)?.unwrap_or_default().into_owned();
            let target = name.parent().unwrap_or(Path::new("")).join(target);
            let inside = normal(&target).map(|target| source.folder.join(target));
            if let Some(inside) = inside.filter(|inside| inside.is_file()) {
                fs::copy(inside, &place).map_err(failed)?;
            }
            continue;
        }
        let size = entry.size();
        std::io::copy(&mut entry.take(size), &mut File::create(&place).map_err(failed)?).map_err(failed)?;
    }
    Ok(source)
}

/// Without `..`; `None` if that leads out.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir if normal.pop() => {}
            _ => return None,
        }
    }
    Some(normal)
}

/// The image by the first engine that has it.
fn exported(name: &str, images: &Path) -> Result<Source, String> {
    fs::create_dir_all(images).map_err(|e| format!("{}: {e}", images.display()))?;
    let file = images.join(format!(".export-{}.tar", std::process::id()));
    let to = file.display().to_string();
    let of_skopeo = [format!("containers-storage:{name}"), format!("docker-archive:{to}")];
    let ways: [(&str, &[&str]); 3] = [
        ("docker", &["image", "save", "-o", &to, name]),
        ("podman", &["image", "save", "--format", "docker-archive", "-o", &to, name]),
        ("skopeo", &["copy", &of_skopeo[0], &of_skopeo[1]]),
    ];
    let mut reasons = Vec::new();
    for (engine, arguments) in ways {
        let _ = fs::remove_file(&file);
        let run = Command::new(engine).args(arguments).stdin(Stdio::null()).output();
        match run {
            Ok(output) if output.status.success() => {
                let source = archive(&file, None, images);
                let _ = fs::remove_file(&file);
                return source;
            }
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                reasons.push(format!("{engine}: {}", text.lines().last().unwrap_or("it failed")));
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                reasons.push(format!("{engine}: not installed"))
            }
            Err(e) => reasons.push(format!("{engine}: {e}")),
        }
    }
    let _ = fs::remove_file(&file);
    Err(format!(
        "no engine has this image ({}): build or pull it, or give its files: docker-archive:FILE or oci:DIR",
        reasons.join("; ")
    ))
}
