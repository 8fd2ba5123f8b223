//! One cell: its trials, its numbers and its flags.

use super::path;
use crate::model::{CellReport, CpuCost};
use crate::words;
use linerate_analysis::judge::{Alone, CellSummary, Quantity, flags};
use linerate_analysis::stats::cost::{Consumer, Per, cost};
use linerate_analysis::stats::estimate::Estimate;
use linerate_analysis::stats::latency::{Pool, sound};
use linerate_analysis::stats::metric::Value;
use linerate_analysis::stats::transport;
use linerate_analysis::stats::usage::usage;
use linerate_contract::Errors;
use linerate_model::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// Everything but the comparisons, which need other cells.
pub(super) fn report(cell: &CellSummary<'_>) -> CellReport {
    let good = || cell.good.iter().map(|(_, measurement)| *measurement);
    let values = cell.metric.values(cell.good.iter().copied());
    let alone = Estimate::from_values(cell.values(cell.metric).into_values()).map(Alone::from);
    let tried = || cell.measured.iter().filter_map(|(_, trial)| trial.measurement());
    let pool = Pool::from_histograms(good().filter_map(|m| sound(&m.latency)));
    let mut errors = Errors::default();
    tried().for_each(|measurement| merge(&mut errors, &measurement.errors));
    CellReport {
        id: cell.planned.id.clone(),
        axes: cell.planned.axes.clone(),
        systems: cell.planned.systems.clone(),
        is_limit: cell.planned.is_limit,
        path: path::path(&cell.planned.path, good()),
        unit: Quantity { metric: cell.metric, operations: cell.planned.parameters.operations },
        better: cell.metric.better(),
        outcome: cell.outcome,
        detail: detail(cell),
        n: u32::try_from(values.len()).unwrap_or(u32::MAX),
        value: alone.map(|alone| alone.value),
        ci95: alone.and_then(|alone| alone.ci95),
        alone,
        flags: flags(cell, &values),
        values: values.into_values().collect(),
        vs_baseline: None,
        vs_limit: None,
        vs_reference: None,
        vs_truth: None,
        bound_by: cell.bound(),
        sensitivity: BTreeMap::new(),
        cpu: costs(cell),
        latency_us: pool.latency(),
        latency_curve: pool.curve(),
        connect_us: Pool::from_histograms(good().filter_map(|m| sound(&m.connect))).latency(),
        tls: distinct(good().filter_map(|m| m.tls.as_ref())),
        datagrams: transport::datagrams(good()),
        tcp: transport::tcp(good()),
        series: transport::series(good()),
        usage: usage(good().filter_map(|m| m.usage)),
        operations: tried().fold(0, |sum, m| sum.saturating_add(m.operations)),
        errors,
    }
}

fn costs(cell: &CellSummary<'_>) -> BTreeMap<Consumer, CpuCost> {
    let per = Per::from_metric(cell.metric);
    let costs = cost(cell.good.iter().map(|(_, m)| *m), per);
    costs.into_iter().map(|(consumer, estimate)| (consumer, CpuCost::alone(per, estimate.into()))).collect()
}

/// Why the cell has no number.
pub(super) fn why_no_number(cell: &CellSummary<'_>) -> String {
    match &cell.planned.absent {
        // The command that installs it is below the tables.
        Some(Outcome::Missing { reason, .. }) => format!("missing: {reason}"),
        _ => detail(cell).unwrap_or_else(|| words::outcome_name(cell.outcome).to_owned()),
    }
}

/// Why the cell has no number, or which of its trials failed.
fn detail(cell: &CellSummary<'_>) -> Option<String> {
    match &cell.planned.absent {
        Some(Outcome::Ok) | None if cell.measured.is_empty() => {
            Some(words::not_measured(cell.failed_warmup.as_ref()))
        }
        Some(Outcome::Ok) | None => words::failures(&cell.failures, cell.measured.len()),
        Some(absent) => words::reason(absent),
    }
}

/// The text that all trials have in common; where they differ, each different text.
fn distinct<'t>(texts: impl Iterator<Item = &'t String>) -> Option<String> {
    let different: BTreeSet<&str> = texts.map(String::as_str).collect();
    (!different.is_empty()).then(|| different.into_iter().collect::<Vec<_>>().join("; "))
}

/// [`Errors::merge`], saturating: a damaged journal may contain any number.
fn merge(sum: &mut Errors, errors: &Errors) {
    for (kind, count) in &errors.0 {
        let entry = sum.0.entry(*kind).or_default();
        *entry = entry.saturating_add(*count);
    }
}
