//! A table: its cells by its metrics, each compared with its baseline.

use super::alone::Alone;
use super::cell::CellSummary;
use super::compare::Comparisons;
use super::comparison::{Comparison, RowValue};
use super::marks::{AgainstTruth, ShareOf, against_truth, share};
use crate::parallel;
use crate::stats::estimate::Estimate;
use crate::stats::multiplicity::q_values;
use crate::stats::verdict::Verdict;
use linerate_contract::Role;
use linerate_model::Better;
use linerate_model::axes::Axes;
use linerate_model::{BestOf, Metric, PlannedTable};

/// A cell by a metric of a table, with what it is compared with.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The index of the cell in its suite.
    pub place: usize,
    pub id: String,
    pub metric: Metric,
    /// By its trials alone; `None` of a cell that is not `ok`.
    pub alone: Option<Alone>,
    /// The CPU time in its trials alone; by the table's first metric.
    pub cpu_alone: Option<Alone>,
    /// The roles whose CPU time it is; empty: all.
    pub cpu_of: Vec<Role>,
    pub vs_baseline: Option<Comparison>,
    pub vs_limit: Option<ShareOf>,
    pub vs_reference: Option<ShareOf>,
    pub vs_truth: Option<AgainstTruth>,
    pub scaling: Option<Comparison>,
}

impl Entry {
    /// The number of its row.
    pub fn value(&self) -> Option<RowValue> {
        RowValue::of_row(self.alone, self.vs_baseline.as_ref(), self.metric.better())
    }
}

/// A cell and the competitor that has the best median by a metric.
#[derive(Debug, Clone)]
pub struct AgainstBest {
    pub id: String,
    pub metric: Metric,
    pub vs_best: Comparison,
}

#[derive(Debug)]
pub struct TableSummary<'a> {
    pub planned: &'a PlannedTable,
    /// Operations of a trial, where they are the same in all cells.
    pub operations: Option<u64>,
    /// By the table's metrics, one after the other.
    pub entries: Vec<Entry>,
    /// The baseline in duet with itself.
    pub aa: Option<Comparison>,
    /// The relative difference that matters.
    pub margin: f64,
    pub best_of: Vec<AgainstBest>,
}

pub(super) fn table<'p>(
    planned: &'p PlannedTable,
    cells: &[CellSummary<'_>],
    comparisons: &Comparisons<'_>,
) -> TableSummary<'p> {
    let here: Vec<&CellSummary<'_>> =
        planned.cells.iter().filter_map(|id| cells.iter().find(|c| c.planned.id == *id)).collect();
    let operations = here.first().and_then(|cell| cell.planned.parameters.operations);
    let alike = here.iter().all(|cell| cell.planned.parameters.operations == operations);
    // A partner may be in another table of the suite.
    let partners: Vec<&CellSummary<'_>> = here.iter().copied().chain(cells).collect();
    let operations = operations.filter(|_| alike);
    let control = here.iter().find_map(|cell| partner(cell, &planned.baseline, &partners));
    // A table of the baseline alone is a control and nothing else.
    let control = control.or_else(|| here.first().copied().filter(|_| here.len() == 1));
    let aa = control.and_then(|cell| comparisons.control(cell, planned.metric));
    let margin = comparisons.journal.margin;
    let withdrawn = aa.as_ref().is_some_and(|aa| aa.fails_as_control(margin));
    let entry = |cell: &CellSummary<'_>, metric: Metric| {
        let with = |axes: &Axes| comparisons.compare(cell, partner(cell, axes, &partners)?, metric);
        let with_baseline =
            || comparisons.with_baseline(cell, partner(cell, &planned.baseline, &partners)?, metric);
        let (cpu_alone, cpu_of) = comparisons.cpu_alone(cell, metric);
        let is_competitor = !cell.planned.is_limit;
        // Rows at a share of their own capacity have different rates: no ratio compares them.
        let is_of_own_load = cell.planned.parameters.load.is_some();
        let mark = |axes: &Option<Axes>| axes.as_ref().filter(|_| is_competitor).and_then(with).map(share);
        Entry {
            place: cell.place,
            id: cell.planned.id.clone(),
            metric,
            alone: Estimate::from_values(cell.values(metric).into_values()).map(Alone::from),
            cpu_alone: cpu_alone.filter(|_| metric == planned.metric),
            cpu_of,
            vs_baseline: with_baseline().filter(|_| is_competitor && !is_of_own_load),
            // What bounds the table's own metric need not bound its tail percentiles.
            vs_limit: mark(&planned.limit).filter(|_| metric == planned.metric),
            vs_reference: mark(&planned.reference),
            vs_truth: planned.truth.as_ref().and_then(|truth| against_truth(cell, metric, truth)),
            scaling: planned.scaling.as_ref().and_then(with),
        }
    };
    let of_metric = |metric: Metric| {
        let mut entries: Vec<Entry> = parallel::map(&here, |cell| entry(cell, metric));
        if comparisons.judgement.is_none() {
            judge(&mut entries, metric, planned.metric, withdrawn);
        }
        entries
    };
    TableSummary {
        planned,
        operations,
        entries: planned.metrics().flat_map(of_metric).collect(),
        best_of: planned.best_of.as_ref().map(|c| best_of(c, &here, cells, comparisons)).unwrap_or_default(),
        aa,
        margin,
    }
}

