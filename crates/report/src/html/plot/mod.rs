//! The figures of a table: which of them its numbers allow.
//!
//! | figure | of |
//! |---|---|
//! | latency by percentile | cells with histograms |
//! | over time | cells with a series |
//! | by a parameter | an axis of the table with numbers: threads, connections, sizes, offered load |
//! | layers | tables that compare layers |

mod by_axis;
mod colours;
mod history;
mod lines;
mod over_time;
mod percentiles;
mod waterfall;

pub(super) use colours::Colours;
pub(crate) use history::{HistoryMark, history};

use super::anchor;
use crate::layout::{self, Group};
use crate::model::{SuiteReport, TableReport};
use maud::{Markup, html};

/// More groups than these would be longer than the table; their figures are folded, unless they are its
/// curves.
const OPEN_GROUPS: usize = 2;

/// Empty if the table allows none.
pub(super) fn figures(suite: &SuiteReport, table: &TableReport, colours: &Colours) -> Markup {
    let groups = layout::groups(suite, table);
    let mut figures: Vec<Markup> = Vec::new();
    let mut add = |kind: &str, markup: &dyn Fn(&str) -> Markup| {
        let id = format!("{}~{kind}", anchor(&[&suite.name, &table.name]));
        figures.push(markup(&id));
    };
    for (i, plot) in by_axis::plots(table, &groups).iter().enumerate() {
        add(&format!("by{i}"), &|id| plot.markup(id, colours));
    }
    for (i, group) in groups.iter().enumerate() {
        if let Some(layers) = waterfall::Waterfall::for_group(table, group) {
            add(&format!("layers{i}"), &|id| layers.markup(id));
        }
        if let Some(plot) = percentiles::plot(group).filter(|_| is_new(suite, table, group)) {
            add(&format!("latency{i}"), &|id| plot.markup(id, colours));
        }
        if let Some(plot) = over_time::plot(group).filter(|_| is_new(suite, table, group)) {
            add(&format!("time{i}"), &|id| plot.markup(id, colours));
        }
    }
    let has_curves = [&table.rows, &table.columns].into_iter().any(|axis| axis == by_axis::LOAD);
    html! {
        @if !figures.is_empty() {
            details.figures open[has_curves || groups.len() <= OPEN_GROUPS] {
                summary { "Figures" }
                div { @for figure in &figures { (figure) } }
            }
        }
    }
}

/// False if an earlier table draws all of these cells.
fn is_new(suite: &SuiteReport, table: &TableReport, group: &Group<'_>) -> bool {
    let earlier = || suite.tables.iter().take_while(|other| other.name != table.name);
    let is_drawn = |id: &String| earlier().any(|other| other.cells.iter().any(|cell| cell.id == *id));
    !group.members.iter().all(|member| is_drawn(&member.cell.id))
}

/// The name of a group behind a title: `, server nginx`.
fn of_group(group: &Group<'_>) -> String {
    if group.label.is_empty() { String::new() } else { format!(", {}", group.label) }
}

#[cfg(test)]
mod tests;
