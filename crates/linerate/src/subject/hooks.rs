//! Commands of a shell outside of the lab: `--setup` before anything is measured, `--cleanup` at the end.
//!
//! One signal ends a command, and a linerate that ends in any way, even killed, takes with it what the
//! command has left in its process group. Of the output the end is kept, however much there is.

use crate::error::Error;
use crate::interrupt;
use crate::measurement::{PlannedLoad, Subject};
use crate::system::group::ChildGroup;
use std::io::{self, PipeReader, Read};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of a failed command that are shown: the last ones contain the error.
const LINES: usize = 12;
/// Bytes of the output that are kept.
const KEPT: usize = 8 << 10;
/// How often a command is looked at.
const POLL: Duration = Duration::from_millis(10);
/// The longest wait for the output of a command that has ended: what it has left may hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// Runs the words after it. Its own input is a pipe of linerate, which the kernel closes when linerate ends:
/// then its process group is ended.
const WATCH: &str = "exec 3<&0 </dev/null
{ read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 &
\"$@\" 3<&-";

/// The end of a pipe; what a command has left ends with it.
pub(crate) type Tether = ChildStdin;

/// Runs the setup of each subject, in their order. What they leave in the background ends with the tethers.
///
/// # Errors
/// The first that fails, with its last lines, or a signal.
pub(crate) fn set_up(
    (subjects, load): (&[Subject], &PlannedLoad),
    interrupted: &AtomicBool,
) -> Result<Vec<Tether>, Error> {
    let setups = subjects.iter().filter_map(|one| one.hooks()?.setup.as_deref());
    let run = |command| Ok(run("--setup", command, &load.folder, interrupted)?.tether());
    setups.filter_map(|command| run(command).transpose()).collect()
}

/// Runs the cleanup of each subject, also after a signal; the next one ends it.
///
/// # Errors
/// The first that failed; all are tried.
pub(crate) fn clean_up((subjects, load): (&[Subject], &PlannedLoad)) -> Result<(), Error> {
    let interrupted = interrupt::watch();
    let cleanups = subjects.iter().filter_map(|one| one.hooks()?.cleanup.as_deref());
    let run = |command| {
        let done = run("--cleanup", command, &load.folder, &interrupted)?;
        done.end().map(drop).map_err(Error::file(Path::new("sh")))
    };
    cleanups.map(run).fold(Ok(()), Result::and)
}

/// Runs a command to its end; what it has left in its group goes on.
fn run(option: &str, command: &str, folder: &Path, interrupted: &AtomicBool) -> Result<ChildGroup, Error> {
    let failed = |e: io::Error| Error::file(Path::new("sh"))(e);
    if interrupted.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let (reader, writer) = io::pipe().map_err(failed)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", WATCH, option, "sh", "-c", command]).current_dir(folder).stdin(Stdio::piped());
    shell.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
    let mut group = ChildGroup::spawn(&mut shell).map_err(failed)?;
    // Its ends of the pipe would keep the reader waiting.
    drop(shell);
    let output = Output::read(reader);
    while !group.has_ended().map_err(failed)? {
        if interrupted.load(Ordering::Relaxed) {
            group.end().map_err(failed)?;
            return Err(Error::Interrupted);
        }
        thread::sleep(POLL);
    }
    let status = group.wait().map_err(failed)?;
    if status.success() {
        return Ok(group);
    }
    group.end().map_err(failed)?;
    Err(Error::NothingMeasured(reason(option, command, status, &output.last())))
}

fn reason(option: &str, command: &str, status: ExitStatus, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last: String = lines.iter().rev().take(LINES).rev().map(|line| format!("\n  {line}")).collect();
    format!("{option} `{command}` ended with {status}{last}")
}

/// The end of what a command prints; all of it is read, so that the command never waits.
struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    thread: thread::JoinHandle<()>,
}

impl Output {
    fn read(mut pipe: PipeReader) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let thread = thread::spawn(move || {
            let mut chunk = vec![0; KEPT];
            while let Ok(length @ 1..) = pipe.read(&mut chunk) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..length]);
                let before = kept.len().saturating_sub(KEPT);
                kept.drain(..before);
            }
        });
        Self { kept, thread }
    }

    fn last(&self) -> String {
        let end = Instant::now() + LAST_OUTPUT;
        while !self.thread.is_finished() && Instant::now() < end {
            thread::sleep(POLL);
        }
        String::from_utf8_lossy(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn go() -> AtomicBool {
        AtomicBool::new(false)
    }

    #[test]
    fn a_failed_command_is_named_with_its_last_lines_however_much_it_prints() {
        let command = "yes | head -c 50000000; seq 99; echo 'no database' >&2; exit 3";
        let error = run("--setup", command, Path::new("/"), &go()).unwrap_err().to_string();
        assert!(error.ends_with("  99\n  no database") && !error.contains("\n  y"), "{error}");
        assert!(error.contains("ended with exit status: 3"), "{error}");
    }

    #[test]
    fn a_signal_ends_a_command_with_its_children_and_no_next_one_starts() {
        let interrupted = Arc::new(go());
        let flag = Arc::clone(&interrupted);
        let signal = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            flag.store(true, Ordering::Relaxed);
        });
        let begin = Instant::now();
        let ended = run("--setup", "sleep 1000 & sleep 1000", Path::new("/"), &interrupted);
        signal.join().unwrap();
        assert!(matches!(ended, Err(Error::Interrupted)) && begin.elapsed() < Duration::from_secs(60));
        let file = std::env::temp_dir().join(format!("linerate-hook-{}", std::process::id()));
        let next = format!("touch '{}'", file.display());
        assert!(matches!(run("--setup", &next, Path::new("/"), &interrupted), Err(Error::Interrupted)));
        assert!(!file.exists());
    }

    #[test]
    fn what_a_setup_leaves_ends_with_its_tether() {
        let file = std::env::temp_dir().join(format!("linerate-tether-{}", std::process::id()));
        let command = format!("sleep 1000 & echo $! >'{}'", file.display());
        let tether = run("--setup", &command, Path::new("/"), &go()).unwrap().tether();
        let stat = format!("/proc/{}/stat", fs::read_to_string(&file).unwrap().trim());
        fs::remove_file(&file).unwrap();
        let lives = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
        assert!(tether.is_some() && lives());
        drop(tether);
        let end = Instant::now() + Duration::from_secs(20);
        while lives() && Instant::now() < end {
            thread::sleep(POLL);
        }
        assert!(!lives());
    }
}
