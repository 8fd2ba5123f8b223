//! Findings of a document, looked at again: computed from its figures and the cells that repeat them.

use super::cell::{CellSummary, OutcomeWord};
use super::compare::Comparisons;
use super::comparison::Comparison;
use super::table::TableSummary;
use crate::stats::verdict::Verdict;
use linerate_model::Better;
use linerate_model::{Claim, Finding, Metric, Published, PublishedFigure};
use serde::{Deserialize, Serialize};

/// A run's answer to a finding of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Confirmation {
    #[serde(rename = "holds")]
    Holds,
    #[serde(rename = "does not hold")]
    DoesNotHold,
    #[serde(rename = "not decided")]
    NotDecided,
    #[serde(rename = "not measured here")]
    NotMeasured,
}

/// A finding in one form of the measurement.
#[derive(Debug)]
pub struct FindingReading<'a> {
    /// Empty where it has but one.
    pub form: &'a str,
    /// As many as the finding has figures; fewer where a figure has none.
    pub cells: Vec<&'a str>,
    pub comparison: Option<Comparison>,
    pub confirmation: Confirmation,
}

/// Performance of a figure in relation to another one by the same metric; `None` without values.
pub fn figure_ratio([first, second]: [&PublishedFigure; 2]) -> Option<f64> {
    let ratio = first.typical()? / second.typical()?;
    match first.metric.better() {
        _ if first.metric != second.metric => None,
        Better::Higher => Some(ratio),
        Better::Lower => Some(1.0 / ratio),
    }
}

/// A finding in each of its forms. `tables`: those of the run, for their controls.
pub fn readings<'a>(
    finding: &'a Finding,
    published: &'a Published,
    cells: &[CellSummary<'_>],
    tables: &[TableSummary<'_>],
    comparisons: &Comparisons<'_>,
) -> Vec<FindingReading<'a>> {
    let figures: Vec<&PublishedFigure> =
        finding.figures.iter().filter_map(|place| published.figure(place)).collect();
    let Some(metric) = figures.first().map(|figure| figure.metric) else { return Vec::new() };
    let read = |form: &'a str, ids: Vec<&'a str>| {
        let found: Vec<&CellSummary<'_>> =
            ids.iter().filter_map(|id| cells.iter().find(|cell| cell.planned.id == *id)).collect();
        let comparison = match found[..] {
            [first, second] => comparisons.compare_any(first, second, metric, cells),
            _ => None,
        };
        let confirmation = match (finding.claim, &comparison) {
            (Claim::Fails, _) => found.first().map_or(Confirmation::NotMeasured, |cell| fails(cell)),
            (_, None) => Confirmation::NotMeasured,
            (_, Some(comparison)) if is_withdrawn(comparison, metric, ids[0], tables) => {
                Confirmation::NotDecided
            }
            (claim, Some(comparison)) => judge(claim, comparison),
        };
        FindingReading { form, cells: ids, comparison, confirmation }
    };
    if finding.readings.is_empty() {
        return vec![read("", figures.iter().filter_map(|figure| figure.cell.as_deref()).collect())];
    }
    let ids = |cells: &'a [String]| cells.iter().map(String::as_str).collect();
    finding.readings.iter().map(|reading| read(&reading.form, ids(&reading.cells))).collect()
}

fn fails(cell: &CellSummary<'_>) -> Confirmation {
    match cell.outcome {
        OutcomeWord::Ok => Confirmation::DoesNotHold,
        OutcomeWord::Failed if !cell.failures.is_empty() => Confirmation::Holds,
        _ => Confirmation::NotMeasured,
    }
}

/// Whether the ratio is that of duets of a table whose baseline differs from itself.
/// A time for a number of operations and the rate have the same ratios.
fn is_alike(a: Metric, b: Metric) -> bool {
    let is_rate = |metric| matches!(metric, Metric::Seconds | Metric::OperationsPerSecond);
    a == b || is_rate(a) && is_rate(b)
}

fn is_withdrawn(comparison: &Comparison, metric: Metric, cell: &str, tables: &[TableSummary<'_>]) -> bool {
    let has_cell = |table: &&TableSummary<'_>| {
        table.entries.iter().any(|entry| entry.id == cell && is_alike(entry.metric, metric))
    };
    let fails =
        |table: &TableSummary<'_>| table.aa.as_ref().is_some_and(|aa| aa.fails_as_control(table.margin));
    comparison.duet.is_some() && tables.iter().filter(has_cell).any(fails)
}

