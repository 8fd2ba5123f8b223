//! Where runs are kept: in `.linerate/` of the current folder, unless the user names another one.

use super::{JOURNAL_FILE, PACKED_FILE, RUN_FILE, is_run};
use crate::error::Error;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of the runs whose place the user did not name.
pub const RUNS: &str = ".linerate";

/// The content of `.linerate/.gitignore`: a run is no change of the user's repository.
const IGNORE_ALL: &str = "*\n";

/// Checks before a run that its folder can be made when there is a result: `out`, or one in [`RUNS`].
///
/// # Errors
/// The folder contains a run or other files, or cannot be written to; with the remedy.
pub fn check(out: Option<&Path>) -> Result<(), Error> {
    if let Some(out) = out {
        check_vacant(out)?;
    }
    check_writable(out.unwrap_or(Path::new(RUNS)))
}

/// Makes a folder with those above it. A new [`RUNS`] among these is hidden from git.
///
/// # Errors
/// A folder cannot be made.
pub fn make(folder: &Path) -> Result<(), Error> {
    if let Some(runs) = folder.ancestors().find(|one| one.file_name().is_some_and(|name| name == RUNS)) {
        fs::create_dir_all(runs.parent().unwrap_or(Path::new(""))).map_err(Error::file(runs))?;
        match fs::create_dir(runs) {
            Ok(()) => fs::write(runs.join(".gitignore"), IGNORE_ALL).map_err(Error::file(runs))?,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::file(runs)(e)),
        }
    }
    fs::create_dir_all(folder).map_err(Error::file(folder))
}

/// Folders that are made before there is a result. Those in which none came are removed in the end.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// The innermost first.
    folders: Vec<PathBuf>,
}

impl Reserved {
    /// Makes a folder as [`make`] does.
    ///
    /// # Errors
    /// A folder cannot be made.
    pub(super) fn new(folder: &Path) -> Result<Self, Error> {
        let is_new = |one: &&Path| !one.as_os_str().is_empty() && !one.exists();
        let folders = folder.ancestors().take_while(is_new).map(Path::to_owned).collect();
        let reserved = Self { folders };
        make(folder).map(|()| reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        for folder in &self.folders {
            let ignored = folder.join(".gitignore");
            let entries = fs::read_dir(folder).map_or(0, Iterator::count);
            // Its own file is alone in it.
            if entries == 1 && folder.ends_with(RUNS) {
                let _ = fs::remove_file(ignored);
            }
            // A folder with a run is not empty, and stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes the folder of a run that started at this time (RFC 3339, UTC). Those of the same second, also of
/// other processes, have numbers.
///
/// # Errors
/// The folder cannot be made.
pub(super) fn make_new(runs: &Path, started: &str) -> Result<PathBuf, Error> {
    make(runs)?;
    let name = started.replace(':', "").trim_end_matches('Z').to_owned();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    for name in std::iter::once(name.clone()).chain(numbered) {
        let folder = runs.join(name);
        // No other process can make the same one.
        match fs::create_dir(&folder) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder.clone()).map_err(Error::file(&folder)),
        }
    }
    unreachable!("some number is free")
}

/// The run in a folder of runs that measured last.
pub fn newest(runs: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path());
    folders.filter(|folder| is_run(folder)).max_by_key(|folder| (last_measured(folder), folder.clone()))
}

/// The time of the last entry of the journal, packed or not; without one, of the plan.
fn last_measured(folder: &Path) -> Option<SystemTime> {
    let time = |file: &str| fs::metadata(folder.join(file)).and_then(|found| found.modified()).ok();
    [JOURNAL_FILE, PACKED_FILE, RUN_FILE].into_iter().find_map(time)
}

fn check_vacant(folder: &Path) -> Result<(), Error> {
    if is_run(folder) {
        let folder = folder.display();
        return Err(Error::Input(format!(
            "--out {folder}: the folder contains a run: continue it by `linerate run --resume {folder}`, \
             or choose another folder"
        )));
    }
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(1..) => Err(Error::Input(format!(
            "--out {}: the folder is not empty: choose another one",
            folder.display()
        ))),
        Ok(_) => Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Error::file(folder)(e)),
    }
}

/// Checks that the nearest folder that exists, of this one and those above it, can be written to.
fn check_writable(folder: &Path) -> Result<(), Error> {
    let named = |one: &Path| if one.as_os_str().is_empty() { PathBuf::from(".") } else { one.to_owned() };
    let nearest = folder.ancestors().map(named).find(|one| one.exists()).unwrap_or_else(|| ".".into());
    let may = if nearest.is_dir() {
        access(&nearest, AccessFlags::W_OK | AccessFlags::X_OK)
    } else {
        Err(Errno::ENOTDIR)
    };
    may.map_err(|errno| Error::file(&nearest)(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    const STARTED: &str = "2026-12-01T10:11:12Z";

    struct Runs(PathBuf);

    impl Runs {
        fn new(name: &str) -> Self {
            let above = std::env::temp_dir().join(format!("linerate-place-{name}-{}", std::process::id()));
            Self(above.join(RUNS))
        }
    }

    impl Drop for Runs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(self.0.parent().unwrap());
        }
    }

    #[test]
    fn runs_of_one_second_that_begin_at_once_have_a_folder_each() {
        let (runs, start) = (Runs::new("second"), Barrier::new(16));
        let make = || {
            start.wait();
            make_new(&runs.0, STARTED).unwrap()
        };
        let folders: BTreeSet<PathBuf> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(folders.len(), 16);
        let first = runs.0.join("2026-12-01T101112");
        assert!(folders.contains(&first) && folders.contains(&first.with_file_name("2026-12-01T101112-16")));
    }

    #[test]
    fn a_new_folder_of_runs_is_hidden_from_git_and_one_that_the_user_shows_stays_so() {
        let runs = Runs::new("git");
        make(&runs.0.join("proxy/a")).unwrap();
        let ignore = runs.0.join(".gitignore");
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "*\n");
        fs::remove_file(&ignore).unwrap();
        make_new(&runs.0, STARTED).unwrap();
        assert!(!ignore.exists());
        let other = runs.0.with_file_name("results");
        make(&other).unwrap();
        assert_eq!(fs::read_dir(other).unwrap().count(), 0);
    }

    #[test]
    fn the_newest_run_is_the_one_that_measured_last() {
        let runs = Runs::new("newest");
        assert_eq!(newest(&runs.0), None);
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (name, journal, measured) in
            [("c", JOURNAL_FILE, 10), ("a", PACKED_FILE, 30), ("b", RUN_FILE, 20)]
        {
            let folder = runs.0.join(name);
            make(&folder).unwrap();
            fs::write(folder.join(RUN_FILE), "{}").unwrap();
            fs::write(folder.join(journal), "{}").unwrap();
            fs::File::open(folder.join(journal)).unwrap().set_modified(at(measured)).unwrap();
        }
        make(&runs.0.join("no-run")).unwrap();
        assert_eq!(newest(&runs.0), Some(runs.0.join("a")));
    }

    #[test]
    fn a_place_that_cannot_be_written_to_is_refused_before_anything_is_measured() {
        let error = check(Some(Path::new("/dev/null/a/b"))).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null"), "{error}");
        let runs = Runs::new("writable");
        assert!(check(Some(&runs.0.join("a"))).is_ok());
        assert!(!runs.0.exists());
    }
}
