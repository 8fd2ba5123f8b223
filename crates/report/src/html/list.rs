//! A table as rows: tier, value, ratio, CPU, what bound it, further metrics, and all details of the cell.

use super::anchor;
use super::forest::Forest;
use super::{bars, sentence};
use crate::layout::{self, Alternative, Group, Part, Precision};
use crate::model::{CellReport, Quantity, Sensitivity, SuiteReport, TableCell, TableReport};
use crate::numbers::{percent, tick_change, tick_percent, tick_times};
use crate::words::{self, accuracy_name, outcome_name, verdict_name};
use linerate_analysis::stats::cost::Consumer;
use linerate_contract::Role;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// The common part of a table's rows.
struct Columns<'a> {
    table: &'a TableReport,
    precision: Precision,
    /// The address of suite and table.
    anchor: String,
    unit: String,
    forest: Option<Forest>,
    has_tiers: bool,
    has_bounds: bool,
    /// The largest value, and the largest CPU cost; `None` if no cell has one.
    most: Option<f64>,
    most_cpu: Option<f64>,
    /// Metrics after the first.
    further: Vec<Quantity>,
}

pub(super) fn list(suite: &SuiteReport, table: &TableReport) -> Markup {
    let groups = layout::groups(suite, table);
    let columns = Columns::for_table(suite, table, &groups);
    let costs = groups.iter().flat_map(|group| &group.members).filter_map(|m| m.entry.cpu.as_ref());
    let cpu_unit = costs.map(bars::unit).next().unwrap_or_default();
    html! {
        @if let Some(forest) = &columns.forest {
            svg.defs aria-hidden="true" width="0" height="0" {
                @for (i, group) in groups.iter().enumerate() {
                    (forest.background(&columns.background(i), group))
                }
            }
        }
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table.list data-table=(columns.anchor) {
                thead { tr {
                    th scope="col" { "cell" }
                    @if columns.has_tiers { th scope="col" { "tier" } }
                    th scope="col" { (columns.unit) }
                    @if let Some(forest) = &columns.forest {
                        th.ratio scope="col" {
                            (columns.ratio_name())
                            (forest.scale(columns.tick()))
                        }
                    }
                    @if columns.most_cpu.is_some() {
                        th.c-cpu scope="col" { "CPU " (cpu_unit) (legend(&groups)) }
                    }
                    @if columns.has_bounds { th.c-bound scope="col" { "bound by" } }
                    @for metric in &columns.further { th.c-more scope="col" { (columns.name(*metric)) } }
                    th scope="col" { "details" }
                } }
                @for (i, group) in groups.iter().enumerate() { (body(&columns, i, group, groups.len() > 1)) }
            }
        }
    }
}

impl<'a> Columns<'a> {
    fn for_table(suite: &SuiteReport, table: &'a TableReport, groups: &[Group<'_>]) -> Self {
        let members = || groups.iter().flat_map(|group| &group.members);
        let most = |values: &mut dyn Iterator<Item = f64>| {
            values.filter(|value| value.is_finite() && *value > 0.0).reduce(f64::max)
        };
        // The bar of a limit may be longer than the scale.
        let shown = || members().filter(|member| member.part != Part::Limit).map(|member| member.entry);
        let end = |entry: &TableCell| Some(entry.ci95.map_or(entry.value?, |[_, high]| high));
        Self {
            table,
            precision: Precision::for_groups(table, groups),
            anchor: anchor(&[&suite.name, &table.name]),
            unit: layout::unit(table),
            forest: Forest::for_table(table, groups),
            has_tiers: members().any(|member| member.tier.is_some()),
            has_bounds: members().any(|member| member.cell.bound_by.is_some()),
            most: most(&mut shown().filter_map(end)),
            most_cpu: most(&mut members().filter_map(|m| m.entry.cpu.as_ref()?.cost.micros())),
            further: layout::further_metrics(table),
        }
    }

    /// The address of a group's background.
    fn background(&self, group: usize) -> String {
        format!("{}~{group}", self.anchor)
    }

    fn name(&self, metric: Quantity) -> String {
        self.precision.name(metric)
    }

    fn ratio_name(&self) -> &'static str {
        let is_of_truth = self.table.truth_tolerance.is_some();
        if is_of_truth { "reported, of the truth" } else { self.precision.ratio_name() }
    }

    /// How the axis of ratios writes its numbers: as the rows below it.
    fn tick(&self) -> fn(f64) -> String {
        match self.table.quantity().is_some_and(words::is_cost) {
            _ if self.table.truth_tolerance.is_some() => tick_percent,
            true => |ratio| tick_times(1.0 / ratio),
            false if self.precision.has_changes() => tick_change,
            false => tick_percent,
        }
    }

    fn number(&self) -> usize {
        let optional = [self.has_tiers, self.forest.is_some(), self.most_cpu.is_some(), self.has_bounds];
        3 + optional.iter().filter(|is_there| **is_there).count() + self.further.len()
    }
}

