//! `linerate merge`.

use super::{Terminal, print, report_note};
use crate::cli::MergeArgs;
use crate::error::Error;
use crate::journal;
use crate::merge;
use crate::output::note;
use crate::report::merged;
use std::path::Path;
use std::process::ExitCode;

/// Makes one report of several runs.
///
/// # Errors
/// A folder contains no run, the runs do not fit together, or the report cannot be written.
pub fn merge(args: &MergeArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let format = merged::format(&args.format).map_err(Error::Input)?;
    if let Some(out) = &args.out {
        check_out(out)?;
    }
    let sources = merge::read(&args.folders)?;
    sources.iter().flat_map(|s| &s.warnings).for_each(|warning| note(&format!("warning: {warning}")));
    let report = merged::build(sources.into_iter().map(|source| (source.host, source.report)).collect());
    let printed = print(&format.render(&report, terminal.style(args.long)));
    if let Some(out) = &args.out {
        journal::make(out)?;
        journal::write_report(out, merged::files(&report))?;
        note(&report_note(out));
    }
    printed
}

/// The report of a run is not replaced by that of several.
fn check_out(out: &Path) -> Result<(), Error> {
    if journal::is_run(out) {
        return Err(Error::Input(format!(
            "--out {}: the folder contains a run, whose report would be replaced: choose another one",
            out.display()
        )));
    }
    Ok(())
}
