//! The digits of a table's columns: in each the same.

use crate::report::model::{Comparison, Quantity, RowCpu, TableCell, TableReport};
use crate::report::numbers::{Digits, Ends, brief_percent, percent};
use crate::report::words;

/// How the numbers of a table are written.
#[derive(Debug)]
pub(crate) struct Precision {
    columns: Vec<Columns>,
    cpu: Digits,
    cpu_ratios: Digits,
    has_ratios: bool,
}

/// Values and ratios by one metric.
#[derive(Debug)]
struct Columns {
    metric: Option<Quantity>,
    values: Digits,
    ratios: Digits,
}

impl Precision {
    pub(crate) fn for_table(table: &TableReport) -> Self {
        let mut metrics: Vec<Option<Quantity>> = Vec::new();
        for cell in &table.cells {
            if !metrics.contains(&cell.metric) {
                metrics.push(cell.metric);
            }
        }
        let has_ratios = table.cells.iter().any(TableCell::is_by_ratio);
        let of_metric = |metric: Option<Quantity>| {
            let cells = || table.cells.iter().filter(move |cell| cell.metric == metric);
            let compared = cells().filter_map(|cell| cell.vs_baseline.as_ref());
            let values = cells().filter_map(|cell| Some((cell.value?, ends(cell, has_ratios))));
            let ratios = compared.map(|found| (found.ratio, Ends::from(found)));
            Columns { metric, values: Digits::of_column(values), ratios: Digits::of_column(ratios) }
        };
        let costs = table.cells.iter().filter_map(|cell| cell.cpu.as_ref());
        let duets = table.cells.iter().filter_map(|cell| cell.vs_baseline.as_ref()?.duet.as_ref());
        Self {
            columns: metrics.into_iter().map(of_metric).collect(),
            cpu: Digits::of_column(costs.filter_map(|cpu| Some((cpu.cost.micros()?, cpu.cost.ci95.into())))),
            cpu_ratios: Digits::of_column(
                duets.filter_map(|duet| Some((duet.cpu_ratio?, duet.cpu_ci95.into()))),
            ),
            has_ratios,
        }
    }

    /// The number of a row: `0.531 (0.510 to 0.547)`. `None` without one.
    pub(crate) fn value(&self, entry: &TableCell) -> Option<String> {
        let digits = self.column(entry.metric)?.values;
        Some(words::value(entry.metric, entry.value?, ends(entry, self.has_ratios), digits))
    }

    /// A small rate of bits, with a unit of its own: `9.33 (9.31 to 9.34) Mbit/s`.
    pub(crate) fn small_rate(&self, quantity: Option<Quantity>, entry: &TableCell) -> Option<String> {
        let digits = self.column(entry.metric)?.values;
        words::small_rate(quantity, entry.value?, ends(entry, self.has_ratios), digits)
    }

    /// `73.1 % (71.0 to 74.9)`.
    pub(crate) fn share(&self, metric: Option<Quantity>, found: &Comparison) -> String {
        let column = self.column(metric).map(|column| column.ratios);
        column.map_or_else(|| percent(found.ratio, found), |digits| digits.percent(found.ratio, found))
    }

    /// Microseconds per operation or megabyte.
    pub(crate) fn cpu(&self, cpu: &RowCpu) -> Option<String> {
        Some(self.cpu.text(cpu.cost.micros()?, Ends::Unknown))
    }

    /// The CPU time in relation to the baseline's: `102 % (101 to 103)`.
    pub(crate) fn cpu_share(&self, found: &Comparison) -> Option<String> {
        let duet = found.duet.as_ref()?;
        Some(self.cpu_ratios.percent(duet.cpu_ratio?, duet.cpu_ci95))
    }

    /// As [`Self::cpu_share`], without an interval.
    pub(crate) fn brief_cpu_share(found: &Comparison) -> Option<String> {
        Some(brief_percent(found.duet.as_ref()?.cpu_ratio?))
    }

    fn column(&self, metric: Option<Quantity>) -> Option<&Columns> {
        self.columns.iter().find(|column| column.metric == metric)
    }
}

/// Beside ratios the range of a few trials would look like their intervals: it is among the details.
fn ends(entry: &TableCell, has_ratios: bool) -> Ends {
    let range = entry.alone.filter(|_| !has_ratios).and_then(|alone| Some((alone.n, alone.range?)));
    match (entry.ci95, range) {
        (Some(interval), _) => Ends::Interval(interval),
        (None, Some((n, range))) => Ends::RangeOf(n, range),
        (None, None) => Ends::Unknown,
    }
}
