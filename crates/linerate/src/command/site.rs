//! `linerate site`.

use super::history::with_files;
use super::stored;
use crate::cli::SiteArgs;
use crate::error::Error;
use crate::journal;
use crate::output::note;
use crate::report::{self, SiteRun};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes a static site of the runs in a folder.
///
/// # Errors
/// The folder contains no run, a run cannot be read, or a page cannot be written.
pub fn site(args: &SiteArgs) -> Result<ExitCode, Error> {
    let mut runs = Vec::new();
    for folder in folders(&args.folder)? {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let report = report::from_stored(&stored(&folder)?);
        runs.push(SiteRun { name, report: with_files(report, &folder) });
    }
    if runs.is_empty() {
        let place = args.folder.display();
        return Err(Error::Input(format!(
            "{place}: no folder in it has a run.json; `linerate run` makes one"
        )));
    }
    journal::make(&args.out)?;
    let number = runs.len();
    for (file, text) in report::site(runs) {
        journal::replace(&args.out.join(file), &text)?;
    }
    note(&format!("site of {number} run(s): {}", args.out.join("index.html").display()));
    Ok(ExitCode::SUCCESS)
}

/// The folders of runs, in order.
fn folders(of: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(of).map_err(Error::file(of))?;
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| journal::is_run(path)).collect();
    folders.sort();
    Ok(folders)
}
