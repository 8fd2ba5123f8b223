//! One suite: its cells, its tables, and the aa that tell its noise floor.

use super::cell::Cell;
use super::journal::{CellTrials, Journal};
use super::table::{comparison, table};
use crate::measurement::{AA, Metric, PlannedSuite};
use crate::report::model::{CellReport, Comparison, SuiteReport, TableReport};
use crate::stats::ByRound;
use crate::stats::compare::{noise_floor, ratio, verdict};
use crate::stats::estimate::Estimate;

pub(super) fn suite(planned: &PlannedSuite, journal: &Journal<'_>) -> SuiteReport {
    let cells: Vec<Cell<'_>> = planned
        .cells
        .iter()
        .map(|cell| Cell::of(cell, journal.cell(&planned.name, &cell.id), first_metric(planned, &cell.id)))
        .collect();
    let aa = AaControl::of(planned, &cells, journal);
    let tables: Vec<TableReport> = planned.tables.iter().map(|t| table(t, &cells, &aa)).collect();
    let metric = planned.tables.first().map_or(Metric::Seconds, |t| t.metric);
    let first_baseline =
        || tables.iter().flat_map(|t| &t.cells).find_map(|c| Some(c.vs_baseline.as_ref()?.with.clone()));
    SuiteReport {
        name: planned.name.clone(),
        question: planned.question.clone(),
        unit: tables.first().map(|t| t.unit.clone()).unwrap_or_default(),
        better: metric.better(),
        baseline: planned.aa.clone().or_else(first_baseline).unwrap_or_default(),
        noise_floor: aa.ratio(metric).map(|ratio| noise_floor(&ratio)),
        aa: aa.comparison(metric),
        cells: cells.iter().map(|cell| with_comparisons(cell.report(), &tables)).collect(),
        tables,
    }
}

/// The metric of the first table that a cell stands in.
fn first_metric(planned: &PlannedSuite, id: &String) -> Metric {
    planned.tables.iter().find(|table| table.cells.contains(id)).map_or(Metric::Seconds, |table| table.metric)
}

fn with_comparisons(mut cell: CellReport, tables: &[TableReport]) -> CellReport {
    if let Some(entry) = tables.iter().find_map(|table| table.cells.iter().find(|entry| entry.id == cell.id))
    {
        cell.vs_baseline.clone_from(&entry.vs_baseline);
        cell.vs_limit = entry.vs_limit;
    }
    cell
}

/// The baseline and its second run in each round, by every metric that the suite's tables have.
pub(super) struct AaControl {
    aa: String,
    by_metric: Vec<(Metric, Estimate)>,
}

impl AaControl {
    fn of(planned: &PlannedSuite, cells: &[Cell<'_>], journal: &Journal<'_>) -> Self {
        let id = planned.aa.as_deref().unwrap_or_default();
        let pair = cells.iter().find(|cell| cell.planned.id == id).zip(journal.aa(&planned.name, id));
        let measured = |metric: Metric| {
            let (cell, aa) = pair?;
            Some((metric, ratio(&cell.values(metric), &aa_values(cell, aa, metric), metric.better())?))
        };
        let by_metric =
            planned.tables.iter().flat_map(|table| table.metrics()).filter(|metric| !metric.is_growth());
        let by_metric = by_metric.filter_map(measured).collect();
        Self { aa: format!("{id}{AA}"), by_metric }
    }

    fn ratio(&self, metric: Metric) -> Option<Estimate> {
        self.by_metric.iter().find(|(of, _)| *of == metric).map(|(_, ratio)| *ratio)
    }

    /// 0 if the run has no aa: verdicts are by their intervals alone then.
    pub(super) fn noise_floor(&self, metric: Metric) -> f64 {
        self.ratio(metric).map_or(0.0, |ratio| noise_floor(&ratio))
    }

    /// What the aa differ by is the floor, so their own verdict knows none.
    fn comparison(&self, metric: Metric) -> Option<Comparison> {
        let ratio = self.ratio(metric)?;
        Some(comparison(self.aa.clone(), &ratio, verdict(&ratio, 0.0)))
    }
}

fn aa_values(cell: &Cell<'_>, aa: &CellTrials<'_>, metric: Metric) -> ByRound {
    Cell::of(cell.planned, Some(aa), cell.metric).values(metric)
}