fn body(columns: &Columns<'_>, number: usize, group: &Group<'_>, is_one_of_many: bool) -> Markup {
    let answer = layout::answer(columns.table, group);
    html! {
        tbody {
            @if is_one_of_many {
                tr.group { th scope="rowgroup" colspan=(columns.number()) { div {
                    @if !group.label.is_empty() { span.where { (group.label) ": " } }
                    @if !columns.table.is_sequential {
                        span.why {
                            (sentence(&answer.lead)) @for more in &answer.rest { " " (sentence(more)) }
                        }
                    }
                } } }
            }
            @for (at, member) in group.members.iter().enumerate() {
                (row(columns, number, member, at > 0 && at == group.choices()))
            }
        }
    }
}

/// `begins_apart`: below it no row has a place.
fn row(columns: &Columns<'_>, group: usize, member: &Alternative<'_>, begins_apart: bool) -> Markup {
    let Alternative { cell, entry, .. } = member;
    let id = format!("{}.{}", columns.anchor, anchor(&[&cell.id]));
    html! {
        tr.rule[begins_apart] id=(id) {
            th scope="row" {
                a href={ "#" (id) } { (member.label) }
                @if !member.mark().is_empty() { " " span.part { (member.mark()) } }
            }
            @if columns.has_tiers {
                td data-l="tier" data-v=[member.tier] {
                    @if let Some(tier) = member.tier { span.tier { (tier) } }
                }
            }
            (value(columns, member))
            @if let Some(forest) = &columns.forest {
                (ratio(columns, forest, &columns.background(group), member))
            }
            @if let Some(most) = columns.most_cpu { (cpu(cell, entry, most)) }
            @if columns.has_bounds { td.c-bound data-l="bound by" { (bound(member)) } }
            @for metric in &columns.further { (further(columns, cell, *metric)) }
            td {
                details.all {
                    summary { "all" span.sr { " numbers of " (member.label) } }
                    p.caption { "By its trials alone:" }
                    dl { @for (name, text) in layout::facts_of(cell) { div { dt { (name) } dd { (text) } } } }
                }
            }
        }
    }
}

fn value(columns: &Columns<'_>, member: &Alternative<'_>) -> Markup {
    let Alternative { cell, entry, part, .. } = member;
    let (Some(value), Some(text)) = (entry.value, columns.precision.value(entry)) else {
        let word = outcome_name(cell.outcome);
        return html! { td.none data-l=(columns.unit) { (word) } };
    };
    html! {
        td data-l=(columns.unit) data-v=(short(value)) {
            span.v { (text) }
            @if let Some(most) = columns.most.filter(|_| *part != Part::Limit) {
                (bars::value(value, entry.ci95, most))
            }
        }
    }
}

/// The baseline; against itself where it was measured so.
fn baseline(columns: &Columns<'_>, forest: &Forest, background: &str, member: &Alternative<'_>) -> Markup {
    let aa = columns.table.aa.as_ref().filter(|aa| aa.with == member.cell.id);
    html! {
        td.ratio data-l=(columns.ratio_name()) data-v="1" {
            span.v { @if columns.precision.has_changes() { "baseline" } @else { "100 %" } }
            @if let Some(aa) = aa {
                span.sub {
                    "A/A: " (percent(aa.ratio, aa.ci95))
                }
                (forest.control(background, aa))
            }
        }
    }
}