/// Adds the q values of the comparisons with the baseline by one metric. `withdrawn`: the control fails, and
/// duets have no verdict.
fn judge(entries: &mut [Entry], metric: Metric, primary: Metric, withdrawn: bool) {
    let mut compared: Vec<&mut Comparison> =
        entries.iter_mut().filter_map(|entry| entry.vs_baseline.as_mut()).collect();
    let q = q_values(&compared.iter().map(|comparison| comparison.p.unwrap_or(1.0)).collect::<Vec<_>>());
    for (comparison, q) in compared.iter_mut().zip(q) {
        comparison.q = Some(q);
        if withdrawn && comparison.duet.is_some() {
            comparison.verdict = Verdict::CannotTell;
        }
        // The CPU cost is the same by every metric, and is shown once.
        if let Some(duet) = comparison.duet.as_mut().filter(|_| metric != primary) {
            (duet.sharing, duet.cpu_ratio, duet.cpu_ci95, duet.with_cpu_us) = (None, None, None, None);
        }
    }
}

/// Each of the subject's cells against the competitor with the best median. The choice is made on the same
/// rounds, so chance favours the competitor. Only cells of the table compete: several tables share a list of
/// competitors.
fn best_of(
    best_of: &BestOf,
    here: &[&CellSummary<'_>],
    cells: &[CellSummary<'_>],
    comparisons: &Comparisons<'_>,
) -> Vec<AgainstBest> {
    let is_subject =
        |cell: &&&CellSummary<'_>| cell.planned.axes.get(&best_of.axis) == Some(&best_of.subject);
    let against_best = |cell: &CellSummary<'_>, metric: Metric| {
        let competitors = best_of.competitors.iter().filter_map(|competitor| {
            let competitor = partner(cell, &Axes(vec![(best_of.axis.clone(), competitor.clone())]), here)?;
            Some((Estimate::from_values(competitor.values(metric).into_values())?.median, competitor))
        });
        let (_, best) = match metric.better() {
            Better::Higher => competitors.max_by(|a, b| a.0.total_cmp(&b.0)),
            Better::Lower => competitors.min_by(|a, b| a.0.total_cmp(&b.0)),
        }?;
        Some(AgainstBest {
            id: cell.planned.id.clone(),
            metric,
            vs_best: comparisons.compare_any(cell, best, metric, cells)?,
        })
    };
    let subjects = here.iter().filter(is_subject);
    subjects
        .flat_map(|cell| best_of.metrics.iter().filter_map(|metric| against_best(cell, *metric)))
        .collect()
}

/// The cell that has the values of `axes` and equals `cell` in all other axes; `None` for that cell itself. A
/// cell in several tables may have axes that others lack: these only break ties.
fn partner<'c, 'a>(
    cell: &CellSummary<'_>,
    axes: &Axes,
    cells: &[&'c CellSummary<'a>],
) -> Option<&'c CellSummary<'a>> {
    let is_meant = |other: &Axes| axes.0.iter().all(|(axis, value)| other.get(axis) == Some(value));
    if axes.0.is_empty() || is_meant(&cell.planned.axes) {
        return None;
    }
    let alike = |other: &Axes| {
        let mut same = 0;
        for (axis, value) in cell.planned.axes.0.iter().filter(|(axis, _)| axes.get(axis).is_none()) {
            match other.get(axis) {
                Some(theirs) if theirs == value => same += 1,
                Some(_) => return None,
                None => {}
            }
        }
        Some(same)
    };
    let candidates = cells.iter().filter(|other| is_meant(&other.planned.axes));
    let scored = candidates.filter_map(|other| Some((alike(&other.planned.axes)?, *other)));
    // The first of the most similar: the table's own cells precede those of other tables.
    scored.rev().max_by_key(|(same, _)| *same).map(|(_, other)| other)
}
