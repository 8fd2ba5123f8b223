//! The report files of a run.

use super::model::Report;
use super::{Format, Style, render};
use crate::error::Error;
use crate::journal;
use std::path::Path;

/// Writes `report.md`, `.html`, `.json` and `.csv` beside the journal.
///
/// # Errors
/// A file cannot be written.
pub fn write_files(folder: &Path, report: &Report) -> Result<(), Error> {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Terminal) {
        let path = folder.join(format!("report.{format}"));
        journal::write(&path, &render(report, format, Style::default()))?;
    }
    Ok(())
}
