//! The digits and units of a table's columns: in each the same.

use super::groups::Group;
use crate::model::{AgainstTruth, Comparison, Quantity, RowCpu, TableCell, TableReport, TableUnit};
use crate::numbers::{self, Digits, Ends, TimeUnit, cost, longer, more, percent, plain};
use crate::words;
use linerate_analysis::stats::difference::LatencyDifference;

/// How the numbers of a table are written.
#[derive(Debug)]
pub(crate) struct Precision {
    columns: Vec<Column>,
    /// The table's first metric.
    first: Option<Quantity>,
    unit: TableUnit,
    /// The baseline has nothing in place of what is compared, so ratios are told as what that costs.
    is_beside_nothing: bool,
}

/// How the numbers of a metric are written.
#[derive(Debug)]
struct Column {
    metric: Option<Quantity>,
    ratios: Digits,
    /// The units of latencies, and of their differences: the same, or a smaller one.
    times: TimeUnit,
    differences: TimeUnit,
}

impl Precision {
    pub(crate) fn for_table(table: &TableReport) -> Self {
        let first = table.quantity();
        let of = |cell: &TableCell| cell.metric.or(first);
        let mut metrics: Vec<Option<Quantity>> = Vec::new();
        for metric in table.cells.iter().map(of) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        let column = |metric: Option<Quantity>| {
            let cells = || table.cells.iter().filter(|cell| of(cell) == metric);
            let compared = || cells().filter_map(|cell| cell.vs_baseline.as_ref());
            let differences = compared().filter_map(|found| found.difference.as_ref());
            let times = TimeUnit::fitting(cells().filter_map(|cell| cell.value));
            Column {
                metric,
                ratios: Digits::of_ratios(compared().map(|found| (found.ratio, Ends::from(found)))),
                times,
                differences: TimeUnit::fitting(differences.map(numbers::largest)).min(times),
            }
        };
        Self {
            columns: metrics.into_iter().map(column).collect(),
            first,
            unit: table.unit,
            is_beside_nothing: false,
        }
    }

    /// As [`Self::for_table`], for rows whose answer may be what each costs.
    pub(crate) fn for_groups(table: &TableReport, groups: &[Group<'_>]) -> Self {
        let is_beside_nothing = groups.iter().any(|group| group.nothing().is_some());
        Self { is_beside_nothing, ..Self::for_table(table) }
    }

    /// Whether the first metric's ratios are changes, `+2.1 %`, and no shares of a performance, `73.1 %`.
    pub(crate) fn has_changes(&self) -> bool {
        self.is_beside_nothing || self.first.is_some_and(words::is_cost)
    }

    /// The name of the column of ratios to the baseline.
    pub(crate) fn ratio_name(&self) -> &'static str {
        if self.has_changes() { "against baseline" } else { "of baseline" }
    }

    fn column(&self, metric: Option<Quantity>) -> Option<&Column> {
        self.columns.iter().find(|column| column.metric == metric.or(self.first))
    }

    fn times(&self, metric: Option<Quantity>) -> TimeUnit {
        self.column(metric).map_or(TimeUnit::Micros, |column| column.times)
    }

    /// A metric with the unit of its numbers here: `p99 latency, ms`.
    pub(crate) fn name(&self, metric: Quantity) -> String {
        words::metric_in(metric, self.times(Some(metric)))
    }

    /// The unit of the table's first metric.
    pub(crate) fn unit(&self) -> String {
        self.first.map_or_else(|| words::table_unit(self.unit), |metric| self.name(metric))
    }

    /// A value in the unit of its metric.
    pub(crate) fn in_unit(&self, metric: Option<Quantity>, value: f64) -> f64 {
        let is_time = metric.or(self.first).is_some_and(|of| of.metric.is_latency());
        if is_time { self.times(metric).of_micros(value) } else { value }
    }

    /// The number of a row: `0.5312 (0.5101 to 0.5466)`, of few trials `0.5312 (n=3, 0.51 to 0.55)`. `None`
    /// without one.
    pub(crate) fn value(&self, entry: &TableCell) -> Option<String> {
        Some(self.text(entry, entry.value?, ends(entry)))
    }

    /// As [`Self::value`], without an interval.
    pub(crate) fn brief_value(&self, entry: &TableCell) -> Option<String> {
        Some(self.text(entry, entry.value?, Ends::Unknown))
    }

    fn text(&self, entry: &TableCell, value: f64, ends: Ends) -> String {
        let in_unit = |value: f64| self.in_unit(entry.metric, value);
        words::value(entry.metric.or(self.first), in_unit(value), ends.map(in_unit))
    }