fn ratio(columns: &Columns<'_>, forest: &Forest, background: &str, member: &Alternative<'_>) -> Markup {
    let entry = member.entry;
    if let Some(truth) = &entry.vs_truth {
        return html! {
            td class={ "ratio " (accuracy_name(truth.accuracy)) } data-l="against the truth"
                data-v=(short(truth.ratio)) {
                span.v { (columns.precision.error(entry.metric, truth)) } (forest.row(background, entry))
            }
        };
    }
    let Some(comparison) = &entry.vs_baseline else {
        return html! {
            @if member.part == Part::Baseline { (baseline(columns, forest, background, member)) }
            @else { td.ratio data-l=(columns.ratio_name()) {} }
        };
    };
    let word = if comparison.ci95_is_range { "too few rounds" } else { verdict_name(comparison.verdict) };
    html! {
        td class={ "ratio " (word) } data-l=(columns.ratio_name()) data-v=(short(comparison.ratio)) {
            span.v {
                (columns.precision.share(entry.metric, comparison)) " "
                span.sign aria-hidden="true" { (layout::mark(comparison)) }
                span.sr { (word) }
            }
            @if let Some(found) = &comparison.difference {
                span.micros { (columns.precision.difference(entry.metric, found)) }
            }
            (forest.row(background, entry))
        }
    }
}

fn cpu(cell: &CellReport, entry: &TableCell, most: f64) -> Markup {
    let row = entry.cpu.as_ref().filter(|_| entry.value.is_some());
    let number = row.and_then(|row| Some((row, row.cost.micros()?, Precision::cpu(row)?)));
    let Some((row, micros, text)) = number else { return html! { td.c-cpu data-l="CPU" {} } };
    let share =
        entry.vs_baseline.as_ref().and_then(|c| Some(layout::with_cpu_mark(Precision::cpu_share(c)?, c)));
    html! {
        td.c-cpu data-l={ "CPU " (bars::unit(row)) } data-v=(short(micros)) {
            span.v { (text) }
            (bars::cpu(&bars::parts(cell, row), most))
            @if let Some(share) = share { span.sub { (share) } }
        }
    }
}

/// The cell's bottleneck as a badge; where roles were probed, how much each of them decides.
fn bound(member: &Alternative<'_>) -> Markup {
    let Some(bound_by) = member.cell.bound_by.map(words::bound) else { return html! {} };
    let generator = member.is_bound_by_generator();
    let mut probed: Vec<(&Role, &Sensitivity)> = member.cell.sensitivity.iter().collect();
    probed.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    html! {
        span class={ "badge b-" (bound_by) } { (bound_by) @if generator { " (generator)" } }
        @for (role, found) in probed {
            span.sub { (role) " " (format!("{:.2}", found.value)) }
        }
    }
}

fn further(columns: &Columns<'_>, cell: &CellReport, metric: Quantity) -> Markup {
    let is_it = |entry: &&TableCell| entry.id == cell.id && entry.metric == Some(metric);
    let label = columns.name(metric);
    let entry = columns.table.cells.iter().find(is_it);
    let number = entry.and_then(|entry| Some((entry, entry.value?, columns.precision.value(entry)?)));
    let Some((entry, value, text)) = number else { return html! { td.c-more data-l=(label) {} } };
    let (comparison, truth) = (entry.vs_baseline.as_ref(), entry.vs_truth.as_ref());
    let word = comparison.filter(|c| !c.ci95_is_range).map(|c| verdict_name(c.verdict));
    let word = word.or(truth.map(|truth| accuracy_name(truth.accuracy))).unwrap_or_default();
    html! {
        td class={ "c-more " (word) } data-l=(label) data-v=(short(value)) {
            span.v { (text) }
            @if let Some(c) = comparison {
                span.sub {
                    (columns.precision.share(Some(metric), c)) " "
                    span aria-hidden="true" { (layout::mark(c)) }
                }
                @if let Some(found) = &c.difference {
                    span.micros { (columns.precision.difference(Some(metric), found)) }
                }
            }
            @if let Some(truth) = truth { span.sub { (columns.precision.error(Some(metric), truth)) } }
        }
    }
}

/// With the digits that an order needs.
fn short(value: f64) -> String {
    format!("{value:.5e}")
}

fn legend(groups: &[Group<'_>]) -> Markup {
    let of_member = |member: &Alternative<'_>| {
        let row = member.entry.cpu.as_ref();
        row.map_or_else(Vec::new, |row| bars::parts(member.cell, row))
    };
    let parts = groups.iter().flat_map(|group| &group.members).flat_map(of_member);
    let roles: BTreeSet<Consumer> = parts.map(|(role, _)| role).collect();
    html! { span.legend { @for role in &roles { span { i class=(role) {} (role) } " " } } }
}
