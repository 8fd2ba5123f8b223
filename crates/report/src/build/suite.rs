//! One suite: its cells and its tables.

use super::cell;
use super::published::Repeated;
use super::table::table;
use crate::model::{CellReport, SuiteReport, TableReport};
use linerate_analysis::judge::pairs::Judgement;
use linerate_analysis::judge::{self, Comparisons, Flag, SortedJournal};
use linerate_analysis::parallel;
use linerate_model::{Metric, Run};

pub(super) fn suite(
    run: &Run,
    index: usize,
    journal: &SortedJournal<'_>,
    judgement: Option<&Judgement>,
) -> SuiteReport {
    let planned = &run.suites[index];
    let summary = judge::suite(run, index, journal, judgement);
    let comparisons = Comparisons { suite: index, journal, judgement };
    let document = planned.published.as_ref();
    let document = document.and_then(|document| {
        Repeated { published: document, summary: &summary, comparisons }.report(run.published)
    });
    let tables: Vec<TableReport> =
        summary.tables.into_iter().map(|found| table(found, judgement.is_some())).collect();
    let metric = planned.tables.first().map_or(Metric::Seconds, |t| t.metric);
    let first_baseline =
        || tables.iter().flat_map(|t| &t.cells).find_map(|c| Some(c.vs_baseline.as_ref()?.with.clone()));
    SuiteReport {
        name: planned.name.clone(),
        question: planned.question.clone(),
        unit: tables.first().map(|table| table.unit),
        better: metric.better(),
        baseline: first_baseline().unwrap_or_default(),
        cells: parallel::map(&summary.cells, |cell| CellReport {
            sensitivity: comparisons.sensitivity(cell),
            ..with_comparisons(cell::report(cell), &tables)
        }),
        tables,
        published: document,
        reasons: Vec::new(),
    }
}

fn with_comparisons(mut cell: CellReport, tables: &[TableReport]) -> CellReport {
    let entries = || tables.iter().filter_map(|table| table.cells.iter().find(|entry| entry.id == cell.id));
    if let Some(first) = entries().next() {
        (cell.value, cell.ci95, cell.vs_baseline) = (first.value, first.ci95, first.vs_baseline.clone());
    }
    cell.vs_limit = entries().find_map(|entry| entry.vs_limit.clone());
    cell.vs_reference = entries().find_map(|entry| entry.vs_reference.clone());
    cell.vs_truth = entries().next().and_then(|entry| entry.vs_truth.clone());
    let above = entries().filter_map(|entry| entry.vs_limit.as_ref()).find(|limit| limit.is_above());
    let flag = above.map(|limit| Flag::AboveLimit { ratio: limit.ratio, limit: limit.with.clone() });
    cell.flags.extend(flag);
    let correlation = cell.vs_baseline.as_ref().and_then(|compared| compared.autocorrelation);
    cell.flags.extend(correlation.map(Flag::Autocorrelated));
    cell
}
