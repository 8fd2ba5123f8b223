//! Shared by the readable formats: the text at each place. The formats differ only in how they draw it.

mod accuracy;
mod address;
mod answer;
mod beside;
mod costs;
mod details;
mod facts;
mod grid;
mod groups;
mod leaders;
mod named;
mod path;
mod precision;
pub(super) mod published;
mod sentences;
mod text_table;
mod tiers;
mod transport;
mod undecided;

pub(super) use address::anchor;
pub(super) use answer::{GroupAnswer, Phrase, Sentence, answer, answers, further_metrics, place, unit};
pub(super) use details::{Depth, details, facts_of};
pub(super) use facts::{
    HOW_TO_READ, disturbance, exceptions, first_line, host, hosts, progress, time, versions, warning,
};
pub(super) use grid::{Grid, GridCell, Note, grid, mark, notes, of_pairs, usual_rounds, with_cpu_mark};
pub(super) use groups::{Alternative, Group, Part, groups, groups_by_what_is_known};
pub(super) use named::{named, short};
pub(super) use precision::Precision;
pub(super) use sentences::{sentences, warnings};
pub(super) use text_table::TextTable;

use super::model::{CellReport, SuiteReport, TableReport};

/// The cells of a table that are in the report, with their places in it.
fn cells_of<'a>(suite: &'a SuiteReport, table: &'a TableReport) -> impl Iterator<Item = &'a CellReport> {
    table.main_cells().filter_map(|entry| suite.cells.iter().find(|cell| cell.id == entry.id))
}

fn value(cell: &CellReport, axis: &str) -> String {
    cell.axes.get(axis).unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests;
