//! Cells of a table and their attributes.

use crate::report::model::{CellReport, SuiteReport, TableReport};

/// The cells of a table that are in the report, with their places in it.
pub(super) fn cells_of<'a>(
    suite: &'a SuiteReport,
    table: &'a TableReport,
) -> impl Iterator<Item = &'a CellReport> {
    table.main_cells().filter_map(|entry| suite.cells.iter().find(|cell| cell.id == entry.id))
}

pub(super) fn is_not_measured(cell: &CellReport) -> bool {
    has_flag(cell, "not-measured")
}

pub(super) fn has_flag(cell: &CellReport, kind: &str) -> bool {
    cell.flags.iter().any(|flag| flag == kind)
}

pub(super) fn value(cell: &CellReport, axis: &str) -> String {
    cell.axes.get(axis).unwrap_or("-").to_owned()
}
