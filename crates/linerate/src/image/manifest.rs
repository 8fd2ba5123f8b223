//! The parts of an image: the format of OCI (`index.json`, blobs by digest) and that of `docker save`
//! (`manifest.json`).

use super::source::Source;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A document is shorter.
const LONGEST: u64 = 16 << 20;
/// An index may refer to others.
const DEPTH: u32 = 4;
const TAG: &str = "org.opencontainers.image.ref.name";

/// An image's layers, the lowest first, and its configuration.
#[derive(Debug)]
pub(super) struct Manifest {
    /// SHA-256 of the configuration, which has the digests of all layers: the name of the image.
    pub(super) digest: String,
    pub(super) config: Config,
    /// Each with the SHA-256 of its content without compression.
    pub(super) layers: Vec<(PathBuf, String)>,
}

/// How the program of an image is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) program: Vec<String>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<String>,
    pub(super) folder: String,
    pub(super) user: String,
}

#[derive(Deserialize)]
struct Saved {
    #[serde(rename = "Config")]
    config: PathBuf,
    #[serde(rename = "Layers")]
    layers: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct OfOci {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
struct Document {
    architecture: String,
    os: String,
    #[serde(default)]
    config: Option<Started>,
    rootfs: Rootfs,
}

#[derive(Deserialize)]
struct Rootfs {
    diff_ids: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Started {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
}

impl Manifest {
    pub(super) fn read(source: &Source) -> Result<Self, String> {
        let folder = &source.folder;
        let (config, layers) = if folder.join("manifest.json").is_file() {
            let all: Vec<Saved> = parsed("manifest.json", &bytes(&folder.join("manifest.json"))?)?;
            let Ok([one]) = <[Saved; 1]>::try_from(all) else {
                return Err("the archive has none or several images: save one".into());
            };
            (inside(folder, &one.config)?, one.layers.iter().map(|layer| inside(folder, layer)).collect())
        } else if folder.join("index.json").is_file() {
            let of_oci = of_index(
                folder,
                "index.json",
                &bytes(&folder.join("index.json"))?,
                source.tag.as_deref(),
                DEPTH,
            )?;
            let layers = of_oci.layers.iter().map(|layer| blob(folder, &layer.digest)).collect();
            (blob(folder, &of_oci.config.digest)?, layers)
        } else {
            return Err(format!("{} has neither index.json nor manifest.json of an image", folder.display()));
        };
        let layers: Result<Vec<PathBuf>, String> = layers;
        let text = bytes(&config)?;
        let Document { architecture, os, config, rootfs } = parsed("the configuration", &text)?;
        if os != "linux" || architecture != own_architecture() {
            return Err(format!(
                "it is for {os} on {architecture}, and this machine is linux on {}",
                own_architecture()
            ));
        }
        let (layers, digests) = (layers?, rootfs.diff_ids);
        if layers.len() != digests.len() {
            return Err(format!("it has {} layers and digests of {}", layers.len(), digests.len()));
        }
        let Started { entrypoint, cmd, env, working_dir, user } = config.unwrap_or_default();
        let config = Config {
            program: entrypoint.unwrap_or_default(),
            arguments: cmd.unwrap_or_default(),
            environment: env.unwrap_or_default(),
            folder: working_dir.unwrap_or_default(),
            user: user.unwrap_or_default(),
        };
        Ok(Self {
            digest: hex(digest(&SHA256, &text).as_ref()),
            config,
            layers: layers.into_iter().zip(digests).collect(),
        })
    }
}

/// The image of an index: that of the tag, for this machine.
fn of_index(folder: &Path, name: &str, text: &[u8], tag: Option<&str>, depth: u32) -> Result<OfOci, String> {
    let Ok(Index { manifests }) = serde_json::from_slice(text) else { return parsed(name, text) };
    let is_ours = |one: &Descriptor| {
        one.platform.as_ref().is_none_or(|on| on.os == "linux" && on.architecture == own_architecture())
    };
    let has_tag =
        |one: &Descriptor| tag.is_none_or(|tag| one.annotations.get(TAG).is_some_and(|known| known == tag));
    let mut found = manifests.iter().filter(|one| is_ours(one) && has_tag(one));
    let tags = || {
        manifests.iter().filter_map(|one| one.annotations.get(TAG).cloned()).collect::<Vec<_>>().join(", ")
    };
    let one = match (found.next(), found.next()) {
        (Some(one), None) => one,
        (None, _) => return Err(format!("{name} has no such image for this machine; tags: {}", tags())),
        (Some(_), Some(_)) => return Err(format!("{name} has several images: oci:DIR:TAG, of {}", tags())),
    };
    let path = blob(folder, &one.digest)?;
    if depth == 0 {
        return Err(format!("{name}: too many indices within each other"));
    }
    let text = bytes(&path)?;
    let found = format!("sha256:{}", hex(digest(&SHA256, &text).as_ref()));
    if found != one.digest {
        return Err(format!("{} is damaged: its digest is {found}", path.display()));
    }
    // The tag is that of the outermost.
    of_index(folder, &one.digest, &text, None, depth - 1)
}

/// The file of a digest such as `sha256:1234...`.
fn blob(folder: &Path, digest: &str) -> Result<PathBuf, String> {
    match digest.split_once(':') {
        Some(("sha256", hex)) if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(folder.join("blobs/sha256").join(hex))
        }
        _ => Err(format!("`{digest}` is no digest of SHA-256")),
    }
}

/// A file that an archive names.
fn inside(folder: &Path, name: &Path) -> Result<PathBuf, String> {
    let is_plain = name.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if is_plain {
        Ok(folder.join(name))
    } else {
        Err(format!("`{}` leads out of the archive", name.display()))
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    if fs::metadata(path).map_err(failed)?.len() > LONGEST {
        return Err(format!("{}: longer than any such document", path.display()));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(bytes)
}

fn parsed<T: for<'a> Deserialize<'a>>(what: &str, text: &[u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|e| format!("{what}: {e}"))
}

/// As images name it.
fn own_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
