//! The digits of a table's columns: in each the same.

use crate::model::{Comparison, Quantity, RowCpu, TableCell, TableReport};
use crate::numbers::{Digits, Ends, longer, more, percent};
use crate::words;

/// How the numbers of a table are written.
#[derive(Debug)]
pub(crate) struct Precision {
    /// Digits of the ratios, by metric.
    ratios: Vec<(Option<Quantity>, Digits)>,
    /// The table's first metric.
    first: Option<Quantity>,
}

impl Precision {
    pub(crate) fn for_table(table: &TableReport) -> Self {
        let mut metrics: Vec<Option<Quantity>> = Vec::new();
        for cell in &table.cells {
            if !metrics.contains(&cell.metric) {
                metrics.push(cell.metric);
            }
        }
        let compared =
            || table.cells.iter().filter_map(|cell| Some((cell.metric, cell.vs_baseline.as_ref()?)));
        let of_metric = |metric: Option<Quantity>| {
            let found = compared().filter(|(of, _)| *of == metric).map(|(_, found)| found);
            (metric, Digits::of_ratios(found.map(|found| (found.ratio, Ends::from(found)))))
        };
        Self { ratios: metrics.into_iter().map(of_metric).collect(), first: table.quantity() }
    }

    /// The number of a row: `0.5312 (0.5101 to 0.5466)`, of few trials `0.5312 (n=3, 0.51 to 0.55)`. `None`
    /// without one.
    pub(crate) fn value(entry: &TableCell) -> Option<String> {
        Some(words::value(entry.metric, entry.value?, ends(entry)))
    }

    /// True if that number says of how many trials it is.
    pub(crate) fn has_trials(entry: &TableCell) -> bool {
        matches!(ends(entry), Ends::RangeOf(..))
    }

    /// A small rate of bits, with a unit of its own: `9.332 (9.311 to 9.342) Mbit/s`.
    pub(crate) fn small_rate(quantity: Option<Quantity>, entry: &TableCell) -> Option<String> {
        words::small_rate(quantity, entry.value?, ends(entry))
    }

    /// Performance in percent of the baseline's, `73.1 % (71.0 to 74.9)`; of a cost, such as a latency,
    /// how much more it is: `2.2x (2.1 to 2.3)`.
    pub(crate) fn share(&self, metric: Option<Quantity>, found: &Comparison) -> String {
        if metric.or(self.first).is_some_and(words::is_cost) {
            return longer(found.ratio, found);
        }
        let digits = self.ratios.iter().find(|(of, _)| *of == metric).map(|(_, digits)| digits);
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
