//! What the readable formats share: which text stands where. They differ only in how they draw it.

mod details;
mod facts;
mod grid;

pub(super) use details::{Depth, Details, details};
pub(super) use facts::{HOW_TO_READ, exceptions, host, progress, time, twins, versions};
pub(super) use grid::{Grid, Spot, grid};

use super::format::sentence;
use super::model::{CellReport, SuiteReport, TableReport};

/// The cells of a table that are in the report, with their places in it.
pub(super) fn cells_of<'a>(
    suite: &'a SuiteReport,
    table: &'a TableReport,
) -> impl Iterator<Item = &'a CellReport> {
    table.cells.iter().filter_map(|entry| suite.cells.iter().find(|cell| cell.id == entry.id))
}

/// Up to this many comparisons are all put into words.
const FEW: usize = 6;

/// The comparisons of a table as sentences; of a large table the best and the worst of each column.
pub(super) fn sentences(suite: &SuiteReport, table: &TableReport) -> Vec<String> {
    let axis = |id: &str| suite.cells.iter().find(|c| c.id == id).and_then(|c| c.axes.get(&table.columns));
    let compared: Vec<_> =
        table.cells.iter().filter_map(|c| Some((&c.id, c.vs_baseline.as_ref()?))).collect();
    let told = |of: &[&(&String, &super::model::Comparison)]| -> Vec<String> {
        of.iter().map(|(id, comparison)| sentence(id, comparison)).collect()
    };
    if compared.len() <= FEW {
        return told(&compared.iter().collect::<Vec<_>>());
    }
    let mut sentences = Vec::new();
    for column in &table.column_values {
        let mut ranked: Vec<_> =
            compared.iter().filter(|(id, _)| axis(id) == Some(column.as_str())).collect();
        ranked.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
        if ranked.len() > 2 {
            ranked.drain(1..ranked.len() - 1);
        }
        sentences.extend(told(&ranked));
    }
    sentences
}
