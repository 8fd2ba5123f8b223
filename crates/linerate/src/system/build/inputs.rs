//! The inputs of a build as a hash, which names its folder in the cache.

use crate::system::System;
use crate::system::manifest::Build;
use globset::{Glob, GlobMatcher};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables that compilers and build tools read: another value is another build.
const ENVIRONMENT: [&str; 9] = [
    "CMAKE_PREFIX_PATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "RUSTFLAGS",
    "GOFLAGS",
];

/// Sixteen hex digits. The hash may differ between two versions of Rust; then things are built once more.
///
/// # Errors
/// An input that cannot be read, or a glob that finds none.
pub(super) fn key(system: &System, build: &Build, env: &[(String, String)]) -> Result<String, String> {
    let mut hash = DefaultHasher::new();
    (&build.commands, &build.python, &build.program).hash(&mut hash);
    let variable = |name: &str| {
        let of_arm = env.iter().find(|(known, _)| known == name).map(|(_, value)| value.into());
        of_arm.or_else(|| std::env::var_os(name))
    };
    for name in ENVIRONMENT {
        (name, variable(name)).hash(&mut hash);
    }
    let others = env.iter().filter(|(name, _)| !ENVIRONMENT.contains(&name.as_str()));
    others.for_each(|other| other.hash(&mut hash));
    versions(&build.debian).hash(&mut hash);
    let mut files = BTreeSet::new();
    for glob in &build.inputs {
        let (folder, below) = root_of(&system.folder, glob, variable)?;
        let found = find(&folder, below)
            .map_err(|e| format!("systems/{}/system.toml: build.inputs: {glob}: {e}", system.name))?;
        files.extend(found);
    }
    for file in files {
        let contents = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        // Without the checkout's path: equal inputs in two checkouts share a build.
        (file.strip_prefix(&system.folder).unwrap_or(&file), contents).hash(&mut hash);
    }
    Ok(format!("{:016x}", hash.finish()))
}

pub(super) fn hash_of(value: &impl Hash) -> String {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    format!("{:016x}", hash.finish())
}

/// Installed versions: another version of a library is another build. Empty without dpkg.
fn versions(packages: &[String]) -> Vec<u8> {
    if packages.is_empty() {
        return Vec::new();
    }
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${Package} ${Version}\n"]).args(packages).stderr(Stdio::null());
    query.output().map(|out| out.stdout).unwrap_or_default()
}

/// Where a glob begins: in the system's folder, or with `$NAME/` in the one that this variable names, which
/// is where the user keeps what no package has.
fn root_of<'a>(
    folder: &Path,
    glob: &'a str,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(PathBuf, &'a str), String> {
    let Some((name, below)) = glob.strip_prefix('$').and_then(|rest| rest.split_once('/')) else {
        return Ok((folder.to_owned(), glob));
    };
    let value =
        variable(name).filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} is not set"))?;
    Ok((value.into(), below))
}

/// Files below `folder` by a glob; `..` is its parent, `**` any number of folders.
fn find(folder: &Path, glob: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let parts: Vec<&str> = glob.split('/').collect();
    descend(folder, &parts, &mut found)?;
    found.retain(|path| path.is_file());
    if found.is_empty() {
        return Err("no such file".into());
    }
    Ok(found)
}

fn descend(folder: &Path, parts: &[&str], found: &mut Vec<PathBuf>) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else {
        found.push(folder.to_owned());
        return Ok(());
    };
    if !first.contains(['*', '?', '[', '{']) {
        return descend(&folder.join(first), rest, found);
    }
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let is_deep = *first == "**";
    if is_deep {
        descend(folder, rest, found)?;
    }
    let matcher: GlobMatcher = Glob::new(first).map_err(|e| e.to_string())?.compile_matcher();
    for path in entries.flatten().map(|entry| entry.path()) {
        // Files of a build by hand would change the key.
        let is_output = path.file_name().is_some_and(|name| name == "target");
        if is_deep && path.is_dir() && !is_output {
            descend(&path, parts, found)?;
        } else if !is_deep && path.file_name().is_some_and(|name| matcher.is_match(name)) {
            descend(&path, rest, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_find_files_here_above_and_below() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/system");
        let names = |glob: &str| -> BTreeSet<String> {
            let paths = find(&here, glob).unwrap();
            paths.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert!(names("*.rs").contains("probe.rs") && !names("*.rs").contains("inputs.rs"));
        assert!(names("**/*.rs").contains("inputs.rs") && names("**/*.rs").contains("probe.rs"));
        assert_eq!(names("../../Cargo.toml"), BTreeSet::from(["Cargo.toml".to_owned()]));
        assert_eq!(find(&here, "*.cpp").unwrap_err(), "no such file");
    }

    #[test]
    fn globs_begin_in_the_systems_folder_or_where_a_variable_says() {
        let set = |name: &str| (name == "TINY_ROOT").then(|| "/opt/tiny".into());
        let begin = |glob| root_of(Path::new("/systems/tiny"), glob, set);
        assert_eq!(begin("../*.hpp"), Ok(("/systems/tiny".into(), "../*.hpp")));
        assert_eq!(begin("$TINY_ROOT/tiny/*.hpp"), Ok(("/opt/tiny".into(), "tiny/*.hpp")));
        assert_eq!(begin("$OTHER_ROOT/*.hpp"), Err("OTHER_ROOT is not set".into()));
    }
}
