//! The files of a stored run.

use super::{JOURNAL_FILE, PACKED_FILE, PROFILE_FILE, RUN_FILE};
use crate::bounded::{self, existing};
use crate::error::Error;
use crate::measurement::journal::read_journal;
use crate::measurement::{PROFILE_SCHEMA, Profile, RUN_SCHEMA, Run, Stored};
use flate2::read::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The most that is read of profiles, in bytes; those of a suite of forty rows have a tenth of it.
const LARGEST_PROFILE: u64 = 256 << 20;

/// Reads a stored run; damaged lines become warnings.
///
/// # Errors
/// There is no run, or its plan cannot be read.
pub fn read(folder: &Path) -> Result<Stored, Error> {
    let path = folder.join(RUN_FILE);
    let text = existing(&path)?.map(|file| bounded::whole(&path, file)).transpose()?;
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
    let profile: Profile = serde_json::from_reader(BufReader::new(file.take(LARGEST_PROFILE))).ok()?;
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

/// # Errors
/// Another format, or a value that no run has.
pub(crate) fn parse_run(path: &Path, text: &str) -> Result<Run, Error> {
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
    run.check().map_err(|reason| Error::Input(format!("{place}: {reason}")))?;
    Ok(run)
}
