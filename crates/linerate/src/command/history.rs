//! `linerate history`, and the file that it prints.

use super::{Terminal, print};
use crate::bounded;
use crate::cli::HistoryArgs;
use crate::error::Error;
use crate::journal;
use crate::output::note;
use crate::report::comparison::{ComparisonReport, HistoryEntry, entries, newest_of, with_profile};
use crate::report::model::Report;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The copy of a gate's history beside its journal.
const COPY: &str = "gates.jsonl";

/// Prints a table and a plot.
///
/// # Errors
/// The file cannot be read, or has no line of a gate.
pub fn history(args: &HistoryArgs, terminal: Terminal) -> Result<ExitCode, Error> {
    let text = written(&args.file)?;
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
    let text = written(file)?;
    let newest = newest_of(entries("", &text).0, comparison);
    journal::replace(&folder.join(COPY), &newest.iter().map(line).collect::<String>())
}

/// The report with what else is in the folder: the history of a gate, profiles.
pub(super) fn with_files(mut report: Report, folder: &Path) -> Report {
    if let (Some(comparison), Ok(text)) = (&mut report.comparison, written(&folder.join(COPY))) {
        comparison.history = entries(COPY, &text).0;
    }
    match journal::profile(folder) {
        Some(profile) => with_profile(report, profile),
        None => report,
    }
}

/// The lines that gates have written.
fn written(path: &Path) -> Result<String, Error> {
    let missing = || {
        let place = path.display();
        Error::Input(format!("{place}: there is no such file; `linerate gate --history {place}` writes it"))
    };
    bounded::whole(path, bounded::existing(path)?.ok_or_else(missing)?)
}

fn line(entry: &HistoryEntry) -> String {
    serde_json::to_string(entry).expect("an entry has string keys only") + "\n"
}