fn judge(claim: Claim, comparison: &Comparison) -> Confirmation {
    let [low, high] = comparison.ci95;
    match claim {
        _ if comparison.ci95_is_range => Confirmation::NotDecided,
        Claim::Between([from, to]) if from <= low && high <= to => Confirmation::Holds,
        Claim::Between([from, to]) if high < from || to < low => Confirmation::DoesNotHold,
        Claim::Between(_) => Confirmation::NotDecided,
        Claim::Ahead | Claim::Fails => match comparison.verdict {
            Verdict::Faster => Confirmation::Holds,
            Verdict::Slower | Verdict::SmallDifference | Verdict::WithinMargin => Confirmation::DoesNotHold,
            Verdict::NotSlower | Verdict::CannotTell | Verdict::Failed | Verdict::Missing => {
                Confirmation::NotDecided
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{SortedJournal, suite};
    use linerate_contract::Nanos;
    use linerate_model::{DocumentUnit, Found, Measurement, Outcome, Run, Sides, Stage, Unit};
    use serde_json::{Value, json};

    /// A run of two cells by mean latency, whose medians are these microseconds; `None`: each trial failed.
    fn run(cells: [(&str, Option<f64>); 2], rounds: u32) -> (Run, Vec<Unit>) {
        let planned = |(id, _): &(&str, Option<f64>)| {
            json!({"id": id, "axes": {"system": id}, "workload": "rr", "layer": "tcp",
                "path": {"device": "loopback", "links": [{"mtu": 65_536}]},
                "parameters": {}, "systems": [], "absent": null})
        };
        let run = json!({
            "schema": "linerate.run/2", "id": "1", "command": "", "seed": 1, "rounds": rounds, "quick": false,
            "started": "", "linerate": "0",
            "host": {"kernel": "", "cpu_model": "", "cpus": 2, "memory_bytes": 0, "privileges": "",
                "facts": {}},
            "suites": [{
                "name": "s", "question": "", "rounds": rounds, "warmup_rounds": 0,
                "cells": cells.iter().map(planned).collect::<Vec<_>>(),
                "tables": [{"name": "t", "title": "", "metric": "seconds", "rows": "system", "columns": "x",
                    "row_values": [], "column_values": [], "cells": cells.map(|(id, _)| id),
                    "baseline": {"system": "b"}, "limit": null, "notes": []}],
            }],
        });
        let unit = |round: u32, cell: usize| {
            let measurement = cells[cell].1.map(|seconds| Measurement {
                elapsed: Nanos((seconds * 1e9 * (1.0 + 0.001 * f64::from(round))) as u64),
                operations: 10,
                ..Measurement::default()
            });
            let failed =
                || Outcome::Failed { stage: Stage::Measure, reason: "it hangs".into(), log: String::new() };
            let outcome = if measurement.is_some() { Outcome::Ok } else { failed() };
            let found = Found::Alone(measurement);
            Unit { number: round, outcome, ..Unit::new(Sides::One(cell), found) }
        };
        let trials = (1..=rounds).flat_map(|round| [0, 1].map(|cell| unit(round, cell))).collect();
        (serde_json::from_value(run).expect("the run follows the model"), trials)
    }

    fn figure(row: &str, value: f64) -> Value {
        json!({"row": row, "cell": row, "value": value, "metric": "seconds", "unit": "s"})
    }

    fn confirmation(claim: &Value, cells: [(&str, Option<f64>); 2], rounds: u32) -> Confirmation {
        let published: Published = serde_json::from_value(json!({
            "document": "d", "machine": "m",
            "tables": [{"title": "T", "table": "t", "figures": [figure("a", 1.0), figure("b", 2.0)]}],
            "findings": [{"text": "a is ahead", "figures": [["T", "a"], ["T", "b"]], "claim": claim}],
        }))
        .expect("the document follows the model");
        let (run, trials) = run(cells, rounds);
        let journal = SortedJournal::sort(&run, &trials);
        let found = suite(&run, 0, &journal, None);
        let comparisons = Comparisons { suite: 0, journal: &journal, judgement: None };
        let finding = &published.findings[0];
        assert_eq!(
            published.pair(&[finding.figures[0].clone(), finding.figures[1].clone()]).and_then(figure_ratio),
            Some(2.0)
        );
        readings(finding, &published, &found.cells, &found.tables, &comparisons)[0].confirmation
    }

    #[test]
    fn a_finding_holds_or_not_by_the_interval_of_the_ratio_of_its_cells() {
        let ahead = json!("ahead");
        let of = |a: f64, b: f64| [("a", Some(a)), ("b", Some(b))];
        assert_eq!(confirmation(&ahead, of(1.0, 1.5), 6), Confirmation::Holds);
        assert_eq!(confirmation(&ahead, of(1.5, 1.0), 6), Confirmation::DoesNotHold);
        assert_eq!(confirmation(&ahead, of(1.0, 1.0), 6), Confirmation::DoesNotHold, "they are equal");
        assert_eq!(confirmation(&ahead, of(1.0, 1.5), 5), Confirmation::NotDecided, "five rounds");
        let between = json!({"between": [1.4, 1.6]});
        assert_eq!(confirmation(&between, of(1.0, 1.5), 6), Confirmation::Holds);
        assert_eq!(confirmation(&between, of(1.0, 1.7), 6), Confirmation::DoesNotHold);
    }

    #[test]
    fn a_cell_without_a_value_decides_only_that_it_fails() {
        let failed = [("a", None), ("b", Some(1.0))];
        assert_eq!(confirmation(&json!("ahead"), failed, 6), Confirmation::NotMeasured);
        assert_eq!(confirmation(&json!("fails"), failed, 6), Confirmation::Holds);
        let works = [("a", Some(1.0)), ("b", Some(1.0))];
        assert_eq!(confirmation(&json!("fails"), works, 6), Confirmation::DoesNotHold);
    }

    #[test]
    fn a_range_has_its_middle_as_a_typical_value_and_figures_of_two_units_a_ratio() {
        let figure = |unit: DocumentUnit, value: Value, range: Value| -> PublishedFigure {
            let figure = json!({"row": "", "value": value, "range": range, "metric": "operations-per-second",
                "unit": unit});
            serde_json::from_value(figure).expect("it follows the model")
        };
        let million = figure(DocumentUnit::MillionsPerSecond, Value::Null, json!([2.0, 4.0]));
        let thousand = figure(DocumentUnit::ThousandsPerSecond, json!(1500.0), Value::Null);
        assert_eq!(million.typical(), Some(3e6));
        assert!((figure_ratio([&million, &thousand]).unwrap() - 2.0).abs() < 1e-12);
    }
}
