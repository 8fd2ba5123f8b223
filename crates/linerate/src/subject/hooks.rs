//! Commands of a shell outside of the lab: `--setup` before anything is measured, `--cleanup` at the end.
//!
//! One signal or the end of its time ends a command, and a linerate that ends in any way, even killed, takes
//! with it what the command has left in its process group. Of the output the end is kept, however much there
//! is.

use crate::error::Error;
use crate::interrupt;
use crate::measurement::{PlannedLoad, Subject};
use crate::system::group::ChildGroup;
use std::io::{self, PipeReader, Read};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a setup may take where nothing else is given: it may be a build.
const SETUP: Duration = Duration::from_secs(30 * 60);
/// How long a cleanup may take.
const CLEANUP: Duration = Duration::from_secs(5 * 60);
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
    let within = load.setup_within.map_or(SETUP, Duration::from);
    let run = |command| Ok(run(("--setup", within), command, &load.folder, interrupted)?.tether());
    setups.filter_map(|command| run(command).transpose()).collect()
}

/// Runs the cleanup of each subject, also after a signal; the next one ends it.
///
/// # Errors
/// The first that failed; all are tried.
pub(crate) fn clean_up((subjects, load): (&[Subject], &PlannedLoad)) -> Result<(), Error> {
    let interrupted = interrupt::watch();
    let cleanups = subjects.iter().filter_map(|one| one.hooks()?.cleanup.as_deref());
    let within = load.cleanup_within.map_or(CLEANUP, Duration::from);
    let run = |command| {
        let done = run(("--cleanup", within), command, &load.folder, &interrupted)?;
        done.end().map(drop).map_err(Error::file(Path::new("sh")))
    };
    cleanups.map(run).fold(Ok(()), Result::and)
}

/// Runs the command of an option to its end, within a time; what it has left in its group goes on.
fn run(
    (option, within): (&str, Duration),
    command: &str,
    folder: &Path,
    interrupted: &AtomicBool,
) -> Result<ChildGroup, Error> {
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
    let (begin, output) = (Instant::now(), Output::read(reader));
    while !group.has_ended().map_err(failed)? {
        if interrupted.load(Ordering::Relaxed) {
            group.end().map_err(failed)?;
            return Err(Error::Interrupted);
        }
        if begin.elapsed() >= within {
            group.end().map_err(failed)?;
            let how = format!("did not end within {within:?} and was ended; {option}-time is its limit");
            return Err(Error::NothingMeasured(reason(option, command, &how, &output.last())));
        }
        thread::sleep(POLL);
    }
    let status = group.wait().map_err(failed)?;
    if status.success() {
        return Ok(group);
    }
    group.end().map_err(failed)?;
    let how = format!("ended with {status}");
    Err(Error::NothingMeasured(reason(option, command, &how, &output.last())))
}

fn reason(option: &str, command: &str, how: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last: String = lines.iter().rev().take(LINES).rev().map(|line| format!("\n  {line}")).collect();
    format!("{option} `{command}` {how}{last}")
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
    use crate::measurement::{Hooks, PlannedCommand};
    use linerate_contract::Nanos;
    use std::fs;
    use std::io::Write;

    const USUAL: (&str, Duration) = ("--setup", SETUP);

    fn go() -> AtomicBool {
        AtomicBool::new(false)
    }

    #[test]
    fn a_failed_command_is_named_with_its_last_lines_however_much_it_prints() {
        let command = "yes | head -c 50000000; seq 99; echo 'no database' >&2; exit 3";
        let error = run(USUAL, command, Path::new("/"), &go()).unwrap_err().to_string();
        assert!(error.ends_with("  99\n  no database") && !error.contains("\n  y"), "{error}");
        assert!(error.contains("ended with exit status: 3"), "{error}");
    }

    #[test]
    fn of_endless_output_little_is_kept() {
        let (reader, mut writer) = io::pipe().unwrap();
        let output = Output::read(reader);
        (0..1_000).for_each(|_| writer.write_all(&[b'y'; 50_000]).unwrap());
        drop(writer);
        assert_eq!(output.last().len(), KEPT);
        let kept = output.kept.lock().unwrap().capacity();
        assert!(kept <= 4 * KEPT, "{kept} bytes");
    }

    #[test]
    fn a_command_that_does_not_end_is_ended_with_its_children_and_names_its_limit() {
        let within = Duration::from_millis(300);
        for option in ["--setup", "--cleanup"] {
            let file = std::env::temp_dir().join(format!("linerate-endless{option}-{}", std::process::id()));
            let command = format!("echo waiting; sleep 1000 & echo $! >'{}'; wait", file.display());
            let error = run((option, within), &command, Path::new("/"), &go()).unwrap_err().to_string();
            let how = "did not end within 300ms and was ended";
            for part in [option, &command, how, &format!("{option}-time"), "\n  waiting"] {
                assert!(error.contains(part), "{part}: {error}");
            }
            assert!(is_gone(&file));
            fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_cleanup_that_does_not_end_keeps_no_next_one_from_running() {
        let file = std::env::temp_dir().join(format!("linerate-next-{}", std::process::id()));
        let of = |name: &str, cleanup: String| {
            let hooks = Hooks { cleanup: Some(cleanup), ..Hooks::default() };
            Subject::Command(PlannedCommand { name: name.into(), hooks, ..PlannedCommand::default() })
        };
        let subjects = [of("a", "sleep 1000".into()), of("b", format!("touch '{}'", file.display()))];
        let within = Some(Nanos(200_000_000));
        let load = PlannedLoad { folder: "/".into(), cleanup_within: within, ..PlannedLoad::default() };
        let error = clean_up((&subjects, &load)).unwrap_err().to_string();
        assert!(error.contains("--cleanup `sleep 1000` did not end within 200ms"), "{error}");
        assert!(file.exists());
        fs::remove_file(&file).unwrap();
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
        let ended = run(USUAL, "sleep 1000 & sleep 1000", Path::new("/"), &interrupted);
        signal.join().unwrap();
        assert!(matches!(ended, Err(Error::Interrupted)) && begin.elapsed() < Duration::from_secs(60));
        let file = std::env::temp_dir().join(format!("linerate-hook-{}", std::process::id()));
        let next = format!("touch '{}'", file.display());
        assert!(matches!(run(USUAL, &next, Path::new("/"), &interrupted), Err(Error::Interrupted)));
        assert!(!file.exists());
    }

    #[test]
    fn what_a_setup_leaves_ends_with_its_tether() {
        let file = std::env::temp_dir().join(format!("linerate-tether-{}", std::process::id()));
        let command = format!("sleep 1000 & echo $! >'{}'", file.display());
        let tether = run(USUAL, &command, Path::new("/"), &go()).unwrap().tether();
        assert!(tether.is_some() && lives(&file));
        drop(tether);
        assert!(is_gone(&file));
        fs::remove_file(&file).unwrap();
    }

    /// Whether the process whose number a file has is there.
    fn lives(file: &Path) -> bool {
        let stat = format!("/proc/{}/stat", fs::read_to_string(file).unwrap().trim());
        fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"))
    }

    fn is_gone(file: &Path) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while lives(file) && Instant::now() < end {
            thread::sleep(POLL);
        }
        !lives(file)
    }
}
