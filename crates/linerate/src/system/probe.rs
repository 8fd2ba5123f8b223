//! Presence and version of systems on this machine; the version is the program's own output.

use super::build::Builds;
use super::group::ChildGroup;
use super::manifest::VersionProbe;
use super::{SystemVariant, install, template};
use crate::lab::Lab;
use crate::lab::program::locate;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
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

/// Time limit for printing a version.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);
/// A version is in the first lines; the rest is read and dropped.
const MOST_OUTPUT: usize = 64 << 10;

/// The replacement that an arm of a comparison has for a system's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replacement {
    pub program: Option<PathBuf>,
    /// The environment of its build.
    pub env: Vec<(String, String)>,
    /// Iterations of a loop after each receive.
    pub plant: Option<u32>,
}

/// Finds the variant's programs, builds them if permitted, and gets the version, in a lab if there is one.
pub fn presence(
    chosen: SystemVariant<'_>,
    with: &Replacement,
    builds: &mut Builds<'_>,
    lab: Option<&mut dyn Lab>,
) -> Presence {
    let missing = |reason: String| {
        let is_given = with.program.is_some();
        Presence::Missing { reason, install: if is_given { String::new() } else { install::advice(chosen) } }
    };
    let manifest = &chosen.system.manifest;
    if let Some(need) = chosen.unmet_need() {
        return missing(format!("{need} is not installed"));
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
    match probe.map(|probe| version(&prober, probe, lab)).transpose() {
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
    let out = builds.folder(chosen.system, &with.env)?;
    let place = format!("systems/{}/system.toml: program", chosen.system.name);
    template::render(&place, name, &minijinja::context! { out => out.display().to_string() })
}

fn version(program: &Path, probe: &VersionProbe, lab: Option<&mut dyn Lab>) -> Result<String, String> {
    let command = || (program.to_owned(), probe.args.clone());
    let output = match lab.and_then(|lab| lab.output_of(&command(), VERSION_DEADLINE)) {
        Some(output) => output.map_err(|error| format!("in the lab, {error}"))?,
        None => output_of(program, &probe.args)?,
    };
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
    let failed = |e: io::Error| format!("cannot run {} for its version: {e}", program.display());
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let group = ChildGroup::spawn(&mut command).map_err(failed)?;
    drop(command); // and with it the writing ends of the pipe
    let output = read_until_end(&group, reader, Instant::now() + VERSION_DEADLINE);
    group.end().map_err(failed)?;
    let output = output.map_err(failed)?;
    let late = || format!("{} printed no version within {VERSION_DEADLINE:?}", program.display());
    output.map(|output| String::from_utf8_lossy(&output).into_owned()).ok_or_else(late)
}

/// The output of the program until it ends, also if a process that it started keeps the pipe open; `None` at
/// the deadline.
fn read_until_end(
    group: &ChildGroup,
    mut pipe: PipeReader,
    deadline: Instant,
) -> io::Result<Option<Vec<u8>>> {
    let (mut output, mut part) = (Vec::new(), [0; 4096]);
    while Instant::now() < deadline {
        // Before the look at the pipe: what the program printed is in it.
        let has_ended = group.has_ended()?;
        let mut ready = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        let wait = if has_ended { PollTimeout::ZERO } else { PollTimeout::from(10_u8) };
        let count = match poll(&mut ready, wait) {
            Err(Errno::EINTR) => continue,
            count => count?,
        };
        match count {
            0 if has_ended => return Ok(Some(output)),
            0 => {}
            _ => match pipe.read(&mut part)? {
                0 if has_ended => return Ok(Some(output)),
                0 => std::thread::sleep(Duration::from_millis(1)),
                length => {
                    let room = MOST_OUTPUT - output.len();
                    output.extend_from_slice(&part[..length.min(room)]);
                }
            },
        }
    }
    Ok(None)
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
        assert_eq!(version(Path::new("/bin/sh"), &probe(r"version (\S+)"), None), Ok("1.2.3".into()));
    }

    #[test]
    fn a_child_that_keeps_the_output_open_is_ended_and_the_version_is_read() {
        let (start, mut probe) = (Instant::now(), probe(r"version (\S+)"));
        let pid = std::env::temp_dir().join(format!("linerate-probe-{}", std::process::id()));
        probe.args[1] = format!("sleep 1000 & echo $! > {}; echo version 7", pid.display());
        assert_eq!(version(Path::new("/bin/sh"), &probe, None), Ok("7".into()));
        assert!(start.elapsed() < VERSION_DEADLINE);
        let child = std::fs::read_to_string(&pid).unwrap();
        std::fs::remove_file(&pid).unwrap();
        let command = format!("/proc/{}/cmdline", child.trim());
        let goes_on = || std::fs::read_to_string(&command).is_ok_and(|line| line.contains("sleep"));
        while goes_on() {
            assert!(start.elapsed() < VERSION_DEADLINE * 2, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn output_without_an_end_has_a_deadline_and_a_limit() {
        let mut probe = probe(r"version (\S+)");
        probe.args[1] = "yes & echo version 7; sleep 1000".into();
        let error = version(Path::new("/bin/sh"), &probe, None).unwrap_err();
        assert!(error.contains("printed no version within 5s"), "{error}");
    }

    #[test]
    fn output_without_a_version_is_part_of_the_error() {
        let error = version(Path::new("/bin/sh"), &probe(r"release (\S+)"), None).unwrap_err();
        assert!(error.contains("demo version"), "{error}");
    }
}
