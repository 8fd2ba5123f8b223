//! Is a system here, and in which version? Asked of the program itself, never assumed.

use super::build::Builds;
use super::manifest::VersionProbe;
use super::{Chosen, install, template};
use regex::Regex;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What this machine has of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// `program` and `version` are absent where there is nothing to start, or not yet ([`super::build::Permission::Foresee`]).
    Ready {
        program: Option<PathBuf>,
        version: Option<String>,
    },
    Missing {
        reason: String,
        install: String,
    },
}

/// Folders of programs that a normal user's `PATH` leaves out.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// A program that takes longer to tell its version hangs.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// Looks for the variant's programs, which may mean to build them, and asks for the version.
#[must_use]
pub fn presence(chosen: Chosen<'_>, builds: &mut Builds<'_>) -> Presence {
    let missing = |reason: String| Presence::Missing { reason, install: install::advice(chosen) };
    let manifest = &chosen.system.manifest;
    for need in manifest.needs.iter().chain(&chosen.variant.needs) {
        if locate(need).is_none() {
            return missing(format!("{need} is not installed"));
        }
    }
    let Some(name) = chosen.program() else { return Presence::Ready { program: None, version: None } };
    let name = match built_program(chosen, name, builds) {
        Ok(name) => name,
        Err(_) if builds.foreseen().contains(&chosen.system.name) => {
            return Presence::Ready { program: None, version: None };
        }
        Err(reason) => return missing(reason),
    };
    let Some(program) = locate(&name) else { return missing(format!("{name} is not installed")) };
    let probe = chosen.variant.version.as_ref().or(manifest.version.as_ref());
    let asked = match probe.and_then(|probe| probe.program.as_deref()) {
        None => program.clone(),
        Some(other) => match locate(other) {
            Some(other) => other,
            None => return missing(format!("{other} is not installed")),
        },
    };
    match probe.map(|probe| version(&asked, probe)).transpose() {
        Ok(version) => Presence::Ready { program: Some(program), version },
        Err(reason) => missing(reason),
    }
}

/// Where a built program is; the name itself of one that is not built here.
fn built_program(chosen: Chosen<'_>, name: &str, builds: &mut Builds<'_>) -> Result<String, String> {
    if chosen.system.manifest.build.is_none() {
        return Ok(name.to_owned());
    }
    let out = builds.of(chosen.system)?;
    let place = format!("systems/{}/system.toml: program", chosen.system.name);
    template::render(&place, name, &minijinja::context! { out => out.display().to_string() })
}

/// A program by its name, on `PATH` and in the system folders, or beside linerate itself; or a file by its path.
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

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn version(program: &Path, probe: &VersionProbe) -> Result<String, String> {
    let said = output_of(program, &probe.args)?;
    let pattern = Regex::new(&probe.pattern).map_err(|e| format!("version.pattern in system.toml: {e}"))?;
    let found = pattern.captures(&said).and_then(|groups| groups.get(1));
    found.map(|group| group.as_str().to_owned()).ok_or_else(|| {
        let start: String = said.chars().take(80).collect();
        format!("{} says no version that `{}` finds, but: {}", program.display(), probe.pattern, start.trim())
    })
}

/// Both output streams together; whatever the exit status, for some programs end with 1 after telling their version.
fn output_of(program: &Path, args: &[String]) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("{} cannot be asked for its version: {e}", program.display());
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let deadline = Instant::now() + VERSION_DEADLINE;
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!(
                "{} does not tell its version within {VERSION_DEADLINE:?}",
                program.display()
            ));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // What a version probe prints fits into the pipe's buffer, so reading after the end loses nothing.
    let mut said = Vec::new();
    if let Some(mut stdout) = stdout {
        stdout.read_to_end(&mut said).map_err(failed)?;
    }
    if let Some(mut stderr) = stderr {
        stderr.read_to_end(&mut said).map_err(failed)?;
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
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
    fn the_version_is_what_the_running_program_says() {
        assert_eq!(version(Path::new("/bin/sh"), &probe(r"version (\S+)")), Ok("1.2.3".into()));
    }

    #[test]
    fn a_program_that_says_no_version_is_reported_with_what_it_said() {
        let error = version(Path::new("/bin/sh"), &probe(r"release (\S+)")).unwrap_err();
        assert!(error.contains("demo version"), "{error}");
    }

    #[test]
    fn programs_in_system_folders_are_found_and_others_are_not() {
        assert!(locate("sh").is_some());
        assert_eq!(locate("no-such-program-anywhere"), None);
    }
}
