//! The layers of an image as one folder. Nothing is written outside of it: each step is made from the folder
//! of the image, in which links lead to places in it, as they do for its program.

use super::manifest::{Manifest, hex};
use super::source::MOST_BYTES;
use flate2::read::MultiGzDecoder;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fchownat, geteuid, linkat, symlinkat, unlinkat};
use ring::digest::{Context, SHA256};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A file with such a name removes one of the layers below, or all that they have in its folder.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Entries of all layers.
const MOST_ENTRIES: usize = 4_000_000;
/// Names that every program of a network looks up.
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";

/// Unpacks all layers into a folder.
pub(super) fn unpack(manifest: &Manifest, folder: &Path) -> Result<(), String> {
    let root = Root::open(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (mut bytes, mut entries) = (0, 0);
    for (path, digest) in &manifest.layers {
        let failed = |e: io::Error| format!("{}: {e}", path.display());
        let mut layer = Checked { layer: content(path).map_err(failed)?, context: Context::new(&SHA256) };
        let mut archive = tar::Archive::new(&mut layer);
        let mut made = BTreeSet::new();
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            (bytes, entries) = (bytes + entry.size(), entries + 1);
            if bytes > MOST_BYTES || entries > MOST_ENTRIES {
                return Err(format!("more than {MOST_BYTES} bytes or {MOST_ENTRIES} files"));
            }
            let name = entry.path().map_err(failed)?.into_owned();
            root.add(&mut entry, &mut made)
                .map_err(|e| format!("{}: {}: {e}", path.display(), name.display()))?;
        }
        io::copy(&mut layer, &mut io::sink()).map_err(failed)?;
        let found = format!("sha256:{}", hex(layer.context.finish().as_ref()));
        if found != *digest {
            return Err(format!("{} is damaged: its digest is {found}, not {digest}", path.display()));
        }
    }
    if root.file(Path::new("/etc/hosts")).is_err() {
        let _ = root
            .folder(Path::new("etc"))
            .and_then(|etc| root.write(&etc, OsStr::new("hosts"), &mut HOSTS.as_bytes()));
    }
    Ok(())
}

/// A layer without compression.
fn content(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut start = [0; 4];
    let n = File::open(path)?.read(&mut start)?;
    let file = BufReader::new(File::open(path)?);
    match &start[..n] {
        [0x1f, 0x8b, ..] => Ok(Box::new(MultiGzDecoder::new(file))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(file);
            Ok(Box::new(decoder.map_err(io::Error::other)?))
        }
        _ => Ok(Box::new(file)),
    }
}

/// A reader whose bytes count for a digest.
struct Checked<R> {
    layer: R,
    context: Context,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.layer.read(buffer)?;
        self.context.update(&buffer[..n]);
        Ok(n)
    }
}

/// The folder of an image, from outside.
pub(super) struct Root(OwnedFd);