    /// The number of a row in a sentence: `68 (65 to 72) µs mean latency`, `28 (23 to 30) Gbit/s`. A time has
    /// the unit of its column where it is a number of one to four digits there. Empty without a number.
    pub(crate) fn told(&self, entry: &TableCell) -> String {
        self.with_unit(entry, ends(entry))
    }

    /// As [`Self::told`], without an interval.
    pub(crate) fn briefly_told(&self, entry: &TableCell) -> String {
        self.with_unit(entry, Ends::Unknown)
    }

    fn with_unit(&self, entry: &TableCell, ends: Ends) -> String {
        let Some(value) = entry.value else { return String::new() };
        let Some(quantity) = entry.metric.or(self.first) else { return words::value(None, value, ends) };
        let of_column = self.times(Some(quantity));
        let is_fit = (1.0..TimeUnit::MOST).contains(&of_column.of_micros(value));
        let unit = if is_fit { of_column } else { TimeUnit::fitting([value]) };
        let (name, of_value) = words::parts(quantity, unit);
        let number = match words::small_rate(Some(quantity), value, ends) {
            Some(with_unit) => return with_unit,
            None if quantity.metric.is_latency() => {
                Digits::OF_VALUES.text(unit.of_micros(value), ends.map(|end| unit.of_micros(end)))
            }
            None => words::value(Some(quantity), value, ends),
        };
        format!("{number} {of_value} {name}").trim_end().to_owned()
    }

    /// True if that number says of how many trials it is.
    pub(crate) fn has_trials(entry: &TableCell) -> bool {
        matches!(ends(entry), Ends::RangeOf(..))
    }

    /// How much longer an operation takes than with the baseline: `+0.42 µs (0.36 to 0.48)`.
    pub(crate) fn difference(&self, metric: Option<Quantity>, found: &LatencyDifference) -> String {
        let unit = self.column(metric).map_or(TimeUnit::Micros, |column| column.differences);
        numbers::difference_in(found, unit)
    }

    /// A reported value against the true one: `error -95.6 % (-96.1 to -95.0) of 90.0 ms: wrong`.
    pub(crate) fn error(&self, metric: Option<Quantity>, found: &AgainstTruth) -> String {
        let is_time = metric.or(self.first).is_some_and(|of| of.metric.is_latency());
        let unit = if is_time { format!(" {}", self.times(metric).name()) } else { String::new() };
        numbers::error(found, &(plain(self.in_unit(metric, found.truth)) + &unit))
    }

    /// Performance in percent of the baseline's, `73.1 % (71.0 to 74.9)`; of a cost, such as a latency,
    /// how much more it is: `2.2x (2.1 to 2.3)`; beside nothing how much less: `-26.9 % (-29.0 to -25.1)`.
    pub(crate) fn share(&self, metric: Option<Quantity>, found: &Comparison) -> String {
        if metric.or(self.first).is_some_and(words::is_cost) {
            return longer(found.ratio, found);
        }
        if self.is_beside_nothing {
            return cost(found.ratio, found);
        }
        let digits = self.column(metric).map(|column| column.ratios);
        digits.map_or_else(|| percent(found.ratio, found), |digits| digits.percent(found.ratio, found))
    }

    /// Microseconds per operation or megabyte.
    pub(crate) fn cpu(cpu: &RowCpu) -> Option<String> {
        Some(Digits::OF_VALUES.text(cpu.cost.micros()?, Ends::Unknown))
    }

    /// How much more CPU time than the baseline's: `+2.1 % (1.1 to 3.0)`.
    pub(crate) fn cpu_share(found: &Comparison) -> Option<String> {
        let duet = found.duet.as_ref()?;
        Some(more(duet.cpu_ratio?, duet.cpu_ci95))
    }

    /// As [`Self::cpu_share`], without an interval.
    pub(crate) fn brief_cpu_share(found: &Comparison) -> Option<String> {
        Some(more(found.duet.as_ref()?.cpu_ratio?, Ends::Unknown))
    }
}

/// The interval, or the range of a few trials, with their number. A row by its ratio has none of its own.
fn ends(entry: &TableCell) -> Ends {
    let range = entry.alone.filter(|_| !entry.is_by_ratio()).and_then(|alone| Some((alone.n, alone.range?)));
    match (entry.ci95, range) {
        (Some(interval), _) => Ends::Interval(interval),
        (None, Some((n, range))) => Ends::RangeOf(n, range),
        (None, None) => Ends::Unknown,
    }
}
