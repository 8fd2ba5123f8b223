//! Small multiples: a plot of each cell's ratios by host, all of a table on one axis; at its foot the median
//! and range over the hosts.

use super::build::ratio;
use super::model::{MergedCell, OnHost, Shown};
use super::view;
use crate::html::{Forest, anchor};
use crate::numbers::{percent, tick_percent};
use maud::{Markup, html};

/// Empty if no cell has a ratio on two hosts.
pub(super) fn multiples(table: &Shown<'_>) -> Markup {
    let ratios = || table.cells.iter().flat_map(|(_, on_hosts)| on_hosts).filter_map(ratio);
    let intervals = ratios().map(|found| found.interval);
    let is_compared = |cell: &MergedCell| cell.over_hosts.as_ref().is_some_and(|over| over.hosts > 1);
    let cells: Vec<_> = table.cells.iter().filter(|(cell, _)| is_compared(cell)).collect();
    let forest = Forest::spanning(intervals, std::iter::empty(), table.table().margin);
    let Some(forest) = forest.filter(|_| !cells.is_empty()) else { return html! {} };
    let background = format!("{}~hosts", anchor(&[table.suite, &table.merged.name]));
    html! {
        svg.defs aria-hidden="true" width="0" height="0" { (forest.background_with(&background, &[])) }
        div.multiples { @for (cell, on_hosts) in cells { (multiple(&forest, &background, cell, on_hosts)) } }
        p.caption {
            "Ratios by host, on one axis: the line is the 95 % interval within the host, each dot a pair. \
             Over hosts: their median, and from the smallest to the largest; that is no confidence interval. \
             Shaded: the margin."
        }
    }
}

fn multiple(forest: &Forest, background: &str, cell: &MergedCell, on_hosts: &[OnHost<'_>]) -> Markup {
    html! {
        figure.multiple {
            figcaption { (view::name(cell)) }
            @for on_host in on_hosts { (row(forest, background, on_host)) }
            @if let Some(over) = &cell.over_hosts {
                div.host.over {
                    span { "over hosts" }
                    span.v { (percent(over.median, over.range)) }
                    (forest.drawing(background, over.median, over.range, ""))
                }
            }
            div.host { span {} span {} (forest.scale(tick_percent)) }
        }
    }
}

fn row(forest: &Forest, background: &str, on_host: &OnHost<'_>) -> Markup {
    let units = on_host.entry.vs_baseline.as_ref().map(|c| forest.units(&c.units)).unwrap_or_default();
    html! {
        div.host {
            span { (on_host.host) }
            @if let Some(found) = ratio(on_host) {
                span.v { (view::brief(on_host)) }
                (forest.drawing(background, found.ratio, found.interval, &units))
            } @else {
                span.v { (view::number(on_host)) }
                span {}
            }
        }
    }
}
