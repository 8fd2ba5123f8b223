//! `linerate history`, and the file that it prints.

use super::{Terminal, print};
use crate::cli::HistoryArgs;
use crate::error::Error;
use crate::journal;
use crate::progress::note;
use crate::report::comparison::{ComparisonReport, HistoryEntry, entries, newest_of, with_profile};
use crate::report::model::Report;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// The copy of a gate's history beside its journal.
const COPY: &str = "gates.jsonl";

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
    let line = line(&entry);
    let open = OpenOptions::new().create(true).append(true).open(file);
    open.and_then(|mut open| open.write_all(line.as_bytes())).map_err(Error::file(file))
}

/// Keeps the newest gates of the same cells beside the journal of this one.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn keep(file: &Path, folder: &Path, comparison: &ComparisonReport) -> Result<(), Error> {
    let text = fs::read_to_string(file).map_err(Error::file(file))?;
    let newest = newest_of(entries("", &text).0, comparison);
    journal::replace(&folder.join(COPY), &newest.iter().map(line).collect::<String>())
}

/// The report with what else is in the folder: the history of a gate, profiles.
pub(super) fn with_files(mut report: Report, folder: &Path) -> Report {
    let file = journal::existing(&folder.join(COPY)).ok().flatten();
    let text = file.and_then(|file| io::read_to_string(file).ok());
    if let (Some(comparison), Some(text)) = (&mut report.comparison, text) {
        comparison.history = entries(COPY, &text).0;
    }
    match journal::profile(folder) {
        Some(profile) => with_profile(report, profile),
        None => report,
    }
}

fn line(entry: &HistoryEntry) -> String {
    serde_json::to_string(entry).expect("an entry has string keys only") + "\n"
}
