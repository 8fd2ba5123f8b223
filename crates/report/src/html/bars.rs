//! Bars inside rows: the value, and CPU time by role.

use crate::axis::px;
use crate::model::{CellReport, CpuCost, RowCpu};
use linerate_analysis::stats::cost::Consumer;
use maud::{Markup, html};

/// The value as a bar from 0, with its interval as a line; `most` is the end of the scale.
pub(super) fn value(value: f64, ci95: Option<[f64; 2]>, most: f64) -> Markup {
    let place = |value: f64| (value / most * 100.0).clamp(0.0, 100.0);
    html! {
        i.bar style={ "--v:" (px(place(value))) "%" } {
            @if let Some([from, to]) = ci95.map(|ends| ends.map(place)) {
                i style={ "left:" (px(from)) "%;width:" (px(to - from)) "%" } {}
            }
        }
    }
}

/// CPU time of a row by role, in path order: the shares are those of the cell's trials alone.
pub(super) fn parts(cell: &CellReport, row: &RowCpu) -> Vec<(Consumer, f64)> {
    let cost = |(consumer, found): (&Consumer, &CpuCost)| {
        let Consumer::Role(role) = consumer else { return None };
        let is_meant = row.of.is_empty() || row.of.contains(role);
        let cost = found.micros().filter(|cost| is_meant && cost.is_finite())?;
        Some((*consumer, cost))
    };
    let alone: Vec<(Consumer, f64)> = cell.cpu.iter().filter_map(cost).collect();
    let sum: f64 = alone.iter().map(|(_, cost)| cost).sum();
    let scale = row.cost.micros().unwrap_or(0.0) / sum;
    let scaled = alone.into_iter().map(|(role, cost)| (role, cost * scale));
    scaled.filter(|(_, cost)| cost.is_finite()).collect()
}

/// `µs/op` or `µs/MB`.
pub(super) fn unit(row: &RowCpu) -> &'static str {
    if row.cost.us_per_mb.is_some() { "µs/MB" } else { "µs/op" }
}

/// The parts as a stacked bar.
pub(super) fn cpu(parts: &[(Consumer, f64)], most: f64) -> Markup {
    html! {
        i.stack {
            @for (role, cost) in parts {
                i class=(role) style={ "width:" (px(cost / most * 100.0)) "%" } {}
            }
        }
    }
}
