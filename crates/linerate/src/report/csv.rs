//! A row for each cell, for spreadsheets and data frames. Each axis, role and kind of error of any cell is a
//! column.

use super::formats::Style;
use super::model::{CellReport, Report, SuiteReport};
use super::words::{self, accuracy_name, outcome_name, verdict_name};
use crate::stats::cost::Consumer;
use crate::stats::difference::LatencyDifference;
use linerate_contract::ErrorKind;
use std::collections::BTreeSet;

#[must_use]
pub(super) fn render(report: &Report, _: Style) -> String {
    let rows: Vec<(&SuiteReport, &CellReport)> =
        report.suites.iter().flat_map(|suite| suite.cells.iter().map(move |cell| (suite, cell))).collect();
    let columns = columns(&rows);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write =
        |record: Vec<String>| writer.write_record(record).expect("memory can be written, and rows are even");
    write(columns.iter().map(|column| column.name.clone()).collect());
    for (suite, cell) in &rows {
        write(columns.iter().map(|column| (column.text)(suite, cell)).collect());
    }
    let bytes = writer.into_inner().expect("memory can be flushed");
    String::from_utf8(bytes).expect("every field is a string")
}

/// A column of a difference in microseconds, by its name.
type DifferenceColumn = (&'static str, fn(LatencyDifference) -> f64);

/// A difference and its interval.
const DIFFERENCES: [DifferenceColumn; 3] = [
    ("difference_us", |found| found.us),
    ("difference_us_low", |found| found.ci95[0]),
    ("difference_us_high", |found| found.ci95[1]),
];

type Text = Box<dyn Fn(&SuiteReport, &CellReport) -> String>;

struct CsvColumn {
    name: String,
    text: Text,
}

fn columns(rows: &[(&SuiteReport, &CellReport)]) -> Vec<CsvColumn> {
    let mut columns = Vec::new();
    let mut add = |name: &str, text: Text| {
        columns.push(CsvColumn { name: name.to_owned(), text });
    };
    add("suite", Box::new(|suite, _| suite.name.clone()));
    add("cell", Box::new(|_, cell| cell.id.clone()));
    for axis in in_order(rows.iter().flat_map(|(_, cell)| cell.axes.0.iter().map(|(axis, _)| axis))) {
        let name = format!("axis.{axis}");
        add(&name, Box::new(move |_, cell| cell.axes.get(&axis).unwrap_or_default().to_owned()));
    }
    add("outcome", Box::new(|_, cell| outcome_name(cell.outcome).to_owned()));
    add("detail", Box::new(|_, cell| cell.detail.clone().unwrap_or_default()));
    add("unit", Box::new(|_, cell| words::unit(cell.unit)));
    add("n", Box::new(|_, cell| cell.n.to_string()));
    add("median", Box::new(|_, cell| number(cell.median)));
    add("low", Box::new(|_, cell| number(cell.ci95.map(|bounds| bounds[0]))));
    add("high", Box::new(|_, cell| number(cell.ci95.map(|bounds| bounds[1]))));
    add("baseline", Box::new(|_, cell| cell.vs_baseline.as_ref().map_or(String::new(), |c| c.with.clone())));
    add("ratio", Box::new(|_, cell| number(cell.vs_baseline.as_ref().map(|c| c.ratio))));
    add("ratio_low", Box::new(|_, cell| number(cell.vs_baseline.as_ref().map(|c| c.ci95[0]))));
    add("ratio_high", Box::new(|_, cell| number(cell.vs_baseline.as_ref().map(|c| c.ci95[1]))));
    for (name, of) in DIFFERENCES {
        add(
            name,
            Box::new(move |_, cell| number(cell.vs_baseline.as_ref().and_then(|c| c.difference).map(of))),
        );
    }
    add(
        "verdict",
        Box::new(|_, cell| {
            cell.vs_baseline.as_ref().map_or(String::new(), |c| verdict_name(c.verdict).to_owned())
        }),
    );
    add("vs_limit", Box::new(|_, cell| number(cell.vs_limit.as_ref().map(|share| share.ratio))));
    add("vs_reference", Box::new(|_, cell| number(cell.vs_reference.as_ref().map(|share| share.ratio))));
    add("truth", Box::new(|_, cell| number(cell.vs_truth.as_ref().map(|found| found.truth))));
    add("reported_over_true", Box::new(|_, cell| number(cell.vs_truth.as_ref().map(|found| found.ratio))));
    add(
        "accuracy",
        Box::new(|_, cell| {
            cell.vs_truth.as_ref().map_or(String::new(), |found| accuracy_name(found.accuracy).to_owned())
        }),
    );
    add("bound_by", Box::new(|_, cell| cell.bound_by.map(words::bound).unwrap_or_default()));
    let consumers: BTreeSet<Consumer> = rows.iter().flat_map(|(_, cell)| cell.cpu.keys().copied()).collect();
    for consumer in consumers {
        let name = format!("cpu.{consumer}.us_per_");
        add(
            &format!("{name}op"),
            Box::new(move |_, cell| number(cell.cpu.get(&consumer).and_then(|c| c.us_per_op))),
        );
        add(
            &format!("{name}mb"),
            Box::new(move |_, cell| number(cell.cpu.get(&consumer).and_then(|c| c.us_per_mb))),
        );
    }
    add("latency_us.mean", Box::new(|_, cell| number(cell.latency_us.as_ref().map(|l| l.mean))));
    add("latency_us.p50", Box::new(|_, cell| number(cell.latency_us.as_ref().map(|l| l.p50))));
    add("latency_us.p90", Box::new(|_, cell| number(cell.latency_us.as_ref().map(|l| l.p90))));
    add("latency_us.p99", Box::new(|_, cell| number(cell.latency_us.as_ref().map(|l| l.p99))));
    add("latency_us.p999", Box::new(|_, cell| number(cell.latency_us.as_ref().map(|l| l.p999))));
    add("latency_us.max", Box::new(|_, cell| number(cell.latency_us.as_ref().map(|l| l.max))));
    add("operations", Box::new(|_, cell| cell.operations.to_string()));
    let kinds: BTreeSet<ErrorKind> =
        rows.iter().flat_map(|(_, cell)| cell.errors.0.keys().copied()).collect();
    for kind in kinds {
        let name = format!("errors.{}", kind.name());
        add(&name, Box::new(move |_, cell| cell.errors.0.get(&kind).copied().unwrap_or(0).to_string()));
    }
    add("flags", Box::new(|_, cell| words::flags(&cell.flags)));
    columns
}

/// Each name once, in order of occurrence.
pub(super) fn in_order<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

/// With all digits: programs do their own rounding.
pub(super) fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
