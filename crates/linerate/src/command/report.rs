//! `linerate report`.

use super::{Terminal, print, stored};
use crate::cli::ReportArgs;
use crate::error::Error;
use crate::progress::note;
use crate::report;
use crate::report::comparison::with_history;
use std::process::ExitCode;

/// Makes the reports of a run again, from its journal.
///
/// # Errors
/// The folder contains no run, `run.json` or the journal cannot be read, or the format is unknown.
pub fn report(args: &ReportArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let format = report::format(&args.format).map_err(Error::Input)?;
    let report = with_history(report::from_stored(&stored(&args.folder)?), &args.folder);
    if let Err(error) = report::write_files(&args.folder, &report) {
        // A published run may be read-only; the report is printed all the same.
        note(&format!("warning: {error}"));
    }
    print(&format.render(&report, terminal.style(args.long)))
}