impl Root {
    pub(super) fn open(folder: &Path) -> nix::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self(open(folder, flags, Mode::empty())?))
    }

    fn at(&self, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_IN_ROOT);
        openat2(&self.0, path, how)
    }

    /// A file to read.
    pub(super) fn file(&self, path: &Path) -> nix::Result<File> {
        self.at(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK).map(File::from)
    }

    /// A folder, which is made with those above it.
    fn folder(&self, path: &Path) -> nix::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match (self.at(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY), path.parent(), path.file_name()) {
            (Err(Errno::ENOENT), Some(parent), Some(name)) => {
                mkdirat(&self.folder(parent)?, name, Mode::from_bits_truncate(0o755))?;
                self.at(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
            }
            (found, ..) => found,
        }
    }

    /// Adds an entry of a layer; `made`: what this layer has already.
    fn add(&self, entry: &mut tar::Entry<'_, impl Read>, made: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        let named = entry.path()?.into_owned();
        let path = plain(&named)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let folder = self.folder(parent)?;
        if name.as_bytes() == OPAQUE {
            return empty(&folder, parent, made);
        }
        if let Some(removed) = name.as_bytes().strip_prefix(WHITEOUT) {
            let removed = OsStr::from_bytes(removed);
            // That of the same layer stays.
            let is_own = made.contains(&parent.join(removed));
            let is_name = !removed.is_empty() && removed != "." && removed != "..";
            return if is_name && !is_own { remove(&folder, removed) } else { Ok(()) };
        }
        let header = entry.header();
        let kind = header.entry_type();
        // Set-user-id is nothing that a server needs.
        let mode = Mode::from_bits_truncate(header.mode()? & 0o1777);
        // Some archives leave the owner out.
        let owner = (header.uid().unwrap_or(0) as u32, header.gid().unwrap_or(0) as u32);
        if kind.is_dir() {
            let made_now = mkdirat(&folder, name, Mode::from_bits_truncate(0o755));
            if made_now == Err(Errno::EEXIST) && !is_folder(&folder, name) {
                remove(&folder, name)?;
                mkdirat(&folder, name, Mode::from_bits_truncate(0o755))?;
            }
            let new = openat(
                &folder,
                name,
                OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW,
                Mode::empty(),
            )?;
            own(&new, owner)?;
            // Files are added to it.
            fchmod(&new, if geteuid().is_root() { mode } else { mode | Mode::S_IRWXU })?;
        } else if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
            remove(&folder, name)?;
            let file = self.write(&folder, name, entry)?;
            own(&file, owner)?;
            fchmod(&file, mode)?;
        } else if kind.is_symlink() {
            remove(&folder, name)?;
            let target = entry.link_name()?.unwrap_or_default();
            symlinkat(&*target, &folder, name)?;
            if geteuid().is_root() {
                let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
                fchownat(&folder, name, Some(uid), Some(gid), AtFlags::AT_SYMLINK_NOFOLLOW)?;
            }
        } else if kind.is_hard_link() {
            let target = plain(&entry.link_name()?.unwrap_or_default())?;
            let (Some(of), Some(target)) = (target.parent(), target.file_name()) else { return Ok(()) };
            remove(&folder, name)?;
            linkat(&self.folder(of)?, target, &folder, name, AtFlags::empty())?;
        } else {
            // A device or a pipe: a server in the lab has those of the lab.
            return Ok(());
        }
        made.insert(path);
        Ok(())
    }

    fn write(&self, folder: &OwnedFd, name: &OsStr, content: &mut impl Read) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(folder, name, flags, Mode::from_bits_truncate(0o644))?);
        io::copy(content, &mut file).map_err(|e| e.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
        Ok(file.into())
    }
}

/// The path of an entry below the root folder.
fn plain(path: &Path) -> io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir | Component::RootDir => {}
            _ => return Err(io::Error::other("`..` leads out of the image")),
        }
    }
    Ok(plain)
}

/// Owners are those of the image where that is allowed.
fn own(file: &OwnedFd, (uid, gid): (u32, u32)) -> nix::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
}

fn is_folder(folder: &OwnedFd, name: &OsStr) -> bool {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    openat(folder, name, flags, Mode::empty()).is_ok()
}

/// Removes what has this name, if it is there.
fn remove(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(Errno::EISDIR | Errno::EPERM) => {
            fs::remove_dir_all(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
        }
        Err(e) => Err(e.into()),
    }
}

