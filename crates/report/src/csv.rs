//! A row for each cell, for spreadsheets and data frames. Each axis, role and kind of error of any cell is a
//! column.

use super::Style;
use super::model::{CellReport, Comparison, Report, SuiteReport};
use super::words::{self, accuracy_name, outcome_name, verdict_name};
use linerate_analysis::stats::cost::Consumer;
use linerate_analysis::stats::difference::LatencyDifference;
use linerate_analysis::stats::latency::Latency;
use linerate_contract::ErrorKind;
use linerate_model::axes::Axes;
use std::collections::BTreeSet;

type Row<'a> = (&'a SuiteReport, &'a CellReport);

pub(super) fn render(report: &Report, _: Style) -> String {
    let rows: Vec<Row<'_>> =
        report.suites.iter().flat_map(|suite| suite.cells.iter().map(move |cell| (suite, cell))).collect();
    columns(&rows).render(&rows)
}

fn columns<'a>(rows: &[Row<'a>]) -> Columns<'a, Row<'a>> {
    let baseline = |cell: &CellReport, of: fn(&Comparison) -> f64| number(cell.vs_baseline.as_ref().map(of));
    let difference = |cell: &CellReport, of: fn(LatencyDifference) -> f64| {
        number(cell.vs_baseline.as_ref().and_then(|c| c.difference).map(of))
    };
    let latency = |cell: &CellReport, of: fn(&Latency) -> f64| number(cell.latency_us.as_ref().map(of));
    let mut columns: Columns<'a, Row<'a>> = Columns(Vec::new());
    columns.add("suite", |(suite, _)| suite.name.clone());
    columns.add("cell", |(_, cell)| cell.id.clone());
    columns.add_axes(rows, |(_, cell)| &cell.axes);
    columns.add("outcome", |(_, cell)| outcome_name(cell.outcome).to_owned());
    columns.add("detail", |(_, cell)| cell.detail.clone().unwrap_or_default());
    columns.add("unit", |(_, cell)| words::unit(cell.unit));
    columns.add("n", |(_, cell)| cell.n.to_string());
    columns.add("value", |(_, cell)| number(cell.value));
    columns.add("low", |(_, cell)| number(cell.ci95.map(|bounds| bounds[0])));
    columns.add("high", |(_, cell)| number(cell.ci95.map(|bounds| bounds[1])));
    columns.add("baseline", |(_, cell)| cell.vs_baseline.as_ref().map_or(String::new(), |c| c.with.clone()));
    columns.add("ratio", move |(_, cell)| baseline(cell, |c| c.ratio));
    columns.add("ratio_low", move |(_, cell)| baseline(cell, |c| c.ci95[0]));
    columns.add("ratio_high", move |(_, cell)| baseline(cell, |c| c.ci95[1]));
    columns.add("difference_us", move |(_, cell)| difference(cell, |found| found.us));
    columns.add("difference_us_low", move |(_, cell)| difference(cell, |found| found.ci95[0]));
    columns.add("difference_us_high", move |(_, cell)| difference(cell, |found| found.ci95[1]));
    columns.add("verdict", |(_, cell)| {
        cell.vs_baseline.as_ref().map_or("", |c| verdict_name(c.verdict)).to_owned()
    });
    columns.add("vs_limit", |(_, cell)| number(cell.vs_limit.as_ref().map(|share| share.ratio)));
    columns.add("vs_reference", |(_, cell)| number(cell.vs_reference.as_ref().map(|share| share.ratio)));
    columns.add("truth", |(_, cell)| number(cell.vs_truth.as_ref().map(|found| found.truth)));
    columns.add("reported_over_true", |(_, cell)| number(cell.vs_truth.as_ref().map(|found| found.ratio)));
    columns.add("accuracy", |(_, cell)| {
        cell.vs_truth.as_ref().map_or("", |found| accuracy_name(found.accuracy)).to_owned()
    });
    columns.add("bound_by", |(_, cell)| cell.bound_by.map(words::bound).unwrap_or_default());
    let consumers: BTreeSet<Consumer> = rows.iter().flat_map(|(_, cell)| cell.cpu.keys().copied()).collect();
    for consumer in consumers {
        let cost = move |cell: &'a CellReport| cell.cpu.get(&consumer);
        let name = format!("alone.cpu.{consumer}.us_per_");
        columns.add(&format!("{name}op"), move |(_, cell)| number(cost(cell).and_then(|c| c.us_per_op)));
        columns.add(&format!("{name}mb"), move |(_, cell)| number(cost(cell).and_then(|c| c.us_per_mb)));
    }
    columns.add("alone.latency_us.mean", move |(_, cell)| latency(cell, |l| l.mean));
    columns.add("alone.latency_us.p50", move |(_, cell)| latency(cell, |l| l.p50));
    columns.add("alone.latency_us.p90", move |(_, cell)| latency(cell, |l| l.p90));
    columns.add("alone.latency_us.p99", move |(_, cell)| latency(cell, |l| l.p99));
    columns.add("alone.latency_us.p999", move |(_, cell)| latency(cell, |l| l.p999));
    columns.add("alone.latency_us.max", move |(_, cell)| latency(cell, |l| l.max));
    columns.add("operations", |(_, cell)| cell.operations.to_string());
    let kinds: BTreeSet<ErrorKind> =
        rows.iter().flat_map(|(_, cell)| cell.errors.0.keys().copied()).collect();
    for kind in kinds {
        let count = move |(_, cell): &Row<'a>| cell.errors.0.get(&kind).copied().unwrap_or(0).to_string();
        columns.add(&format!("errors.{}", kind.name()), count);
    }
    columns.add("flags", |(_, cell)| words::flags(&cell.flags));
    columns
}

