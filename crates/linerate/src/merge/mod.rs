//! Runs of several hosts: read, checked, and sorted by host. What is made of them is `report::merged`.

mod check;

use crate::error::Error;
use crate::journal;
use crate::measurement::Run;
use crate::report::{self, model::Report};
use std::fs;
use std::path::{Path, PathBuf};

/// A run and the host on which it was made.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) host: String,
    folder: PathBuf,
    run: Run,
    pub(crate) report: Report,
    /// Lines of the journal that cannot be read.
    pub(crate) warnings: Vec<String>,
}

/// Reads the runs of these arguments, `[NAME=]DIR`; those of one host follow each other.
///
/// # Errors
/// A folder contains no run, or two runs do not fit together.
pub(crate) fn read(arguments: &[String]) -> Result<Vec<Source>, Error> {
    let mut sources: Vec<Source> = Vec::new();
    for argument in arguments {
        let source = read_one(argument)?;
        sources.iter().try_for_each(|earlier| check::fit(earlier, &source))?;
        let behind = sources.iter().rposition(|earlier| earlier.host == source.host);
        sources.insert(behind.map_or(sources.len(), |place| place + 1), source);
    }
    Ok(sources)
}

fn read_one(argument: &str) -> Result<Source, Error> {
    // A folder may have such a name itself.
    let named =
        argument.split_once('=').filter(|(name, _)| !name.is_empty() && !Path::new(argument).exists());
    let folder = PathBuf::from(named.map_or(argument, |(_, folder)| folder));
    check_run(&folder)?;
    let stored = journal::read(&folder)?;
    if stored.run.policy().is_sequential() {
        return Err(Error::Input(format!(
            "{}: this run compares two builds; `linerate merge` takes runs of `linerate run`",
            folder.display()
        )));
    }
    let host = named.map_or_else(|| stored.run.host.name.clone(), |(name, _)| name.to_owned());
    let report = report::from_stored(&stored);
    Ok(Source { host, folder, run: stored.run, report, warnings: stored.journal.warnings })
}

/// Names the next step for a folder that is missing, or has runs only in its folders.
fn check_run(folder: &Path) -> Result<(), Error> {
    let place = folder.display();
    if !folder.exists() {
        return Err(Error::Input(format!("{place}: there is no such folder")));
    }
    if !folder.is_dir() {
        return Err(Error::Input(format!("{place}: this is a file; give the folder of a run")));
    }
    if journal::is_run(folder) {
        return Ok(());
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    if entries.map(|entry| entry.path()).any(|path| journal::is_run(&path)) {
        return Err(Error::Input(format!(
            "{place}: the runs are in its folders: give those, such as `linerate merge {place}/*`"
        )));
    }
    journal::read(folder).map(|_| ())
}
