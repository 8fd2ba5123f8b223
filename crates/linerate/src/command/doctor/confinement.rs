//! The reach of a system on this machine: a process in the lab tries it.

use crate::lab::namespaces::Namespaces;
use crate::lab::program;
use crate::lab::{Lab, LabError, Label, Launch, Purpose, Ready, StopSignal};
use crate::path::Shape;
use std::path::PathBuf;
use std::time::Duration;

/// Prints a line for each thing that it reaches; `$1` is the home, `$2` the cache.
const SCRIPT: &str = r#"
ls "$1" > /dev/null 2>&1 && echo "reached the home"
ls "$2" > /dev/null 2>&1 && echo "reached the cache"
(: > /etc/linerate-doctor) 2> /dev/null && echo "reached /etc, to write"
[ -z "$(ls -A /tmp)" ] || echo "reached the host's /tmp"
(: > /tmp/own) 2> /dev/null || echo "reached no /tmp of its own"
grep -q 'NoNewPrivs:.1' /proc/self/status && echo "no_new_privs"
exit 0
"#;

/// The things that the process reached.
#[derive(Debug)]
pub(super) struct Seen {
    /// In words; nothing where the lab confines systems.
    pub(super) reached: Vec<String>,
    pub(super) no_new_privileges: bool,
}

/// Runs the process in a topology of its own.
pub(super) fn tried(lab: &mut Namespaces, label: &Label) -> Result<Seen, LabError> {
    let folder = |path: Option<PathBuf>| path.unwrap_or_default().display().to_string();
    let arguments = ["-c", SCRIPT, "sh", &folder(program::home()), &folder(program::cache())];
    lab.raise(label, Shape::Link.into(), Vec::new())?;
    let launch = Launch {
        system: "the check of what a system can reach".into(),
        folder: "doctor".into(),
        process: Some(("/bin/sh".into(), arguments.map(str::to_owned).into())),
        ready: Ready::Event,
        stop: StopSignal::Kill,
        ..Launch::default()
    };
    let lines = lab.run(&launch, Purpose::Verify, Duration::from_secs(10))?.stdout;
    let reached = lines.iter().filter_map(|line| line.strip_prefix("reached ")).map(str::to_owned).collect();
    Ok(Seen { reached, no_new_privileges: lines.iter().any(|line| line == "no_new_privs") })
}
