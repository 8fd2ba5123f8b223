//! `linerate report`.

use super::history::with_files;
use super::{Terminal, print, report_note, stored};
use crate::cli::ReportArgs;
use crate::error::Error;
use crate::journal::{self, RUNS};
use crate::output::note;
use crate::report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes the report of a run again, from its journal: prints it, and writes it where the user says.
///
/// # Errors
/// The folder contains no run, `run.json` or the journal cannot be read, the format is unknown, or the report
/// cannot be written.
pub fn report(args: &ReportArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let format = report::format(&args.format).map_err(Error::Input)?;
    let folder = args.folder.clone().map_or_else(newest, Ok)?;
    if let Some(out) = &args.out {
        check_out(out, &folder)?;
    }
    let report = with_files(report::from_stored(&stored(&folder)?), &folder);
    let printed = print(&format.render(&report, terminal.style(args.long)));
    if let Some(out) = &args.out {
        journal::make(out)?;
        journal::write_report(out, report::files(&report))?;
        note(&report_note(out));
    }
    printed
}

/// The run in the current folder that measured last.
fn newest() -> Result<PathBuf, Error> {
    let folder = journal::newest(Path::new(RUNS)).ok_or_else(|| {
        Error::Input(format!(
            "{RUNS}: there is no run in it; `linerate compare`, `gate` and `run` make one here. \
             Of another folder: linerate report DIR"
        ))
    })?;
    note(&format!("run: {}", folder.display()));
    Ok(folder)
}

/// Another run keeps its own report.
fn check_out(out: &Path, run: &Path) -> Result<(), Error> {
    let is_same = || out.canonicalize().ok() == run.canonicalize().ok();
    if journal::is_run(out) && !is_same() {
        return Err(Error::Input(format!(
            "--out {}: the folder contains another run, whose report would be replaced: choose another one",
            out.display()
        )));
    }
    Ok(())
}
