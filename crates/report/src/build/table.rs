//! A table as a report has it: its metrics in words.

use crate::digits::with_commas;
use crate::model::{BestOfResult, CpuCost, RowCpu, TableCell, TableReport, TableUnit};
use linerate_analysis::judge::{AgainstBest, Comparison, Entry, Quantity, TableSummary};
use linerate_analysis::stats::cost::Per;

/// `is_sequential`: its rows were looked at while they were measured.
pub(super) fn table(summary: TableSummary<'_>, is_sequential: bool) -> TableReport {
    let TableSummary { planned, operations, entries, aa, margin, best_of } = summary;
    let several = !planned.also.is_empty();
    let cell = |entry: Entry| TableCell {
        metric: several.then_some(Quantity { metric: entry.metric, operations }),
        cpu: row_cpu(&entry),
        value: entry.value().map(|row| row.value),
        ci95: entry.value().and_then(|row| row.ci95),
        alone: entry.alone,
        id: entry.id,
        vs_baseline: entry.vs_baseline,
        vs_limit: entry.vs_limit,
        vs_reference: entry.vs_reference,
        vs_truth: entry.vs_truth,
        scaling: entry.scaling,
    };
    let best = |AgainstBest { id, metric, vs_best }| BestOfResult {
        id,
        metric: Quantity { metric, operations: None },
        vs_best,
    };
    TableReport {
        name: planned.name.clone(),
        title: with_commas(&planned.title),
        unit: if several {
            TableUnit::OfRow
        } else {
            TableUnit::One(Quantity { metric: planned.metric, operations })
        },
        better: planned.metric.better(),
        rows: planned.rows.clone(),
        columns: planned.columns.clone(),
        row_values: planned.row_values.clone(),
        column_values: planned.column_values.clone(),
        margin,
        is_sequential,
        no_choice: planned.no_choice.clone(),
        truth_tolerance: planned.truth.as_ref().map(|truth| truth.tolerance),
        cells: entries.into_iter().map(cell).collect(),
        smallest_bias: aa.as_ref().and_then(Comparison::smallest_bias),
        aa,
        best_of: best_of.into_iter().map(best).collect(),
        notes: planned.notes.clone(),
    }
}

/// The CPU time of a row: by its ratio, else that of its trials alone.
fn row_cpu(entry: &Entry) -> Option<RowCpu> {
    let per = Per::from_metric(entry.metric);
    let by_ratio = entry.vs_baseline.as_ref().and_then(Comparison::cpu_value);
    let cost = match (by_ratio, entry.cpu_alone) {
        (Some(row), Some(_)) => CpuCost::new(per, row.value, row.ci95),
        (_, alone) => CpuCost::alone(per, alone?),
    };
    Some(RowCpu { cost, of: entry.cpu_of.clone() })
}
