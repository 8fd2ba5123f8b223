//! Tables of the time for a number of operations, told as rates: the longer bar is the better one, and the
//! values of two rows divide to the ratio beside them.

use linerate_model::{Metric, PlannedSuite, PlannedTable, Run};
use std::borrow::Cow;

/// The beginning of such a table's title.
const TIME: &str = "Seconds for ";

/// The run with these tables as rates. Figures of documents keep their own metric.
pub(super) fn as_rates(run: &Run) -> Cow<'_, Run> {
    let is_of_time = |table: &PlannedTable| table.metrics().any(|metric| metric == Metric::Seconds);
    if !run.suites.iter().flat_map(|suite| &suite.tables).any(is_of_time) {
        return Cow::Borrowed(run);
    }
    let mut run = run.clone();
    run.suites.iter_mut().for_each(tell);
    Cow::Owned(run)
}

fn tell(suite: &mut PlannedSuite) {
    let cells = &suite.cells;
    let has_operations = |table: &PlannedTable| {
        let mut here = cells.iter().filter(|cell| table.cells.contains(&cell.id));
        here.all(|cell| cell.parameters.operations.is_some())
    };
    for table in suite.tables.iter_mut().filter(|table| has_operations(table)) {
        table.metric = rate(table.metric);
        table.also =
            table.also.iter().map(|metric| rate(*metric)).filter(|also| *also != table.metric).collect();
        if let Some(best_of) = &mut table.best_of {
            best_of.metrics.iter_mut().for_each(|metric| *metric = rate(*metric));
        }
        if let Some(rest) = table.title.strip_prefix(TIME) {
            table.title = rest.to_owned();
        }
    }
}

/// The metric that is told in place of a time.
pub(super) fn rate(metric: Metric) -> Metric {
    if metric == Metric::Seconds { Metric::OperationsPerSecond } else { metric }
}

#[cfg(test)]
mod tests {
    use crate::build;
    use crate::fixture::{journal, run, trials};
    use linerate_model::Better;

    #[test]
    fn seconds_for_a_number_of_requests_are_told_as_requests_in_a_second() {
        let report = build(&run(), &journal(&run(), &trials()));
        let table = &report.suites[0].tables[0];
        assert_eq!((table.title.as_str(), table.better), ("2000 requests, 5 at a time", Better::Higher));
        let direct = table.cells.iter().find(|cell| cell.id == "nginx/direct").unwrap().value.unwrap();
        let slower = table.cells.iter().find(|cell| cell.id == "nginx/haproxy-http").unwrap();
        let ratio = slower.vs_baseline.as_ref().unwrap().ratio;
        assert!(ratio < 1.0 && direct > 1_000.0, "{ratio} {direct}");
        assert!((slower.value.unwrap() / direct - ratio).abs() < 1e-9, "values divide to the ratio");
    }
}
