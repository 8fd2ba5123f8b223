//! One suite: its cells and its tables.

use super::cell::Cell;
use super::compare::Comparisons;
use super::journal::SortedJournal;
use super::marks::is_above;
use super::table::table;
use crate::measurement::{Metric, PlannedSuite};
use crate::parallel;
use crate::report::model::{CellReport, SuiteReport, TableReport};
use crate::report::words::Flag;

pub(super) fn suite(planned: &PlannedSuite, journal: &SortedJournal<'_>) -> SuiteReport {
    let cells: Vec<Cell<'_>> = planned
        .cells
        .iter()
        .map(|cell| Cell::of(cell, journal.cell(&planned.name, &cell.id), first_metric(planned, &cell.id)))
        .collect();
    let comparisons = Comparisons { suite: &planned.name, journal };
    let tables: Vec<TableReport> = planned.tables.iter().map(|t| table(t, &cells, &comparisons)).collect();
    let metric = planned.tables.first().map_or(Metric::Seconds, |t| t.metric);
    let first_baseline =
        || tables.iter().flat_map(|t| &t.cells).find_map(|c| Some(c.vs_baseline.as_ref()?.with.clone()));
    SuiteReport {
        name: planned.name.clone(),
        question: planned.question.clone(),
        unit: tables.first().map(|t| t.unit.clone()).unwrap_or_default(),
        better: metric.better(),
        baseline: first_baseline().unwrap_or_default(),
        cells: parallel::map(&cells, |cell| {
            comparisons.probed(cell, with_comparisons(cell.report(), &tables))
        }),
        tables,
    }
}

/// The metric of the first table that contains a cell.
fn first_metric(planned: &PlannedSuite, id: &String) -> Metric {
    planned.tables.iter().find(|table| table.cells.contains(id)).map_or(Metric::Seconds, |table| table.metric)
}

fn with_comparisons(mut cell: CellReport, tables: &[TableReport]) -> CellReport {
    let entries = || tables.iter().filter_map(|table| table.cells.iter().find(|entry| entry.id == cell.id));
    cell.vs_baseline = entries().next().and_then(|entry| entry.vs_baseline.clone());
    cell.vs_limit = entries().find_map(|entry| entry.vs_limit.clone());
    cell.vs_reference = entries().find_map(|entry| entry.vs_reference.clone());
    cell.vs_truth = entries().next().and_then(|entry| entry.vs_truth.clone());
    let above = entries().filter_map(|entry| entry.vs_limit.as_ref()).find(|limit| is_above(limit));
    let flag = above.map(|limit| Flag::AboveLimit { ratio: limit.ratio, limit: limit.with.clone() }.text());
    cell.flags.extend(flag);
    cell
}
