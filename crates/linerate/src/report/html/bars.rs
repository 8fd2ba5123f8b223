//! Bars inside rows: the value, and CPU time by role.

use super::plot::px;
use crate::report::model::{CellReport, CpuCost};
use crate::report::numbers::plain;
use crate::stats::cost::Consumer;
use maud::{Markup, html};

/// The value as a bar from 0, with its interval as a line; `most` is the end of the scale.
pub(super) fn value(median: f64, [low, high]: [f64; 2], most: f64) -> Markup {
    let [value, from, to] = [median, low, high].map(|value| (value / most * 100.0).clamp(0.0, 100.0));
    html! {
        i.bar style={ "--v:" (px(value)) "%" } {
            i style={ "left:" (px(from)) "%;width:" (px(to - from)) "%" } {}
        }
    }
}

/// CPU time by role, in path order; last the rest of the machine's.
pub(super) fn parts(cell: &CellReport) -> Vec<(String, f64)> {
    let cost = |cost: &CpuCost| cost.us_per_op.or(cost.us_per_mb).filter(|cost| cost.is_finite());
    let is_role = |(consumer, _): &(&Consumer, &CpuCost)| **consumer != Consumer::Machine;
    let roles = cell.cpu.iter().filter(is_role);
    let mut parts: Vec<(String, f64)> =
        roles.filter_map(|(role, found)| Some((role.to_string(), cost(found)?))).collect();
    let used: f64 = parts.iter().map(|(_, cost)| cost).sum();
    let rest = cell.cpu.get(&Consumer::Machine).and_then(cost).map(|machine| machine - used);
    // Clocks of processes and of CPUs differ by some per cent.
    parts.extend(rest.filter(|rest| *rest > 0.02 * used).map(|rest| ("rest".to_owned(), rest)));
    parts
}

/// `µs/op` or `µs/MB`.
pub(super) fn unit(cell: &CellReport) -> &'static str {
    if cell.cpu.values().any(|cost| cost.us_per_mb.is_some()) { "µs/MB" } else { "µs/op" }
}

/// All parts together as text, and as a stacked bar.
pub(super) fn cpu(cell: &CellReport, most: f64) -> Markup {
    let parts = parts(cell);
    let sum: f64 = parts.iter().map(|(_, cost)| cost).sum();
    html! {
        span.v { (plain(sum)) }
        i.stack {
            @for (role, cost) in &parts { i class=(role) style={ "width:" (px(cost / most * 100.0)) "%" } {} }
        }
    }
}
