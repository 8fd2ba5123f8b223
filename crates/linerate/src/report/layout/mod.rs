//! What the readable formats share: which text stands where. They differ only in how they draw it.

mod details;
mod facts;
mod grid;
mod transport;

pub(super) use details::{Depth, Details, details};
pub(super) use facts::{HOW_TO_READ, aa, exceptions, host, progress, time, versions};
pub(super) use grid::{Grid, Spot, grid};

use super::format::sentence;
use super::model::{CellReport, Comparison, SuiteReport, TableReport};

/// The cells of a table that are in the report, with their places in it.
pub(super) fn cells_of<'a>(
    suite: &'a SuiteReport,
    table: &'a TableReport,
) -> impl Iterator<Item = &'a CellReport> {
    table.main_cells().filter_map(|entry| suite.cells.iter().find(|cell| cell.id == entry.id))
}

/// Up to this many comparisons are all put into words.
const FEW: usize = 6;

/// The comparisons of a table as sentences; of a large table the best and the worst of each column.
pub(super) fn sentences(suite: &SuiteReport, table: &TableReport) -> Vec<String> {
    // A limit is measured to be compared with, not to win.
    let has_limit = table.cells.iter().any(|cell| cell.vs_limit.is_some());
    let contenders = table.main_cells().filter(|cell| !has_limit || cell.vs_limit.is_some());
    let compared: Vec<(&str, &Comparison)> =
        contenders.filter_map(|cell| Some((cell.id.as_str(), cell.vs_baseline.as_ref()?))).collect();
    let told: Vec<&(&str, &Comparison)> = if compared.len() <= FEW {
        compared.iter().collect()
    } else {
        let of_column = |column: &String| {
            let here = compared.iter().filter(|(id, _)| stands_in(suite, table, id, column));
            best_and_worst(here.collect())
        };
        table.column_values.iter().flat_map(of_column).collect()
    };
    let best_of = table.best_of.iter().map(|result| {
        format!("the best of the others, {}: {}", result.metric, sentence(&result.id, &result.vs_best))
    });
    told.into_iter().map(|(id, comparison)| sentence(id, comparison)).chain(best_of).collect()
}

fn stands_in(suite: &SuiteReport, table: &TableReport, id: &str, column: &str) -> bool {
    suite.cells.iter().any(|cell| cell.id == id && cell.axes.get(&table.columns) == Some(column))
}

fn best_and_worst<'a>(
    mut compared: Vec<&'a (&'a str, &'a Comparison)>,
) -> Vec<&'a (&'a str, &'a Comparison)> {
    compared.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
    if compared.len() > 2 {
        compared.drain(1..compared.len() - 1);
    }
    compared
}