/// Removes what layers below have in a folder.
fn empty(folder: &OwnedFd, path: &Path, made: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()))? {
        let name = entry?.file_name();
        if !made.contains(&path.join(&name)) {
            remove(folder, &name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::manifest::Config;
    use std::io::Write;
    use tar::{Builder, EntryType, Header};

    type File<'a> = (&'a str, EntryType, &'a str);

    fn layer(files: &[File<'_>]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (name, kind, content) in files {
            let mut header = Header::new_ustar();
            header.set_entry_type(*kind);
            header.set_mode(0o4755);
            header.set_size(0);
            // The library itself refuses names that lead out.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            if kind.is_symlink() || kind.is_hard_link() {
                header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content.as_bytes());
            } else {
                header.set_size(content.len() as u64);
            }
            header.set_cksum();
            let data = if kind.is_file() { content.as_bytes() } else { &[] };
            archive.append(&header, data).unwrap();
        }
        archive.into_inner().unwrap()
    }

    /// The folder of an image with these layers, or why there is none.
    fn unpacked(name: &str, layers: &[&[File<'_>]]) -> (PathBuf, Result<(), String>) {
        let folder = std::env::temp_dir().join(format!("linerate-layers-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("root")).unwrap();
        fs::write(folder.join("victim"), "own").unwrap();
        let mut all = Vec::new();
        for (number, files) in layers.iter().enumerate() {
            let (path, bytes) = (folder.join(number.to_string()), layer(files));
            let digest = format!("sha256:{}", hex(ring::digest::digest(&SHA256, &bytes).as_ref()));
            // Every other one is compressed.
            if number % 2 == 1 {
                let mut gzip =
                    flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), Default::default());
                gzip.write_all(&bytes).unwrap();
                gzip.finish().unwrap();
            } else {
                fs::write(&path, &bytes).unwrap();
            }
            all.push((path, digest));
        }
        let manifest = Manifest { digest: String::new(), config: Config::default(), layers: all };
        let done = unpack(&manifest, &folder.join("root"));
        assert_eq!(fs::read_to_string(folder.join("victim")).unwrap(), "own");
        (folder, done)
    }

    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;
    const FOLDER: EntryType = EntryType::Directory;

    #[test]
    fn later_layers_replace_and_remove_what_earlier_ones_have() {
        let (folder, done) = unpacked(
            "whiteouts",
            &[
                &[("a/one", FILE, "1"), ("a/two", FILE, "2"), ("b/three", FILE, "3"), ("c", FILE, "4")],
                &[
                    ("a/.wh.one", FILE, ""),
                    ("b/five", FILE, "5"),
                    ("b/.wh..wh..opq", FILE, ""),
                    ("c", FOLDER, ""),
                ],
                &[("c/six", FILE, "6"), ("a/two", FILE, "new"), ("seven", EntryType::Link, "a/two")],
            ],
        );
        done.unwrap();
        let read = |name: &str| fs::read_to_string(folder.join("root").join(name)).ok();
        assert_eq!((read("a/one"), read("a/two"), read("b/three")), (None, Some("new".into()), None));
        assert_eq!(
            (read("b/five"), read("c/six"), read("seven")),
            (Some("5".into()), Some("6".into()), Some("new".into()))
        );
        assert_eq!(read("etc/hosts").as_deref(), Some(HOSTS));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_of_an_image_lead_to_places_in_it() {
        let up = "../".repeat(20);
        let victim =
            std::env::temp_dir().join(format!("linerate-layers-{}-links/victim", std::process::id()));
        let victim = victim.display().to_string();
        let (folder, done) = unpacked(
            "links",
            &[
                &[
                    ("run", FOLDER, ""),
                    ("var/run", LINK, "/run"),
                    ("out", LINK, &up),
                    ("file", LINK, &victim),
                ],
                &[("var/run/pid", FILE, "1"), ("out/escaped", FILE, "x"), ("file", FILE, "mine")],
                &[("pipe", EntryType::Fifo, ""), ("null", EntryType::Char, "")],
            ],
        );
        done.unwrap();
        let root = folder.join("root");
        assert_eq!(fs::read_to_string(root.join("run/pid")).unwrap(), "1");
        assert_eq!(fs::read_to_string(root.join("escaped")).unwrap(), "x");
        assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "mine");
        assert!(!root.join("pipe").exists() && !root.join("null").exists());
        let mode = std::os::unix::fs::MetadataExt::mode(&root.join("run/pid").metadata().unwrap());
        assert_eq!(mode & 0o7777, 0o755, "no set-user-id");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_that_lead_out_and_damaged_layers_are_refused() {
        let (folder, done) = unpacked("out", &[&[("a/../../victim", FILE, "x")]]);
        assert!(done.unwrap_err().contains("`..` leads out"));
        let bytes = layer(&[("a", FILE, "1")]);
        fs::write(folder.join("0"), bytes).unwrap();
        let layers = vec![(folder.join("0"), "sha256:00".to_owned())];
        let manifest = Manifest { digest: String::new(), config: Config::default(), layers };
        assert!(unpack(&manifest, &folder.join("root")).unwrap_err().contains("is damaged"));
        let (second, done) = unpacked("hard", &[&[("a", EntryType::Link, "../victim")]]);
        assert!(done.is_err());
        fs::remove_dir_all(folder).unwrap();
        fs::remove_dir_all(second).unwrap();
    }
}
