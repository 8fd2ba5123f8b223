//! `run.json` and `journal.jsonl`: the files of a run, written so that no measured trial is lost.

use crate::error::Error;
use crate::measurement::{Duet, Entry, RUN_SCHEMA, Run, Trial};
use flate2::read::MultiGzDecoder;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const RUN_FILE: &str = "run.json";
const JOURNAL_FILE: &str = "journal.jsonl";
/// The same, packed by gzip(1): it can be reported, and resumed once it is unpacked.
const PACKED_FILE: &str = "journal.jsonl.gz";

/// Larger than nearly all lines.
const BUFFER: usize = 256 << 10;

/// The journal of a run under way. A trial is a line, flushed before the next one starts.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

/// A run on disk.
#[derive(Debug)]
pub struct Stored {
    pub run: Run,
    pub trials: Vec<Trial>,
    pub duets: Vec<Duet>,
    /// Lines that cannot be read, each with file and line; their trials can be made again.
    pub warnings: Vec<String>,
}

/// Makes the folder of a new run. The plan is written in one piece or not at all.
///
/// # Errors
/// The folder is not empty, or cannot be written to.
pub fn create(folder: &Path, run: &Run) -> Result<Journal, Error> {
    check_vacant(folder)?;
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    write_whole(&folder.join(RUN_FILE), &to_json(run))?;
    open(folder)
}

/// Replaces `run.json`, in one step.
///
/// # Errors
/// It cannot be written; the old one is unchanged.
pub fn write_run(folder: &Path, run: &Run) -> Result<(), Error> {
    let (path, new) = (folder.join(RUN_FILE), folder.join(".run.json.new"));
    write(&new, &to_json(run))?;
    fs::rename(&new, &path).map_err(Error::file(&path))
}

/// Checks that a new run may use this folder: it does not exist, or is empty.
///
/// # Errors
/// The folder contains a run or other files, with the remedy.
pub fn check_vacant(folder: &Path) -> Result<(), Error> {
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

/// True if the folder contains a run that can be resumed or reported.
#[must_use]
pub fn is_run(folder: &Path) -> bool {
    folder.join(RUN_FILE).exists()
}

/// Opens the journal of a stored run to go on with it.
///
/// # Errors
/// It cannot be written, or another linerate is writing it.
pub fn open(folder: &Path) -> Result<Journal, Error> {
    let path = folder.join(JOURNAL_FILE);
    if !path.exists() && folder.join(PACKED_FILE).exists() {
        let packed = folder.join(PACKED_FILE);
        return Err(Error::Input(format!(
            "{0}: the journal is packed: `gunzip {0}`, then go on",
            packed.display()
        )));
    }
    let file =
        OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(Error::file(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::Input(format!("{}: another linerate is writing to it", path.display())));
        }
        Err(TryLockError::Error(e)) => return Err(Error::file(&path)(e)),
    }
    let mut journal = Journal { path, file };
    journal.end_partial_line()?;
    Ok(journal)
}

impl Journal {
    /// Appends a trial or a duet.
    ///
    /// # Errors
    /// The disk is full, for example; earlier lines stay readable.
    pub fn append(&mut self, entry: &Entry) -> Result<(), Error> {
        let mut line =
            serde_json::to_vec(entry).map_err(|e| Error::Input(format!("an entry that is no JSON: {e}")))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::file(&self.path))
    }

    /// A line that a crash or a full disk cut off ends here, so that the next one starts on its own.
    fn end_partial_line(&mut self) -> Result<(), Error> {
        let bytes = fs::read(&self.path).map_err(Error::file(&self.path))?;
        if bytes.last().is_some_and(|b| *b != b'\n') {
            self.file.write_all(b"\n").map_err(Error::file(&self.path))?;
        }
        Ok(())
    }
}

/// Reads a stored run; damaged lines become warnings.
///
/// # Errors
/// There is no run, or its plan cannot be read.
pub fn read(folder: &Path) -> Result<Stored, Error> {
    let path = folder.join(RUN_FILE);
    let text = fs::read_to_string(&path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::Input(format!(
            "{}: there is no run in it (no {RUN_FILE}); start one with `linerate run SUITE --out {0}`",
            folder.display()
        )),
        _ => Error::file(&path)(e),
    })?;
    let run = parse_run(&path, &text)?;
    let (path, mut journal) = open_journal(folder)?;
    let mut stored = Stored { run, trials: Vec::new(), duets: Vec::new(), warnings: Vec::new() };
    let (place, mut line, mut number) = (path.display().to_string(), Vec::new(), 0);
    // Line by line: the text of a journal is larger than its entries.
    while journal.read_until(b'\n', &mut line).map_err(Error::file(&path))? > 0 {
        number += 1;
        match parse_line(&place, number, line.trim_ascii_end()) {
            None => {}
            Some(Ok(Entry::Trial(trial))) => stored.trials.push(trial),
            Some(Ok(Entry::Duet(duet))) => stored.duets.push(duet),
            Some(Err(warning)) => stored.warnings.push(warning),
        }
        line.clear();
    }
    Ok(stored)
}

/// The journal, packed or not; empty for a run without a trial.
fn open_journal(folder: &Path) -> Result<(PathBuf, Box<dyn BufRead>), Error> {
    let (path, packed) = (folder.join(JOURNAL_FILE), folder.join(PACKED_FILE));
    match File::open(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound && packed.exists() => {
            let file = File::open(&packed).map_err(Error::file(&packed))?;
            Ok((packed, Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok((path, Box::new(std::io::empty()))),
        other => {
            let file = other.map_err(Error::file(&path))?;
            Ok((path, Box::new(BufReader::with_capacity(BUFFER, file))))
        }
    }
}

fn parse_run(path: &Path, text: &str) -> Result<Run, Error> {
    let place = path.display();
    let run: Run = serde_json::from_str(text).map_err(|e| {
        Error::Input(format!(
            "{place}:{}: not a run that this linerate can read: {e}; its journal is untouched",
            e.line()
        ))
    })?;
    if run.schema != RUN_SCHEMA {
        return Err(Error::Input(format!(
            "{place}: its schema is `{}`, this linerate reads `{RUN_SCHEMA}`",
            run.schema
        )));
    }
    Ok(run)
}

/// The entries of a journal, and a warning for each other line.
#[must_use]
pub fn parse_journal(place: &str, bytes: &[u8]) -> (Vec<Entry>, Vec<String>) {
    let (mut entries, mut warnings) = (Vec::new(), Vec::new());
    for (index, line) in bytes.split(|b| *b == b'\n').enumerate() {
        match parse_line(place, index + 1, line) {
            None => {}
            Some(Ok(entry)) => entries.push(entry),
            Some(Err(warning)) => warnings.push(warning),
        }
    }
    (entries, warnings)
}

/// `None` for an empty line; a warning for one that is no entry.
fn parse_line(place: &str, number: usize, line: &[u8]) -> Option<Result<Entry, String>> {
    let warning = |e: serde_json::Error| {
        let what = if e.is_eof() { "cut off".to_owned() } else { format!("not an entry: {e}") };
        format!("{place}:{number}: {what}; the line is left out, `linerate run --resume` measures it again")
    };
    (!line.is_empty()).then(|| serde_json::from_slice(line).map_err(warning))
}

/// Writes a file that can be made again, such as a report.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::file(path))
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
