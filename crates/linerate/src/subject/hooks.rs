//! Commands of a shell outside of the lab: `--setup` before anything is measured, `--cleanup` at the end.

use crate::error::Error;
use crate::measurement::{PlannedLoad, Subject};
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines of a failed command that are shown: the last ones contain the error.
const LINES: usize = 12;

/// Runs the setup of each subject, in their order.
///
/// # Errors
/// The first that fails, with its last lines.
pub(crate) fn set_up((subjects, load): (&[Subject], &PlannedLoad)) -> Result<(), Error> {
    let mut setups = subjects.iter().filter_map(|one| one.hooks()?.setup.as_deref());
    setups.try_for_each(|command| run("--setup", command, &load.folder))
}

/// Runs the cleanup of each subject.
///
/// # Errors
/// The first that failed; all are tried.
pub(crate) fn clean_up((subjects, load): (&[Subject], &PlannedLoad)) -> Result<(), Error> {
    let cleanups = subjects.iter().filter_map(|one| one.hooks()?.cleanup.as_deref());
    cleanups.map(|command| run("--cleanup", command, &load.folder)).fold(Ok(()), Result::and)
}

fn run(option: &str, command: &str, folder: &Path) -> Result<(), Error> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null());
    let output = shell.output().map_err(Error::file(Path::new("sh")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let last: String = lines.iter().rev().take(LINES).rev().map(|line| format!("\n  {line}")).collect();
    Err(Error::NothingMeasured(format!("{option} `{command}` ended with {}{last}", output.status)))
}
