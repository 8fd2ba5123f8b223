//! `linerate report`.

use super::{Terminal, print, remark};
use crate::cli::ReportArgs;
use crate::error::Error;
use crate::journal;
use crate::report::{self, Format};
use std::process::ExitCode;

/// Makes the reports of a run again, from its journal.
///
/// # Errors
/// There is no run, or it cannot be read.
pub fn report(args: &ReportArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let format: Format = args.format.parse().map_err(Error::Input)?;
    let stored = journal::read(&args.folder)?;
    stored.warnings.iter().for_each(|warning| remark(&format!("warning: {warning}")));
    let report = report::build(&stored.run, &stored.trials, &stored.duets);
    if let Err(error) = report::write_files(&args.folder, &report) {
        // A published run may be read-only; printing it is what was asked for.
        remark(&format!("warning: {error}"));
    }
    print(&report::render(&report, format, terminal.style))
}
