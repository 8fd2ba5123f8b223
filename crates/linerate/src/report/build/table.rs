//! A table as a report has it: its metrics in words.

use crate::report::model::{BestOfResult, TableCell, TableReport, TableUnit};
use crate::summary::{AgainstBest, Comparison, Entry, Quantity, TableSummary};

pub(super) fn table(summary: TableSummary<'_>) -> TableReport {
    let TableSummary { planned, operations, entries, aa, margin, best_of } = summary;
    let several = !planned.also.is_empty();
    let cell = |entry: Entry| TableCell {
        id: entry.id,
        metric: several.then_some(Quantity { metric: entry.metric, operations }),
        n: entry.estimate.map_or(0, |e| e.n),
        median: entry.estimate.map(|e| e.median),
        ci95: entry.estimate.map(|e| e.interval),
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
        title: planned.title.clone(),
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
        truth_tolerance: planned.truth.as_ref().map(|truth| truth.tolerance),
        cells: entries.into_iter().map(cell).collect(),
        smallest_bias: aa.as_ref().and_then(Comparison::smallest_bias),
        aa,
        best_of: best_of.into_iter().map(best).collect(),
        notes: planned.notes.clone(),
    }
}
