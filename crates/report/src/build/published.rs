//! A document beside the cells that repeat it.

use super::cell::why_no_number;
use super::rates::rate;
use crate::model::{DerivedRows, FindingReport, PublishedReport, PublishedRow, PublishedRows, RatioOfTwo};
use crate::numbers;
use linerate_analysis::judge::{
    Alone, CellSummary, Comparison, Comparisons, Confirmation, Entry, FindingReading, RowValue, SuiteSummary,
    figure_ratio, readings,
};
use linerate_analysis::stats::ByRound;
use linerate_analysis::stats::estimate::Estimate;
use linerate_model::Better;
use linerate_model::{
    Claim, DerivedRow, DerivedTable, Finding, Metric, Published, PublishedFigure, PublishedTable,
};

/// A document and the suite that repeats it.
pub(super) struct Repeated<'a> {
    pub(super) published: &'a Published,
    pub(super) summary: &'a SuiteSummary<'a>,
    pub(super) comparisons: Comparisons<'a>,
}

impl Repeated<'_> {
    /// `is_whole`: with the rows that have no number. `None` where nothing is left.
    pub(super) fn report(&self, is_whole: bool) -> Option<PublishedReport> {
        let Published { document, source, date, machine, differences, tables, derived, findings } =
            self.published;
        let mut report = PublishedReport {
            document: document.clone(),
            source: source.clone(),
            date: date.clone(),
            machine: machine.clone(),
            differences: differences.clone(),
            tables: tables.iter().map(|table| self.table(table)).collect(),
            derived: derived.iter().map(|table| self.derived(table)).collect(),
            findings: findings.iter().map(|finding| self.finding(finding)).collect(),
        };
        if !is_whole {
            report.tables.iter_mut().for_each(|table| table.rows.retain(|row| row.value.is_some()));
            report.tables.retain(|table| !table.rows.is_empty());
            report.derived.iter_mut().for_each(|table| table.rows.retain(|row| row.ratio.is_some()));
            report.derived.retain(|table| !table.rows.is_empty());
            report.findings.retain(|finding| finding.confirmation != Confirmation::NotMeasured);
        }
        (!report.tables.is_empty()).then_some(report)
    }

    fn cell(&self, figure: &PublishedFigure) -> Option<&CellSummary<'_>> {
        let id = figure.cell.as_ref()?;
        self.summary.cells.iter().find(|cell| cell.planned.id == *id)
    }

    fn table(&self, table: &PublishedTable) -> PublishedRows {
        PublishedRows {
            title: table.title.clone(),
            rows: table.figures.iter().map(|figure| self.row(table, figure)).collect(),
        }
    }

    fn row(&self, table: &PublishedTable, figure: &PublishedFigure) -> PublishedRow {
        let cell = self.cell(figure);
        let by_round = cell.map(|cell| cell.values(figure.metric)).unwrap_or_default();
        let alone = Estimate::from_values(by_round.values().copied()).map(Alone::from);
        let tables = || self.summary.tables.iter().filter(|summary| summary.planned.name == table.table);
        let is_it =
            |id: &str, metric| Some(id) == figure.cell.as_deref() && rate(metric) == rate(figure.metric);
        let entry = tables().flat_map(|table| &table.entries).find(|entry| is_it(&entry.id, entry.metric));
        let operations = cell.and_then(|cell| cell.planned.parameters.operations);
        let compared = entry.and_then(|entry| in_metric(entry, figure.metric, operations));
        let compared = compared.as_ref();
        let value = RowValue::of_row(alone, compared, figure.metric.better());
        let ratio = compared.filter(|_| figure.percent.is_some());
        let convert = |value: f64| figure.unit.convert(value);
        let is_other = figure.metric == Metric::Seconds && operations != table.operations;
        let unmeasured = || cell.map_or_else(|| "not in this run".to_owned(), why_no_number);
        PublishedRow {
            row: figure.row.clone(),
            unit: figure.unit,
            published: figure.value,
            range: figure.range,
            text: figure.text.clone(),
            published_ratio: figure.percent.map(|percent| percent / 100.0),
            cell: figure.cell.clone(),
            value: value.map(|row| convert(row.value)),
            ci95: value.and_then(|row| row.ci95).map(|ends| ends.map(convert)),
            alone: alone.map(|alone| alone.converted(convert)),
            values: by_round.into_values().map(convert).collect(),
            operations: operations.filter(|_| is_other && alone.is_some()),
            lost: cell.and_then(|cell| lost(cell, figure.metric)).map(convert),
            ratio: ratio.map(|comparison| comparison.ratio),
            ratio_ci95: ratio
                .filter(|comparison| !comparison.ci95_is_range)
                .map(|comparison| comparison.ci95),
            reason: figure.reason.clone().or_else(|| alone.is_none().then(unmeasured)),
        }
    }

    fn derived(&self, table: &DerivedTable) -> DerivedRows {
        let row = |row: &DerivedRow| {
            let finding = Finding {
                text: String::new(),
                figures: row.figures.to_vec(),
                claim: Claim::Ahead,
                readings: Vec::new(),
                decides: None,
            };
            let found = self.readings(&finding).into_iter().next();
            found.map(|found| RatioOfTwo { row: row.row.clone(), ..found })
        };
        DerivedRows {
            title: table.title.clone(),
            form: table.form,
            names: table.names.clone(),
            rows: table.rows.iter().filter_map(row).collect(),
        }
    }

    fn finding(&self, finding: &Finding) -> FindingReport {
        let readings = self.readings(finding);
        let figures = finding.figures.iter().filter_map(|place| self.published.figure(place));
        let text = |figure: &PublishedFigure| {
            let PublishedFigure { row, unit, value, range, text, .. } = figure;
            format!("{row}: {}", numbers::figure(*unit, *value, *range, text.as_deref()))
        };
        FindingReport {
            text: finding.text.clone(),
            figures: figures.map(text).collect(),
            confirmation: readings.first().map_or(Confirmation::NotMeasured, |found| found.confirmation),
            readings,
            decides: finding.decides.clone(),
        }
    }

    fn readings(&self, finding: &Finding) -> Vec<RatioOfTwo> {
        let figures: Vec<&PublishedFigure> =
            finding.figures.iter().filter_map(|place| self.published.figure(place)).collect();
        let pair = <[&PublishedFigure; 2]>::try_from(figures.as_slice()).ok();
        let published_difference = pair.filter(|[first, _]| first.metric.is_latency());
        let of = |found: FindingReading<'_>| RatioOfTwo {
            row: found.form.to_owned(),
            is_inverse: figures.first().is_some_and(|figure| figure.metric.better() == Better::Lower),
            published: pair.and_then(figure_ratio),
            published_difference: published_difference
                .and_then(|[first, second]| Some(first.typical()? - second.typical()?)),
            cells: found.cells.iter().map(|cell| (*cell).to_owned()).collect(),
            ratio: found.comparison.as_ref().map(|comparison| comparison.ratio),
            ci95: found.comparison.as_ref().map(|comparison| comparison.ci95),
            difference: found.comparison.as_ref().and_then(|comparison| comparison.difference),
            n: found.comparison.as_ref().map_or(0, |comparison| comparison.n),
            through: found.comparison.and_then(|comparison| comparison.duet?.through),
            confirmation: found.confirmation,
        };
        let SuiteSummary { cells, tables } = self.summary;
        readings(finding, self.published, cells, tables, &self.comparisons).into_iter().map(of).collect()
    }
}

