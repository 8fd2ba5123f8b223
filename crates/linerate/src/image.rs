//! Images of containers as servers: `image:NAME`, `oci:DIR`, `docker-archive:FILE`.
//!
//! | module | contents |
//! |---|---|
//! | `source` | the image as a folder: exported by the engine that has it, or read from a file |
//! | `manifest` | its layers and its configuration, in the format of OCI or of `docker save` |
//! | `layers` | the layers as one folder, with nothing outside of it |
//!
//! An image is unpacked once, into linerate's cache, by the digest of its configuration. No engine runs it:
//! its program is started in linerate's own namespaces (docs/decisions/lab.md).

mod layers;
mod manifest;
mod source;

use crate::lab::program::cache;
use manifest::{Config, Manifest};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where programs are, in an image that does not say it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The most bytes of a file such as `/etc/passwd`.
const LONGEST: u64 = 1 << 20;

/// An image that was unpacked, and how its program is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// The files of the image.
    pub(crate) root: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    /// Where the program starts.
    pub(crate) folder: PathBuf,
    /// The numbers of its user and group.
    pub(crate) user: (u32, u32),
}

/// True if a command is an image, and not a program.
pub(crate) fn is_image(command: &str) -> bool {
    source::KINDS.iter().any(|kind| command.starts_with(kind))
}

/// The image of a command's first word. Further words are arguments in place of those of the image.
///
/// # Errors
/// The image is not there, is damaged, or has no program; with the next step.
pub(crate) fn open(words: &[String], folder: &Path) -> Result<Image, String> {
    let (name, arguments) = words.split_first().ok_or("a command is empty")?;
    let failed = |reason: String| format!("{name}: {reason}");
    let images = cache().ok_or("no HOME: there is no folder for images")?.join("images");
    let source = source::find(name, folder, &images).map_err(failed)?;
    let manifest = Manifest::read(&source).map_err(failed)?;
    let root = unpacked(&manifest, &images).map_err(failed)?;
    started(&manifest.config, root, arguments).map_err(failed)
}

/// The folder of an image's files, which is made once.
fn unpacked(manifest: &Manifest, images: &Path) -> Result<PathBuf, String> {
    let place = images.join(&manifest.digest);
    if place.is_dir() {
        return Ok(place);
    }
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let unfinished = images.join(format!(".{}-{}", manifest.digest, std::process::id()));
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished).map_err(|e| failed(&unfinished, e))?;
    let done = layers::unpack(manifest, &unfinished).and_then(|()| {
        // Another process may have been faster.
        fs::rename(&unfinished, &place)
            .or_else(|e| if place.is_dir() { Ok(()) } else { Err(failed(&place, e)) })
    });
    let _ = fs::remove_dir_all(&unfinished);
    done.map(|()| place)
}

fn started(config: &Config, root: PathBuf, arguments: &[String]) -> Result<Image, String> {
    let of_image = if arguments.is_empty() { &config.arguments } else { arguments };
    let mut words = config.program.iter().chain(of_image).cloned();
    let program = words.next().ok_or("the image has no program: write it after its name")?;
    let arguments = words.collect();
    let named = config.environment.iter().filter_map(|line| line.split_once('='));
    let (user, home) = user(&root, &config.user)?;
    let defaults = [("PATH", PATH), ("HOME", &*home)];
    let environment = defaults.into_iter().chain(named);
    Ok(Image {
        program: program.into(),
        arguments,
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        folder: Path::new("/").join(&config.folder),
        user,
        root,
    })
}

/// Numbers of user and group, and the home: of `USER`, `UID`, or either with `:GROUP`.
fn user(root: &Path, named: &str) -> Result<((u32, u32), String), String> {
    let (user, group) = named.split_once(':').map_or((named, None), |(user, group)| (user, Some(group)));
    let user = if user.is_empty() { "0" } else { user };
    let passwd = text_in(root, "/etc/passwd");
    // name:password:uid:gid:comment:home:shell
    let known = entry(&passwd, user);
    let known = known.map(|fields| (fields[2].to_owned(), fields[3].to_owned(), fields.get(5).copied()));
    let (uid, gid, home) = match &known {
        Some((uid, gid, home)) => (&**uid, &**gid, home.unwrap_or("/")),
        None => (user, "0", "/"),
    };
    let groups = text_in(root, "/etc/group");
    let gid = match group {
        Some(group) => entry(&groups, group).map_or(group, |fields| fields[2]),
        None => gid,
    };
    let number = |text: &str| text.parse().map_err(|_| format!("the image has no user or group `{text}`"));
    Ok(((number(uid)?, number(gid)?), home.to_owned()))
}

/// The line of a name, or of a number in the third place.
fn entry<'a>(text: &'a str, wanted: &str) -> Option<Vec<&'a str>> {
    let lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut lines = lines.filter(|fields| fields.len() >= 4);
    lines.find(|fields| fields[0] == wanted || fields[2] == wanted)
}

/// A text in an image; empty if it is not there. Its links lead to places in the image.
fn text_in(root: &Path, path: &str) -> String {
    let mut text = String::new();
    if let Ok(root) = layers::Root::open(root)
        && let Ok(file) = root.file(Path::new(path))
    {
        let _ = file.take(LONGEST).read_to_string(&mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("linerate-image-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nweb:x:33:44::/srv:/bin/sh\n").unwrap();
        fs::write(root.join("etc/group"), "root:x:0:\nstaff:x:50:web\n").unwrap();
        root
    }

    #[test]
    fn users_and_groups_are_names_of_the_image_or_numbers() {
        let root = root("users");
        for (named, expected) in [
            ("", ((0, 0), "/root")),
            ("web", ((33, 44), "/srv")),
            ("33", ((33, 44), "/srv")),
            ("web:staff", ((33, 50), "/srv")),
            ("1000:7", ((1000, 7), "/")),
        ] {
            let found = user(&root, named).unwrap();
            assert_eq!((found.0, &*found.1), expected, "{named}");
        }
        assert!(user(&root, "nobody").unwrap_err().contains("no user or group `nobody`"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn arguments_replace_those_of_the_image_and_not_its_program() {
        let root = root("words");
        let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let config = Config {
            program: words(&["/server"]),
            arguments: words(&["--slow"]),
            environment: words(&["A=1=2"]),
            folder: "/srv".into(),
            ..Config::default()
        };
        let image = started(&config, root.clone(), &[]).unwrap();
        assert_eq!((&*image.arguments, image.folder.to_str()), (&["--slow".to_owned()][..], Some("/srv")));
        assert_eq!((&*image.environment["A"], &*image.environment["PATH"]), ("1=2", PATH));
        let other = started(&config, root.clone(), &words(&["--fast"])).unwrap();
        assert_eq!(
            (other.program.to_str(), &*other.arguments),
            (Some("/server"), &["--fast".to_owned()][..])
        );
        assert!(started(&Config::default(), root.clone(), &[]).unwrap_err().contains("has no program"));
        fs::remove_dir_all(root).unwrap();
    }
}
