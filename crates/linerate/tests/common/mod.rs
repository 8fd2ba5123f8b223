//! Helpers for tests of the whole tool.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

pub(crate) mod program;
pub(crate) mod published;

use linerate::measurement::journal::read_journal;
use linerate::measurement::{Run, Unit};
use linerate::report::model::Report;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The report of a stored run.
pub(crate) fn report(run: &Path) -> Report {
    linerate::report::from_stored(&linerate::journal::read(run).unwrap())
}

/// A test's own folder, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A path of its own, whatever the name; the folder itself is not made.
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("linerate-test-{process}-{number}-{name}"));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The report of the run in it.
    pub(crate) fn report(&self) -> Report {
        report(&self.0)
    }

    pub(crate) fn str(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn read(&self, file: &str) -> String {
        let path = self.0.join(file);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The units of cells alone.
    pub(crate) fn trials(&self) -> Vec<Named> {
        trials(&self.0)
    }

    /// The units of two cells.
    pub(crate) fn duets(&self) -> Vec<Named> {
        duets(&self.0)
    }
}

/// The units of cells alone in the folder of a run.
pub(crate) fn trials(folder: &Path) -> Vec<Named> {
    units(folder).filter(|unit| unit.sides.is_one()).collect()
}

/// The units of two cells in the folder of a run.
pub(crate) fn duets(folder: &Path) -> Vec<Named> {
    units(folder).filter(|unit| !unit.sides.is_one()).collect()
}

/// Every readable line of the journal.
fn units(folder: &Path) -> impl Iterator<Item = Named> {
    let run: Run = serde_json::from_str(&fs::read_to_string(folder.join("run.json")).unwrap()).unwrap();
    let bytes = fs::read(folder.join("journal.jsonl")).unwrap();
    let journal = read_journal(&run, "journal", &bytes[..]).unwrap();
    let named = move |unit: Unit| Named { id: unit.sides.id(&run.suites[unit.suite]), unit };
    journal.units.into_iter().map(named)
}

/// A unit with the name of its cells.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) id: String,
    unit: Unit,
}

impl Deref for Named {
    type Target = Unit;

    fn deref(&self) -> &Unit {
        &self.unit
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The result of a command.
pub(crate) struct Output {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn run(command: &mut Command) -> Self {
        let out = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { status: out.status.code().unwrap_or(-1), stdout: text(&out.stdout), stderr: text(&out.stderr) }
    }
}

pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// linerate on a script of `tests/lab`, with the suites and systems there.
pub(crate) fn linerate(script: &str, args: &[&str]) -> Output {
    linerate_at(&tests().join("lab"), script, args)
}

/// As [`linerate`], with other suites and systems.
pub(crate) fn linerate_at(home: &Path, script: &str, args: &[&str]) -> Output {
    run_scripted(Command::new(env!("CARGO_BIN_EXE_linerate")).args(args), home, script)
}

/// A command that starts linerate, on a script.
pub(crate) fn run_scripted(command: &mut Command, home: &Path, script: &str) -> Output {
    let cache = Folder::new(&format!("cache-{:?}", std::thread::current().id()));
    command.env("LINERATE_HOME", home).env("XDG_CACHE_HOME", cache.path());
    Output::run(command.env("LINERATE_LAB_SCRIPT", tests().join("lab").join(format!("{script}.toml"))))
}

/// A run on a script, always with the same seed, and what it printed.
pub(crate) fn run(script: &str, args: &[&str]) -> (Folder, Output) {
    let folder = Folder::new(script);
    let out = linerate(script, &[&["run", "--seed", "7", "--out", folder.str()], args].concat());
    (folder, out)
}

/// As [`run`], to its end.
pub(crate) fn complete(script: &str, args: &[&str]) -> Folder {
    let (folder, out) = run(script, args);
    assert_eq!(out.status, 0, "{}", out.stderr);
    folder
}

/// Replaces times of day and run ids, which differ from run to run.
pub(crate) fn normalised(text: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-?\d\d-?\d\dT\d\d:?\d\d:?\d\dZ").unwrap();
    time.replace_all(text, "<time>").replace(env!("CARGO_PKG_VERSION"), "<version>")
}

/// Compares with `tests/golden/<name>`; `UPDATE_GOLDEN=1 cargo test` writes it anew, for a look at the
/// difference.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = tests().join("golden").join(name);
    let text = normalised(text);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name} differs; UPDATE_GOLDEN=1 writes it anew");
}

/// Copies a folder recursively.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// True for messages of package managers and compilers about an unavailable dependency; other errors are
/// bugs.
pub(crate) fn is_offline(reason: &str) -> bool {
    ["failed to download", "Could not resolve host", "nlohmann/json.hpp: No such file"]
        .iter()
        .any(|words| reason.contains(words))
}

/// Prints that a test is skipped on this machine, and why.
#[allow(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]
pub(crate) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
