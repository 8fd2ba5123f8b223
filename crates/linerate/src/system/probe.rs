//! Presence and version of systems on this machine; the version is the program's own output.

use super::build::Builds;
use super::manifest::VersionProbe;
use super::{SystemVariant, install, template};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The presence of a variant on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "presence", rename_all = "lowercase")]
pub enum Presence {
    /// `program` and `version` are absent if nothing is started, or if it is not built yet
    /// ([`super::build::Permission::Later`]).
    Ready {
        program: Option<PathBuf>,
        version: Option<String>,
    },
    Missing {
        reason: String,
        install: String,
    },
}

/// Folders of programs that are not on a normal user's `PATH`.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Time limit for printing a version.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// What an arm of a comparison has in place of a system's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replacement {
    pub program: Option<PathBuf>,
    /// The environment of its build.
    pub env: Vec<(String, String)>,
    /// Iterations of a loop after each receive.
    pub plant: Option<u32>,
}

/// Finds the variant's programs, builds them if permitted, and gets the version.
#[must_use]
pub fn presence(chosen: SystemVariant<'_>, with: &Replacement, builds: &mut Builds<'_>) -> Presence {
    let missing = |reason: String| Presence::Missing { reason, install: install::advice(chosen) };
    let manifest = &chosen.system.manifest;
    for need in manifest.needs.iter().chain(&chosen.variant.needs) {
        if locate(need).is_none() {
            return missing(format!("{need} is not installed"));
        }
    }
    let Some(name) = chosen.program() else { return Presence::Ready { program: None, version: None } };
    let replaced = with.program.as_ref().map(|path| Ok(path.display().to_string()));
    let name = match replaced.unwrap_or_else(|| built_program(chosen, name, with, builds)) {
        Ok(name) => name,
        Err(_) if builds.pending().contains(&chosen.system.name) => {
            return Presence::Ready { program: None, version: None };
        }
        Err(reason) => return missing(reason),
    };
    let Some(program) = locate(&name) else { return missing(format!("{name} is not installed")) };
    let probe = chosen.variant.version.as_ref().or(manifest.version.as_ref());
    let prober = match probe.and_then(|probe| probe.program.as_deref()) {
        None => program.clone(),
        Some(other) => match locate(other) {
            Some(other) => other,
            None => return missing(format!("{other} is not installed")),
        },
    };
    match probe.map(|probe| version(&prober, probe)).transpose() {
        Ok(version) => Presence::Ready { program: Some(program), version },
        Err(reason) => missing(reason),
    }
}

/// The path of a built program; the name itself if the system has no build.
fn built_program(
    chosen: SystemVariant<'_>,
    name: &str,
    with: &Replacement,
    builds: &mut Builds<'_>,
) -> Result<String, String> {
    if chosen.system.manifest.build.is_none() {
        return Ok(name.to_owned());
    }
    let out = builds.of(chosen.system, &with.env)?;
    let place = format!("systems/{}/system.toml: program", chosen.system.name);
    template::render(&place, name, &minijinja::context! { out => out.display().to_string() })
}

/// Finds a program by name, in linerate's own folder, on `PATH` and in system folders; or a file by its path.
#[must_use]
pub fn locate(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        beside.into_iter().chain(std::env::split_paths(&path)).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// True for a file that is executable.
pub(crate) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn version(program: &Path, probe: &VersionProbe) -> Result<String, String> {
    let output = output_of(program, &probe.args)?;
    let pattern = Regex::new(&probe.pattern).map_err(|e| format!("version.pattern in system.toml: {e}"))?;
    let found = pattern.captures(&output).and_then(|groups| groups.get(1));
    found.map(|group| group.as_str().to_owned()).ok_or_else(|| {
        let start: String = output.chars().take(80).collect();
        format!(
            "{}: no version in its output (pattern `{}`): {}",
            program.display(),
            probe.pattern,
            start.trim()
        )
    })
}

/// Both output streams, whatever the exit status: some programs exit with 1 after printing their version.
fn output_of(program: &Path, args: &[String]) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("cannot run {} for its version: {e}", program.display());
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let deadline = Instant::now() + VERSION_DEADLINE;
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} printed no version within {VERSION_DEADLINE:?}", program.display()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // The output of a version probe fits into the pipe's buffer, so reading after the end loses nothing.
    let mut output = Vec::new();
    if let Some(mut stdout) = stdout {
        stdout.read_to_end(&mut output).map_err(failed)?;
    }
    if let Some(mut stderr) = stderr {
        stderr.read_to_end(&mut output).map_err(failed)?;
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(pattern: &str) -> VersionProbe {
        VersionProbe {
            program: None,
            args: vec!["-c".into(), "echo demo version 1.2.3".into()],
            pattern: pattern.into(),
        }
    }

    #[test]
    fn the_version_comes_from_the_output_of_the_program() {
        assert_eq!(version(Path::new("/bin/sh"), &probe(r"version (\S+)")), Ok("1.2.3".into()));
    }

    #[test]
    fn output_without_a_version_is_part_of_the_error() {
        let error = version(Path::new("/bin/sh"), &probe(r"release (\S+)")).unwrap_err();
        assert!(error.contains("demo version"), "{error}");
    }

    #[test]
    fn existing_programs_are_found_and_others_are_not() {
        assert!(locate("sh").is_some());
        assert_eq!(locate("no-such-program-anywhere"), None);
    }
}
