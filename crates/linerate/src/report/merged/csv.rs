//! A row for each cell, metric and host, for spreadsheets and data frames.

use super::build::{ratio, verdict};
use super::model::{MergedCell, MergedReport, MergedSuite, MergedTable, OnHost, OverHosts};
use crate::report::csv::{in_order, number};
use crate::report::formats::Style;
use crate::report::words::{self, outcome_name};

pub(super) fn render(report: &MergedReport, _: Style) -> String {
    let tables = || report.suites.iter().flat_map(|suite| suite.tables.iter().map(move |t| (suite, t)));
    let cells =
        || tables().flat_map(|(suite, table)| table.cells.iter().map(move |cell| (suite, table, cell)));
    let axes = in_order(cells().flat_map(|(_, _, cell)| cell.axes.0.iter().map(|(axis, _)| axis)));
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut write =
        |record: Vec<String>| writer.write_record(record).expect("memory can be written, and rows are even");
    let headers = FIRST.iter().map(|name| (*name).to_owned());
    let headers = headers.chain(axes.iter().map(|axis| format!("axis.{axis}")));
    write(headers.chain(LAST.iter().map(|name| (*name).to_owned())).collect());
    for (suite, table, cell) in cells() {
        for on_host in &cell.hosts {
            let axes = axes.iter().map(|axis| cell.axes.get(axis).unwrap_or_default().to_owned());
            let first = first(suite, table, cell, on_host).into_iter();
            write(first.chain(axes).chain(last(table, cell, on_host)).collect());
        }
    }
    let bytes = writer.into_inner().expect("memory can be flushed");
    String::from_utf8(bytes).expect("every field is a string")
}

const FIRST: [&str; 5] = ["suite", "table", "cell", "metric", "host"];

fn first(suite: &MergedSuite, table: &MergedTable, cell: &MergedCell, on_host: &OnHost) -> [String; 5] {
    let metric = cell.metric.map_or_else(|| words::table_unit(table.unit), words::metric);
    [suite.name.clone(), table.name.clone(), cell.id.clone(), metric, on_host.host.clone()]
}

const LAST: [&str; 16] = [
    "outcome",
    "detail",
    "n",
    "median",
    "low",
    "high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_n",
    "verdict",
    "over_hosts",
    "over_hosts_low",
    "over_hosts_high",
    "disagrees",
    "bound_by",
];

fn last(table: &MergedTable, cell: &MergedCell, on_host: &OnHost) -> [String; 16] {
    let found = ratio(on_host);
    let over = cell.over_hosts.as_ref();
    let of_hosts = |of: fn(&OverHosts) -> f64| number(over.map(of));
    let disagrees = table
        .disagreements
        .iter()
        .any(|found| found.id == cell.id && found.metric == cell.metric && found.host == on_host.host);
    [
        outcome_name(on_host.outcome).to_owned(),
        on_host.detail.clone().unwrap_or_default(),
        on_host.n.to_string(),
        number(on_host.median),
        number(on_host.ci95.map(|bounds| bounds[0])),
        number(on_host.ci95.map(|bounds| bounds[1])),
        number(found.map(|found| found.ratio)),
        number(found.map(|found| found.interval[0])),
        number(found.map(|found| found.interval[1])),
        found.map_or_else(String::new, |found| found.n.to_string()),
        verdict(on_host).unwrap_or_default().to_owned(),
        of_hosts(|over| over.median),
        of_hosts(|over| over.range[0]),
        of_hosts(|over| over.range[1]),
        disagrees.to_string(),
        on_host.bound_by.map(words::bound).unwrap_or_default(),
    ]
}
