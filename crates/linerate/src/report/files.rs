//! The report files of a run.

use super::formats::FORMATS;
use super::model::Report;
use super::style::Style;
use crate::error::Error;
use crate::journal;
use std::path::Path;

/// Writes `report.md`, `.html`, `.json` and `.csv` beside the journal.
///
/// # Errors
/// A file cannot be written.
pub fn write_files(folder: &Path, report: &Report) -> Result<(), Error> {
    for format in FORMATS.iter().filter(|format| format.is_file) {
        let path = folder.join(format!("report.{}", format.name));
        journal::write(&path, &format.render(report, Style::default()))?;
    }
    Ok(())
}
