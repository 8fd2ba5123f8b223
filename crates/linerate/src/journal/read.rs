//! The files of a stored run.

use super::{JOURNAL_FILE, PACKED_FILE, PROFILE_FILE, RUN_FILE};
use crate::error::Error;
use crate::measurement::journal::read_journal;
use crate::measurement::{PROFILE_SCHEMA, Profile, RUN_SCHEMA, Run, Stored};
use flate2::read::MultiGzDecoder;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Reads a stored run; damaged lines become warnings.
///
/// # Errors
/// There is no run, or its plan cannot be read.
pub fn read(folder: &Path) -> Result<Stored, Error> {
    let path = folder.join(RUN_FILE);
    let text = existing(&path)?.map(io::read_to_string).transpose().map_err(Error::file(&path))?;
    let text = text.ok_or_else(|| {
        Error::Input(format!(
            "{}: there is no run in it (no {RUN_FILE}); start one with `linerate run SUITE --out {0}`",
            folder.display()
        ))
    })?;
    let run = parse_run(&path, &text)?;
    let (path, journal) = open_journal(folder)?;
    let journal = read_journal(&run, &path.display().to_string(), journal).map_err(Error::file(&path))?;
    Ok(Stored { run, journal })
}

/// The profiles of a stored run; `None` where there are none, or none that this linerate can read.
pub fn profile(folder: &Path) -> Option<Profile> {
    let file = existing(&folder.join(PROFILE_FILE)).ok()??;
    let profile: Profile = serde_json::from_reader(BufReader::new(file)).ok()?;
    (profile.schema == PROFILE_SCHEMA && profile.is_sound()).then_some(profile)
}

/// The journal, packed or not; empty for a run without a trial.
fn open_journal(folder: &Path) -> Result<(PathBuf, Box<dyn BufRead + Send>), Error> {
    let (path, packed) = (folder.join(JOURNAL_FILE), folder.join(PACKED_FILE));
    if let Some(file) = existing(&path)? {
        return Ok((path, Box::new(BufReader::new(file))));
    }
    match existing(&packed)? {
        Some(file) => Ok((packed, Box::new(BufReader::new(MultiGzDecoder::new(file))))),
        None => Ok((path, Box::new(io::empty()))),
    }
}

/// The file, opened to read; `None` if there is none.
pub(crate) fn existing(path: &Path) -> Result<Option<File>, Error> {
    match regular(path, OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK)) {
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}

/// Opens a file of a run: a pipe or device would have no end.
pub(super) fn regular(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let file = options.open(path).map_err(Error::file(path))?;
    if file.metadata().map_err(Error::file(path))?.is_file() {
        return Ok(file);
    }
    Err(Error::Input(format!("{}: it is no file but a pipe, folder or device: remove it", path.display())))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_is_a_pipe_is_an_error() {
        let pipe = std::env::temp_dir().join(format!("linerate-journal-{}", std::process::id()));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let error = existing(&pipe).unwrap_err();
        std::fs::remove_file(&pipe).unwrap();
        assert!(error.to_string().contains("it is no file but a pipe"), "{error}");
    }
}
