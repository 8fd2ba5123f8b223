//! The figures of a document beside the cells that repeat them.

use super::cell::why_no_number;
use crate::measurement::{Published, PublishedFigure};
use crate::report::model::{PublishedReport, PublishedRow, PublishedRows, TableCell};
use crate::stats::estimate::Estimate;
use crate::summary::CellSummary;

/// `entries`: the cells of the table by its first metric.
pub(super) fn published(
    published: &Published,
    cells: &[CellSummary<'_>],
    entries: &[TableCell],
) -> PublishedReport {
    let rows =
        |figures: &[PublishedFigure]| figures.iter().map(|figure| row(figure, cells, entries)).collect();
    PublishedReport {
        document: published.document.clone(),
        date: published.date.clone(),
        machine: published.machine.clone(),
        differences: published.differences.clone(),
        tables: published
            .tables
            .iter()
            .map(|table| PublishedRows { title: table.title.clone(), rows: rows(&table.figures) })
            .collect(),
    }
}

fn row(figure: &PublishedFigure, cells: &[CellSummary<'_>], entries: &[TableCell]) -> PublishedRow {
    let id = figure.cell.as_ref();
    let cell = cells.iter().find(|cell| Some(&cell.planned.id) == id);
    let estimate = cell.and_then(|cell| Estimate::of(cell.values(figure.metric).into_values()));
    let compared = entries.iter().find(|entry| Some(&entry.id) == id);
    // The document's percentage is that of its table's first metric.
    let ratio = compared.and_then(|entry| entry.vs_baseline.as_ref()).filter(|_| figure.percent.is_some());
    let convert = |value: f64| figure.unit.convert(value);
    let unmeasured = match cell {
        None => "not in this run".to_owned(),
        Some(cell) => why_no_number(cell),
    };
    PublishedRow {
        row: figure.row.clone(),
        unit: figure.unit,
        published: figure.value,
        range: figure.range,
        text: figure.text.clone(),
        published_ratio: figure.percent.map(|percent| percent / 100.0),
        cell: figure.cell.clone(),
        median: estimate.map(|estimate| convert(estimate.median)),
        ci95: estimate.map(|estimate| estimate.interval.map(convert)),
        n: estimate.map_or(0, |estimate| estimate.n),
        ratio: ratio.map(|comparison| comparison.ratio),
        ratio_ci95: ratio.map(|comparison| comparison.ci95),
        reason: figure.reason.clone().or_else(|| estimate.is_none().then_some(unmeasured)),
    }
}