/// The name of a column, and its text in a row.
type CsvColumn<'a, R> = (String, Box<dyn Fn(&R) -> String + 'a>);

/// The columns of a file.
pub(super) struct Columns<'a, R>(pub(super) Vec<CsvColumn<'a, R>>);

impl<'a, R: 'a> Columns<'a, R> {
    pub(super) fn add(&mut self, name: &str, text: impl Fn(&R) -> String + 'a) {
        self.0.push((name.to_owned(), Box::new(text)));
    }

    /// One for each axis of any row.
    pub(super) fn add_axes(&mut self, rows: &[R], axes: fn(&R) -> &Axes) {
        for axis in in_order(rows.iter().flat_map(|row| axes(row).0.iter().map(|(axis, _)| axis))) {
            self.add(&format!("axis.{axis}"), move |row| axes(row).get(&axis).unwrap_or_default().to_owned());
        }
    }

    pub(super) fn render(&self, rows: &[R]) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |record: Vec<String>| {
            writer.write_record(record).expect("memory can be written, and rows are even")
        };
        write(self.0.iter().map(|(name, _)| data(name.clone())).collect());
        rows.iter().for_each(|row| write(self.0.iter().map(|(_, text)| data(text(row))).collect()));
        let bytes = writer.into_inner().expect("memory can be flushed");
        String::from_utf8(bytes).expect("every field is a string")
    }
}

/// A spreadsheet takes text that begins so for a formula, and text behind an apostrophe for text.
fn data(text: String) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if is_formula { format!("'{text}") } else { text }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_no_formula() {
        let mut columns: Columns<'_, &str> = Columns(Vec::new());
        columns.add("=name", |text| (*text).to_owned());
        let rows = ["=HYPERLINK(1)", "@SUM(1)", "+x", "-x", "-0.5", "1e3", "a=b"];
        let expected = "'=name\n'=HYPERLINK(1)\n'@SUM(1)\n'+x\n'-x\n-0.5\n1e3\na=b\n";
        assert_eq!(columns.render(&rows), expected);
    }
}
