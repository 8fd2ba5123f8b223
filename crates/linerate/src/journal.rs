//! `run.json` and `journal.jsonl`: the files of a run, written so that no measured trial is lost.

mod place;
mod read;

use place::Reserved;
pub use place::{RUNS, check, make, newest};

#[cfg(any(test, fuzzing))]
pub(crate) use read::parse_run;
pub use read::{profile, read};

use crate::bounded;
use crate::error::Error;
use crate::measurement::journal::line;
use crate::measurement::{Profile, Run, Unit};
use crate::printable::printable;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const RUN_FILE: &str = "run.json";
const JOURNAL_FILE: &str = "journal.jsonl";
/// The journal, packed by gzip(1): it can be reported, and resumed once it is unpacked.
const PACKED_FILE: &str = "journal.jsonl.gz";
/// The functions of servers, where that was looked for.
const PROFILE_FILE: &str = "profile.json";

/// The journal of a run under way. A trial is a line, flushed before the next one starts.
///
/// The folder is there from the start, so that a server which lists it has one content; a run that measures
/// nothing leaves none. The first trial writes the plan.
#[derive(Debug)]
pub struct Journal {
    /// The folder that the user named; `None`: one in [`RUNS`], by the time of the start.
    out: Option<PathBuf>,
    run: Run,
    open: Option<Open>,
    /// Folders that were made for a run without a trial yet.
    _reserved: Reserved,
}

/// The file of a journal, whose folder has the plan.
#[derive(Debug)]
struct Open {
    folder: PathBuf,
    path: PathBuf,
    file: File,
}

/// True if the folder contains a run that can be resumed or reported.
pub fn is_run(folder: &Path) -> bool {
    folder.join(RUN_FILE).exists()
}

impl Journal {
    /// The journal of a new run, in the folder `out` or in one of its own.
    ///
    /// # Errors
    /// As of [`check`].
    pub fn new(out: Option<PathBuf>, run: &Run) -> Result<Self, Error> {
        check(out.as_deref())?;
        let reserved = Reserved::new(out.as_deref().unwrap_or(Path::new(RUNS)))?;
        Ok(Self { out, run: run.clone(), open: None, _reserved: reserved })
    }

    /// The journal of a stored run, to go on with it.
    ///
    /// # Errors
    /// The journal cannot be written, or another linerate is writing it.
    pub fn open(folder: &Path, run: &Run) -> Result<Self, Error> {
        let open = Open::new(folder.to_owned())?;
        let reserved = Reserved::default();
        Ok(Self { out: Some(folder.to_owned()), run: run.clone(), open: Some(open), _reserved: reserved })
    }

    /// The folder of the run, once it has a trial.
    pub fn folder(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| open.folder.as_path())
    }

    /// Replaces the plan, `run.json`, in one step.
    ///
    /// # Errors
    /// The plan cannot be written; the old one is unchanged.
    pub fn plan(&mut self, run: &Run) -> Result<(), Error> {
        self.run.clone_from(run);
        self.folder().map_or(Ok(()), |folder| replace(&folder.join(RUN_FILE), &to_json(run)))
    }

    /// Appends a unit.
    ///
    /// # Errors
    /// The disk is full, for example; earlier lines stay readable.
    pub fn append(&mut self, unit: &Unit) -> Result<(), Error> {
        let line = line(&self.run, unit).map_err(|e| Error::Input(format!("a unit that is no JSON: {e}")))?;
        if self.open.is_none() {
            self.open = Some(self.begin()?);
        }
        self.open.iter_mut().try_for_each(|open| open.append(&line))
    }

    /// Makes the folder. The plan is written in one piece or not at all.
    fn begin(&self) -> Result<Open, Error> {
        let folder = match &self.out {
            Some(out) => {
                check(Some(out))?;
                make(out)?;
                out.clone()
            }
            None => place::make_new(Path::new(RUNS), &self.run.started)?,
        };
        write_whole(&folder.join(RUN_FILE), &to_json(&self.run))?;
        Open::new(folder)
    }
}

impl Open {
    fn new(folder: PathBuf) -> Result<Self, Error> {
        let path = folder.join(JOURNAL_FILE);
        if !path.exists() && folder.join(PACKED_FILE).exists() {
            let packed = folder.join(PACKED_FILE);
            return Err(Error::Input(format!(
                "{0}: the journal is packed: `gunzip {0}`, then go on",
                packed.display()
            )));
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).custom_flags(nix::libc::O_NOFOLLOW);
        let file = bounded::regular(&path, &mut options)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Input(format!("{}: another linerate is writing to it", path.display())));
            }
            Err(TryLockError::Error(e)) => return Err(Error::file(&path)(e)),
        }
        let mut journal = Self { folder, path, file };
        journal.end_partial_line()?;
        Ok(journal)
    }

    fn append(&mut self, line: &[u8]) -> Result<(), Error> {
        self.file.write_all(line).map_err(Error::file(&self.path))
    }

    /// A line that a crash or a full disk cut off ends here, so that the next one starts on its own.
    fn end_partial_line(&mut self) -> Result<(), Error> {
        let bytes = fs::read(&self.path).map_err(Error::file(&self.path))?;
        if bytes.last().is_some_and(|b| *b != b'\n') {
            self.append(b"\n")?;
        }
        Ok(())
    }
}

/// Writes a file that can be made again, without characters that a terminal obeys.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, printable(text).as_bytes()).map_err(Error::file(path))
}

/// Writes the files of a report, each in one step.
///
/// # Errors
/// A file cannot be written.
pub fn write_report(folder: &Path, files: Vec<(String, String)>) -> Result<(), Error> {
    files.iter().try_for_each(|(name, text)| replace(&folder.join(name), text))
}

/// Writes the profiles of a run, in one step.
///
/// # Errors
/// They cannot be written.
pub fn write_profile(folder: &Path, profile: &Profile) -> Result<(), Error> {
    let text = serde_json::to_string(profile).expect("a profile has string keys only");
    replace(&folder.join(PROFILE_FILE), &text)
}

/// As [`write`], in one step. A link of this name is replaced and not followed: the folder of a run may come
/// from someone else.
///
/// # Errors
/// The file cannot be written; the old one is unchanged.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::file(&new)(e)),
        _ => {}
    }
    let mut file = File::create_new(&new).map_err(Error::file(&new))?;
    file.write_all(printable(text).as_bytes()).map_err(Error::file(&new))?;
    fs::rename(&new, path).map_err(Error::file(path))
}

/// Writes a file that gets its name when it is complete, so a killed process leaves no partial file.
fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let unnamed = OpenOptions::new().write(true).custom_flags(nix::libc::O_TMPFILE).open(folder);
    let Ok(mut file) = unnamed else {
        return write(path, text); // a file system without O_TMPFILE, see open(2)
    };
    file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(Error::file(path))?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    let here = nix::fcntl::AT_FDCWD;
    nix::unistd::linkat(here, unnamed.as_str(), here, path, nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW)
        .map_err(|e| Error::file(path)(e.into()))
}

fn to_json(run: &Run) -> String {
    serde_json::to_string_pretty(run).expect("a run has string keys only") + "\n"
}
