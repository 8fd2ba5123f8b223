//! A table as a report has it: its metrics in words.

use crate::model::{BestOfResult, CpuCost, RowCpu, TableCell, TableReport, TableUnit};
use linerate_analysis::stats::cost::Per;
use linerate_analysis::summary::{AgainstBest, Alone, Comparison, Entry, Quantity, TableSummary};
use linerate_contract::Role;

pub(super) fn table(summary: TableSummary<'_>) -> TableReport {
    let TableSummary { planned, operations, entries, aa, margin, best_of } = summary;
    let several = !planned.also.is_empty();
    let cell = |entry: Entry| TableCell {
        metric: several.then_some(Quantity { metric: entry.metric, operations }),
        cpu: row_cpu(Per::from_metric(entry.metric), entry.cpu_alone, Vec::new(), entry.vs_baseline.as_ref()),
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

/// The CPU time of a row: by its ratio, else that of its trials alone. `of`: the roles whose CPU time it is.
pub(crate) fn row_cpu(
    per: Per,
    alone: Option<Alone>,
    of: Vec<Role>,
    found: Option<&Comparison>,
) -> Option<RowCpu> {
    let by_ratio = found.and_then(Comparison::cpu_value);
    let cost = match (by_ratio, alone) {
        (Some(row), Some(_)) => CpuCost::new(per, row.value, row.ci95),
        (_, alone) => CpuCost::alone(per, alone?),
    };
    Some(RowCpu { cost, of })
}
