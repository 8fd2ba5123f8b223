//! One command of a build, with a log; it is ended at its deadline, or when linerate is interrupted.

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

/// Ten times the slowest build (two minutes, on one busy CPU): one that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(20 * 60);
/// Builds take seconds, so 50 ms more are not noticed.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// The last lines of a compiler's output contain the error.
const LOG_LINES: usize = 12;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    Reason(String),
    Interrupted,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Variables in place of those of linerate's own environment.
pub(super) type Environment = [(String, String)];

/// Runs a command to its end and appends its output to the file `log`.
pub(super) fn run(words: &[String], folder: &Path, env: &Environment, log: &Path) -> Result<(), Failure> {
    run_until(words, folder, env, log, Instant::now() + DEADLINE)
}

fn run_until(
    words: &[String],
    folder: &Path,
    env: &Environment,
    log: &Path,
    deadline: Instant,
) -> Result<(), Failure> {
    let (name, arguments) = words.split_first().ok_or_else(|| "an empty build command".to_owned())?;
    let program = locate(name).ok_or_else(|| format!("{name}, which builds it, is not installed"))?;
    let failed = |e: std::io::Error| Failure::from(format!("cannot run {name}: {e}"));
    let output = OpenOptions::new().create(true).append(true).open(log).map_err(failed)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(env.iter().cloned()).stdin(Stdio::null());
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
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(text.get(start as usize..).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
    let log = log.display();
    Err(shortened(&format!("its build failed: `{name}` ended with {status}; full output: {log}\n{tail}"))
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

    fn shell(script: &str, timeout: Duration) -> Result<(), String> {
        let log =
            std::env::temp_dir().join(format!("linerate-build-{}-{}", std::process::id(), script.len()));
        let words = ["sh", "-c", script].map(str::to_owned);
        let result = run_until(&words, Path::new("/"), &[], &log, Instant::now() + timeout);
        let _ = fs::remove_file(&log);
        result.map_err(|failure| match failure {
            Failure::Reason(reason) => reason,
            Failure::Interrupted => "interrupted".into(),
        })
    }

    #[test]
    fn the_error_of_a_failed_command_ends_with_its_last_lines() {
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
        let failure = run(&words, Path::new("/"), &[], Path::new("/dev/null")).unwrap_err();
        assert!(matches!(failure, Failure::Reason(reason) if reason.contains("no-such-compiler")));
    }
}
