//! `linerate history`, and the file that it prints.

use super::{Terminal, print};
use crate::cli::HistoryArgs;
use crate::error::Error;
use crate::progress::note;
use crate::report::comparison::{ComparisonReport, HistoryEntry, entries};
use crate::report::model::Report;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Prints a table and a plot.
///
/// # Errors
/// The file cannot be read, or has no line of a gate.
pub fn history(args: &HistoryArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let text = fs::read_to_string(&args.file).map_err(Error::file(&args.file))?;
    let place = args.file.display().to_string();
    let (entries, warnings) = entries(&place, &text);
    warnings.iter().for_each(|warning| note(&format!("warning: {warning}")));
    let printed = crate::report::comparison::history(&entries, &args.cell, terminal.style);
    if printed.is_empty() {
        return Err(Error::Input(format!(
            "{place}: no line of such a cell; `linerate gate --history` writes it"
        )));
    }
    print(&printed)
}

/// Appends a line for a gate.
///
/// # Errors
/// The file cannot be written.
pub(super) fn append(file: &Path, report: &Report, comparison: &ComparisonReport) -> Result<(), Error> {
    let entry = HistoryEntry::from_report(report, comparison);
    let line = serde_json::to_string(&entry).expect("an entry has string keys only") + "\n";
    let open = OpenOptions::new().create(true).append(true).open(file);
    open.and_then(|mut open| open.write_all(line.as_bytes())).map_err(Error::file(file))
}
