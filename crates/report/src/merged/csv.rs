//! A row for each cell, metric and host, for spreadsheets and data frames.

use super::build::{ratio, verdict};
use super::model::{Disagreement, MergedCell, MergedReport, OnHost, Shown};
use crate::Style;
use crate::csv::{Columns, number};
use crate::words::{self, outcome_name};

struct Row<'a> {
    table: &'a Shown<'a>,
    cell: &'a MergedCell,
    on_host: &'a OnHost<'a>,
}

pub(super) fn render(report: &MergedReport, _: Style) -> String {
    let tables = report.shown();
    let cells = tables.iter().flat_map(|table| table.cells.iter().map(move |cell| (table, cell)));
    let rows: Vec<Row<'_>> = cells
        .flat_map(|(table, (cell, on_hosts))| {
            on_hosts.iter().map(move |on_host| Row { table, cell, on_host })
        })
        .collect();
    let over = |row: &Row<'_>| row.cell.over_hosts.clone();
    let mut columns = Columns(Vec::new());
    columns.add("suite", |row: &Row<'_>| row.table.suite.to_owned());
    columns.add("table", |row| row.table.merged.name.clone());
    columns.add("cell", |row| row.cell.id.clone());
    columns.add("metric", |row| {
        row.cell.metric.map_or_else(|| words::table_unit(row.table.table().unit), words::metric)
    });
    columns.add("host", |row| row.on_host.host.to_owned());
    columns.add_axes(&rows, |row| &row.on_host.cell.axes);
    columns.add("outcome", |row| outcome_name(row.on_host.cell.outcome).to_owned());
    columns.add("detail", |row| row.on_host.cell.detail.clone().unwrap_or_default());
    columns.add("n", |row| row.on_host.entry.alone.map_or(0, |alone| alone.n).to_string());
    columns.add("value", |row| number(row.on_host.entry.value));
    columns.add("low", |row| number(row.on_host.entry.ci95.map(|bounds| bounds[0])));
    columns.add("high", |row| number(row.on_host.entry.ci95.map(|bounds| bounds[1])));
    columns.add("ratio", |row| number(ratio(row.on_host).map(|found| found.ratio)));
    columns.add("ratio_low", |row| number(ratio(row.on_host).map(|found| found.interval[0])));
    columns.add("ratio_high", |row| number(ratio(row.on_host).map(|found| found.interval[1])));
    columns.add("ratio_n", |row| ratio(row.on_host).map_or_else(String::new, |found| found.n.to_string()));
    columns.add("verdict", |row| verdict(row.on_host).unwrap_or_default().to_owned());
    columns.add("over_hosts", move |row| number(over(row).map(|over| over.median)));
    columns.add("over_hosts_low", move |row| number(over(row).map(|over| over.range[0])));
    columns.add("over_hosts_high", move |row| number(over(row).map(|over| over.range[1])));
    columns.add("disagrees", |Row { table, cell, on_host, .. }| {
        let here = (cell.id.as_str(), cell.metric, on_host.host);
        let is_here = |found: &Disagreement| (found.id.as_str(), found.metric, found.host.as_str()) == here;
        table.merged.disagreements.iter().any(is_here).to_string()
    });
    columns.add("bound_by", |row| row.on_host.cell.bound_by.map(words::bound).unwrap_or_default());
    columns.render(&rows)
}
