//! Systems that are built here: the commands of `[build]`, run when the system is first needed.
//!
//! What they make is kept in the cache folder under a name that has a hash of all that goes in, so that nothing is
//! ever built twice or out of date. A build counts when its mark is there, which is written last: one that was killed
//! is begun anew.

mod inputs;
mod process;
pub mod prune;

use super::manifest::Build;
use super::{System, template};
use crate::home;
use inputs::key;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Written into the folder of a build when it is whole.
const MARK: &str = ".linerate-built";

/// What may be done about a system that is not built yet.
pub enum Permission<'a> {
    /// Build it, and say so.
    Build(&'a dyn Fn(&str)),
    /// Only look: what is not built is missing.
    Look,
    /// Only look: what is not built will be, before it is needed.
    Foresee,
}

impl std::fmt::Debug for Permission<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Build(_) => "Build",
            Self::Look => "Look",
            Self::Foresee => "Foresee",
        })
    }
}

/// Finds builds and makes those that are missing; each system is tried once, however many variants it has.
#[derive(Debug)]
pub struct Builds<'a> {
    permission: Permission<'a>,
    known: BTreeMap<String, Result<PathBuf, String>>,
    foreseen: BTreeSet<String>,
    interrupted: bool,
}

impl<'a> Builds<'a> {
    #[must_use]
    pub fn new(permission: Permission<'a>) -> Self {
        Self { permission, known: BTreeMap::new(), foreseen: BTreeSet::new(), interrupted: false }
    }

    /// The folder that the system is built in.
    ///
    /// # Errors
    /// Why there is none, with the end of what the compiler said.
    pub fn of(&mut self, system: &System) -> Result<PathBuf, String> {
        if let Some(known) = self.known.get(&system.name) {
            return known.clone();
        }
        let result = self.find_or_make(system);
        self.known.insert(system.name.clone(), result.clone());
        result
    }

    /// Systems that are not built and will be.
    #[must_use]
    pub fn foreseen(&self) -> &BTreeSet<String> {
        &self.foreseen
    }

    /// True if the user wants to stop.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn find_or_make(&mut self, system: &System) -> Result<PathBuf, String> {
        let build = system.manifest.build.as_ref().ok_or("it has no [build]")?;
        let site = place(system, build, &cache()?)?;
        if site.out.join(MARK).exists() {
            return Ok(site.out);
        }
        let Permission::Build(tell) = self.permission else {
            if matches!(self.permission, Permission::Foresee) {
                self.foreseen.insert(system.name.clone());
            }
            return Err("it is not built".into());
        };
        if self.interrupted {
            return Err("interrupted".into());
        }
        tell(&format!("building {} (kept for later runs)", system.name));
        let start = Instant::now();
        match site.make(build) {
            Ok(()) => {
                tell(&format!("built {} in {} s", system.name, start.elapsed().as_secs()));
                Ok(site.out)
            }
            Err(process::Failure::Interrupted) => {
                self.interrupted = true;
                Err("interrupted while it was built".into())
            }
            Err(process::Failure::Reason(reason)) => {
                tell(&format!("could not build {}", system.name));
                Err(reason)
            }
        }
    }
}

/// The folder of all builds.
fn cache() -> Result<PathBuf, String> {
    let cache = home::cache().ok_or("neither XDG_CACHE_HOME nor HOME says where to build it")?;
    Ok(cache.join("builds"))
}

/// Where the system is built today, in this folder.
fn place(system: &System, build: &Build, folder: &Path) -> Result<Site, String> {
    Ok(Site {
        source: system.folder.canonicalize().map_err(|e| format!("{}: {e}", system.folder.display()))?,
        out: folder.join(format!("{}-{}", system.name, key(system, build)?)),
        python: folder.join(format!("python-{}", inputs::hash_of(&build.python))),
    })
}

/// Where a build happens.
struct Site {
    source: PathBuf,
    out: PathBuf,
    python: PathBuf,
}

impl Site {
    fn make(&self, build: &Build) -> Result<(), process::Failure> {
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
        if self.out.join(MARK).exists() {
            return Ok(()); // another linerate built it meanwhile
        }
        self.fetch_python(&build.python)?;
        begin_anew(&self.out)?;
        let log = self.out.with_extension("log");
        for command in &commands {
            process::run(command, &self.source, &log)?;
        }
        let program = template::render("system.toml: build.program", &build.program, &values)?;
        if !Path::new(&program).exists() {
            return Err(format!("its build ends well, but there is no {program}").into());
        }
        mark(&self.out)?;
        drop(lock);
        Ok(())
    }

    fn fetch_python(&self, packages: &[String]) -> Result<(), process::Failure> {
        if packages.is_empty() || self.python.join(MARK).exists() {
            return Ok(());
        }
        begin_anew(&self.python)?;
        let pip = "python3 -m pip install --quiet --disable-pip-version-check --no-deps --target";
        let mut command: Vec<String> = pip.split(' ').map(str::to_owned).collect();
        command.push(self.python.display().to_string());
        command.extend(packages.iter().cloned());
        process::run(&command, &self.source, &self.python.with_extension("log"))?;
        mark(&self.python)
    }
}

/// Usage by the one that builds; a second linerate waits here.
fn lock(path: &Path) -> Result<File, process::Failure> {
    let failed = |e: std::io::Error| process::Failure::from(format!("{}: {e}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let file = File::create(path).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

fn begin_anew(folder: &Path) -> Result<(), process::Failure> {
    let failed = |e: std::io::Error| process::Failure::from(format!("{}: {e}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}

fn mark(folder: &Path) -> Result<(), process::Failure> {
    let path = folder.join(MARK);
    fs::write(&path, "").map_err(|e| format!("{}: {e}", path.display()).into())
}
