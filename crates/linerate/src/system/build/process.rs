//! One command of a build: heard by its log, ended at its deadline or with linerate.

use crate::home::shortened;
use crate::interrupt;
use crate::system::probe::locate;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Ten times what the slowest build here took (two minutes, on one busy CPU): one that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(20 * 60);
/// Builds take seconds; nobody waits for a twentieth of one.
const POLL: Duration = Duration::from_millis(50);
/// What a compiler says last is what went wrong.
const LOG_LINES: usize = 12;

/// Why a command did not end well.
#[derive(Debug)]
pub(super) enum Failure {
    Reason(String),
    Interrupted,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Runs a command to its end; all that it says is added to the file `log`.
pub(super) fn run(words: &[String], folder: &Path, log: &Path) -> Result<(), Failure> {
    run_until(words, folder, log, Instant::now() + DEADLINE)
}

fn run_until(words: &[String], folder: &Path, log: &Path, deadline: Instant) -> Result<(), Failure> {
    let (name, arguments) = words.split_first().ok_or_else(|| "an empty build command".to_owned())?;
    let program = locate(name).ok_or_else(|| format!("{name}, which builds it, is not installed"))?;
    let failed = |e: std::io::Error| Failure::from(format!("cannot run {name}: {e}"));
    let output = OpenOptions::new().create(true).append(true).open(log).map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.stdout(output.try_clone().map_err(failed)?).stderr(output).process_group(0);
    let start = fs::metadata(log).map_or(0, |log| log.len());
    let interrupted = interrupt::watch();
    let mut child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return judge(status, name, log, start);
        }
        if interrupted.load(Ordering::Relaxed) {
            end(&mut child);
            return Err(Failure::Interrupted);
        }
        if Instant::now() > deadline {
            end(&mut child);
            let log = log.display();
            return Err(shortened(&format!("its build hangs: `{name}` was ended ({log})")).into());
        }
        std::thread::sleep(POLL);
    }
}

fn judge(status: ExitStatus, name: &str, log: &Path, start: u64) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(said.get(start as usize..).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = said.trim_end().lines().collect();
    let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    let log = log.display();
    Err(shortened(&format!("its build failed: `{name}` ended with {status}; all of it is in {log}\n{tail}"))
        .into())
}

/// With its children: `make` has many.
fn end(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Result<(), String> {
        let log =
            std::env::temp_dir().join(format!("linerate-build-{}-{}", std::process::id(), script.len()));
        let words = ["sh", "-c", script].map(str::to_owned);
        let result = run_until(&words, Path::new("/"), &log, Instant::now() + patience);
        let _ = fs::remove_file(&log);
        result.map_err(|failure| match failure {
            Failure::Reason(reason) => reason,
            Failure::Interrupted => "interrupted".into(),
        })
    }

    #[test]
    fn a_failed_command_is_told_with_its_last_words() {
        assert_eq!(shell("true", DEADLINE), Ok(()));
        let reason = shell("echo first; seq 99; echo 'no such header' >&2; exit 3", DEADLINE).unwrap_err();
        assert!(reason.contains("exit status: 3") && reason.ends_with("no such header"), "{reason}");
        assert!(!reason.contains("first"), "{reason}");
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let start = Instant::now();
        let reason = shell("sleep 1000 & sleep 1000", Duration::from_millis(100)).unwrap_err();
        assert!(reason.contains("hangs"), "{reason}");
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_tool_that_is_not_there_is_named() {
        let words = ["no-such-compiler".to_owned()];
        let failure = run(&words, Path::new("/"), Path::new("/dev/null")).unwrap_err();
        assert!(matches!(failure, Failure::Reason(reason) if reason.contains("no-such-compiler")));
    }
}
