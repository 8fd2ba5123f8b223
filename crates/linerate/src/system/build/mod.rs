//! Systems that are built here: the commands of `[build]`, run when the system is first needed.
//!
//! Their results are kept in the cache folder under a name that contains a hash of all inputs, so that
//! nothing is built twice or out of date. The mark of a build is written last: without it, the build was
//! killed and starts over.

mod inputs;
mod process;
pub mod prune;
pub mod revision;
mod several;

use super::manifest::Build;
use super::{System, template};
use crate::interrupt;
use crate::lab::program;
use inputs::key;
pub use process::Failure;
use process::POLL;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

/// Written into the folder of a build when it is complete.
const MARK: &str = ".linerate-built";

/// Whether systems that are not built yet are built.
pub enum Permission<'a> {
    /// Build it now, and print a note.
    Build(&'a dyn Fn(&str)),
    /// Build nothing: systems that are not built are missing.
    Never,
    /// Build nothing now: systems that are not built count as present; a run builds them first.
    Later,
}

impl std::fmt::Debug for Permission<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Build(_) => "Build",
            Self::Never => "Never",
            Self::Later => "Later",
        })
    }
}

/// Variables of the environment of a build, in place of linerate's own.
type Variables = Vec<(String, String)>;

/// Finds builds and makes missing ones; each system is tried once in each environment, whatever its number of
/// variants.
#[derive(Debug)]
pub struct Builds<'a> {
    permission: Permission<'a>,
    /// By system and environment.
    known: BTreeMap<(String, Variables), Result<PathBuf, String>>,
    pending: BTreeSet<String>,
    interrupted: bool,
}

impl<'a> Builds<'a> {
    pub fn new(permission: Permission<'a>) -> Self {
        Self { permission, known: BTreeMap::new(), pending: BTreeSet::new(), interrupted: false }
    }

    /// The folder that the system is built in, with these variables in place of linerate's own.
    ///
    /// # Errors
    /// Why there is none, with the last lines of the compiler's output.
    pub fn folder(&mut self, system: &System, env: &[(String, String)]) -> Result<PathBuf, String> {
        let key = (system.name.clone(), env.to_vec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let result = self.find_or_make(system, env);
        self.known.insert(key, result.clone());
        result
    }

    /// Systems that are not built yet.
    pub fn pending(&self) -> &BTreeSet<String> {
        &self.pending
    }

    /// True after an interrupt.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn find_or_make(&mut self, system: &System, env: &[(String, String)]) -> Result<PathBuf, String> {
        let build = system.manifest.build.as_ref().ok_or("it has no [build]")?;
        let site = place(system, build, env, &cache()?)?;
        if site.is_made() {
            return Ok(site.out);
        }
        let Permission::Build(note) = self.permission else {
            if matches!(self.permission, Permission::Later) {
                self.pending.insert(system.name.clone());
            }
            return Err("it is not built".into());
        };
        if self.interrupted {
            return Err("interrupted".into());
        }
        make(system, site, env, note).unwrap_or_else(|| {
            self.interrupted = true;
            Err("interrupted while it was built".into())
        })
    }
}

/// Builds a system; returns its folder, or why there is none. `None`: interrupted.
fn make(
    system: &System,
    site: Site,
    env: &process::Environment,
    note: &dyn Fn(&str),
) -> Option<Result<PathBuf, String>> {
    note(&format!("building {} (kept for later runs)", system.name));
    let start = Instant::now();
    match site.make(system.manifest.build.as_ref()?, env) {
        Ok(()) => {
            note(&format!("built {} in {} s", system.name, start.elapsed().as_secs()));
            Some(Ok(site.out))
        }
        Err(Failure::Interrupted) => None,
        Err(Failure::Reason(reason)) => {
            note(&format!("could not build {}", system.name));
            Some(Err(reason))
        }
    }
}

/// The folder of all builds.
fn cache() -> Result<PathBuf, String> {
    let cache = program::cache().ok_or("no folder to build in: neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("builds"))
}

/// The system's current build in this folder.
fn place(system: &System, build: &Build, env: &[(String, String)], folder: &Path) -> Result<Site, String> {
    Ok(Site {
        source: system.folder.canonicalize().map_err(|e| format!("{}: {e}", system.folder.display()))?,
        out: folder.join(format!("{}-{}", system.name, key(system, build, env)?)),
        python: folder.join(format!("python-{}", inputs::hash_of(&build.python))),
    })
}

/// The paths of a build.
struct Site {
    source: PathBuf,
    out: PathBuf,
    python: PathBuf,
}

impl Site {
    fn is_made(&self) -> bool {
        self.out.join(MARK).exists()
    }

    fn make(&self, build: &Build, env: &process::Environment) -> Result<(), Failure> {
        let values = minijinja::context! {
            source => self.source.display().to_string(),
            out => self.out.display().to_string(),
            python => self.python.display().to_string(),
        };
        let mut commands = Vec::new();
        for command in &build.commands {
            let words =
                command.iter().map(|word| template::render("system.toml: build.commands", word, &values));
            commands.push(words.collect::<Result<Vec<_>, _>>()?);
        }
        let lock = lock(&self.out.with_extension("lock"))?;
        if self.is_made() {
            return Ok(()); // another linerate built it meanwhile
        }
        self.fetch_python(&build.python)?;
        begin_anew(&self.out)?;
        let log = self.out.with_extension("log");
        for command in &commands {
            process::run(command, &self.source, env, &log, &lock)?;
        }
        let program = template::render("system.toml: build.program", &build.program, &values)?;
        if !Path::new(&program).exists() {
            return Err(format!("its build ends well, but there is no {program}").into());
        }
        mark(&self.out)?;
        drop(lock);
        Ok(())
    }

    /// Systems with the same packages share a folder.
    fn fetch_python(&self, packages: &[String]) -> Result<(), Failure> {
        let is_there = || packages.is_empty() || self.python.join(MARK).exists();
        if is_there() {
            return Ok(());
        }
        let lock = lock(&self.python.with_extension("lock"))?;
        if is_there() {
            return Ok(()); // another build fetched them meanwhile
        }
        begin_anew(&self.python)?;
        let pip = "python3 -m pip install --quiet --disable-pip-version-check --no-deps --target";
        let mut command: Vec<String> = pip.split(' ').map(str::to_owned).collect();
        command.push(self.python.display().to_string());
        command.extend(packages.iter().cloned());
        process::run(&command, &self.source, &[], &self.python.with_extension("log"), &lock)?;
        mark(&self.python)
    }
}

/// Locked during the build; a second linerate waits here, until it is interrupted.
fn lock(path: &Path) -> Result<File, Failure> {
    let failed = |e: std::io::Error| Failure::from(format!("{}: {e}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let file = File::create(path).map_err(failed)?;
    let interrupted = interrupt::watch();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
            Err(TryLockError::WouldBlock) if interrupted.load(Ordering::Relaxed) => {
                return Err(Failure::Interrupted);
            }
            Err(TryLockError::WouldBlock) => thread::sleep(POLL),
        }
    }
}

fn begin_anew(folder: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::from(format!("{}: {e}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}

fn mark(folder: &Path) -> Result<(), Failure> {
    let path = folder.join(MARK);
    fs::write(&path, "").map_err(|e| format!("{}: {e}", path.display()).into())
}
