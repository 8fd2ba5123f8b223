//! One command of a build, with a log; it is ended at its deadline, or when linerate ends in any way.
//!
//! A shell between the two watches a pipe, which the kernel closes also for a linerate that was killed, and
//! then ends the process group. A process that has left the group goes on, and with it the lock of the build,
//! which every process of the build inherits: no other build writes to the same files.

use crate::home::shortened;
use crate::interrupt;
use crate::lab::program::locate;
use crate::system::group::ChildGroup;
use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
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

/// Runs the words after it. Its own input is the pipe of linerate, its output the log, and its error output
/// the lock.
const WATCH: &str = "exec 3<&0 4>&2 2>&1 </dev/null
{ read -r _ <&3; kill -s KILL 0; } 4>&- &
\"$@\" 3<&-
status=$?
kill $!
exit $status";

/// Runs a command to its end and appends its output to the file `log`. The caller holds the lock.
pub(super) fn run(
    words: &[String],
    folder: &Path,
    env: &Environment,
    log: &Path,
    lock: &File,
) -> Result<(), Failure> {
    run_until(words, folder, env, log, lock, Instant::now() + DEADLINE)
}

fn run_until(
    words: &[String],
    folder: &Path,
    env: &Environment,
    log: &Path,
    lock: &File,
    deadline: Instant,
) -> Result<(), Failure> {
    let (name, arguments) = words.split_first().ok_or_else(|| "an empty build command".to_owned())?;
    let program = locate(name).ok_or_else(|| format!("{name}, which builds it, is not installed"))?;
    let failed = |e: std::io::Error| Failure::from(format!("cannot run {name}: {e}"));
    let output = OpenOptions::new().create(true).append(true).open(log).map_err(failed)?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WATCH, "build"]).arg(program).args(arguments);
    command.current_dir(folder).envs(env.iter().cloned());
    command.stdin(Stdio::piped()).stdout(output).stderr(lock.try_clone().map_err(failed)?);
    let start = fs::metadata(log).map_or(0, |log| log.len());
    let interrupted = interrupt::watch();
    let group = ChildGroup::spawn(&mut command).map_err(failed)?;
    loop {
        if group.has_ended().map_err(failed)? {
            return judge(group.end().map_err(failed)?, name, log, start);
        }
        if interrupted.load(Ordering::Relaxed) {
            group.end().map_err(failed)?;
            return Err(Failure::Interrupted);
        }
        if Instant::now() > deadline {
            group.end().map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<(), String> {
        let name = format!("linerate-build-{}-{}", std::process::id(), script.len());
        let [log, lock] = ["log", "lock"].map(|end| std::env::temp_dir().join(format!("{name}.{end}")));
        let words = ["sh", "-c", script].map(str::to_owned);
        let held = File::create(&lock).unwrap();
        held.lock().unwrap();
        let result = run_until(&words, Path::new("/"), &[], &log, &held, Instant::now() + timeout);
        drop(held);
        let leaves = script.contains("setsid");
        let end = Instant::now() + Duration::from_secs(if leaves { 3 } else { 30 });
        let mut is_free = false;
        while !is_free && Instant::now() < end {
            is_free = File::open(&lock).unwrap().try_lock().is_ok();
            std::thread::sleep(POLL);
        }
        assert_eq!(is_free, !leaves, "only a process that left the group has the lock");
        let _ = [log, lock].map(fs::remove_file);
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
    fn what_a_build_leaves_ends_with_it_and_what_escapes_keeps_the_lock() {
        assert_eq!(shell("sleep 1000 & true", DEADLINE), Ok(()));
        // The build ends when the other has left its group, which may take a moment.
        let escape = "f=$(mktemp -u); setsid sh -c \"touch $f; exec sleep 15\" & \
                      until [ -e $f ]; do sleep 0.01; done; rm $f";
        assert_eq!(shell(escape, DEADLINE), Ok(()));
    }

    #[test]
    fn a_build_has_no_input() {
        assert_eq!(shell("! read line", DEADLINE), Ok(()));
    }

    #[test]
    fn a_tool_that_is_not_there_is_named() {
        let words = ["no-such-compiler".to_owned()];
        let null = Path::new("/dev/null");
        let lock = File::open(null).unwrap();
        let failure = run(&words, Path::new("/"), &[], null, &lock).unwrap_err();
        assert!(matches!(failure, Failure::Reason(reason) if reason.contains("no-such-compiler")));
    }
}
