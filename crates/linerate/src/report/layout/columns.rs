//! Columns of details: a header, and the text for each cell.

use crate::report::model::CellReport;

/// Amount of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Medians alone, to fit a terminal.
    Brief,
    /// With intervals and latencies.
    Full,
}

/// Rows of text below headers.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) headers: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(super) struct Column<'a> {
    pub(super) header: String,
    pub(super) text: Box<dyn Fn(&CellReport) -> String + 'a>,
}

impl<'a> Column<'a> {
    pub(super) fn new(header: impl Into<String>, text: impl Fn(&CellReport) -> String + 'a) -> Self {
        Self { header: header.into(), text: Box::new(text) }
    }

    pub(super) fn has_text(&self, cells: &[&CellReport]) -> bool {
        cells.iter().any(|cell| !(self.text)(cell).is_empty())
    }
}