/// The number of datagrams that were sent and not received; `None` of another metric, or of a transport that
/// loses none.
fn lost(cell: &CellSummary<'_>, metric: Metric) -> Option<f64> {
    let is_it = metric == Metric::GbitPerSecond;
    is_it.then(|| difference(&cell.values(Metric::SentGbitPerSecond), &cell.values(metric)))?
}

/// The median over the rounds that have both.
fn difference(sent: &ByRound, received: &ByRound) -> Option<f64> {
    let lost = sent.iter().filter_map(|(round, sent)| Some(sent - received.get(round)?));
    Some(Estimate::from_values(lost)?.median)
}

/// The comparison of a row, with the value of its baseline by the metric of a document's figure: where the
/// table tells a time as a rate, the time again.
fn in_metric(entry: &Entry, metric: Metric, operations: Option<u64>) -> Option<Comparison> {
    let mut found = entry.vs_baseline.clone()?;
    if entry.metric != metric {
        let seconds = |rate: f64| operations.map(|operations| operations as f64 / rate);
        found.with_value = found.with_value.and_then(seconds);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_was_sent_in_the_same_round_and_not_received() {
        let (sent, received) =
            (ByRound::from([(1, 35.5), (2, 30.0), (3, 40.0)]), ByRound::from([(1, 25.8), (3, 30.5)]));
        assert!((difference(&sent, &received).unwrap() - 9.6).abs() < 1e-9);
        assert_eq!(difference(&ByRound::new(), &received), None);
    }
}
