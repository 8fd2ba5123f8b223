//! A document beside the run that repeats it, as rows of text.

use super::TextTable;
use super::leaders::leaders;
use crate::model::{
    CellReport, CpuCost, DerivedRows, FindingReport, PublishedReport, PublishedRow, PublishedRows, RatioOfTwo,
};
use crate::numbers::{
    Digits, Ends, brief_percent, change, count, difference, figure, longer_by, percent, plain, times,
};
use crate::words::{self, confirmation_name};
use linerate_analysis::judge::Confirmation;
use linerate_analysis::stats::cost::Consumer;
use linerate_model::{Decider, DerivedForm};

/// The document in a line, and what differs from it.
pub(crate) fn about(published: &PublishedReport) -> Vec<String> {
    let date = published.date.as_ref().map_or_else(String::new, |date| format!(", {date}"));
    let source = published.source.as_ref().map_or_else(String::new, |source| format!(" Source: {source}."));
    let first = format!("{}{date}. Measured on: {}.{source}", published.document, published.machine);
    std::iter::once(first).chain(published.differences.iter().cloned()).collect()
}

/// The document's tables, then those that it computes from them. `cells`: with CPU time and bottleneck of
/// these.
pub(crate) fn tables(published: &PublishedReport, cells: &[CellReport]) -> Vec<TextTable> {
    let figures = published.tables.iter().map(|rows| table(rows, cells));
    figures.chain(published.derived.iter().map(derived)).collect()
}

/// A header, and its text in a row.
type PublishedColumn<'a> = (&'a str, &'a dyn Fn(&PublishedRow) -> Option<String>);

/// Columns that no row fills are left out.
fn table(table: &PublishedRows, cells: &[CellReport]) -> TextTable {
    let cell = |row: &PublishedRow| {
        cells.iter().find(|cell| Some(&cell.id) == row.cell.as_ref()).filter(|_| row.alone.is_some())
    };
    let lost = |row: &PublishedRow| Some(format!("{} {}", plain(row.lost?), row.unit.name()));
    let of_ratio = |row: &PublishedRow| Some((row.ratio?, Ends::from(row.ratio_ci95)));
    let ratios = Digits::of_ratios(table.rows.iter().filter_map(of_ratio));
    let ratio = |row: &PublishedRow| of_ratio(row).map(|(ratio, ends)| ratios.percent(ratio, ends));
    let fewer = operations(table);
    let run = format!("this run (95 % interval{})", fewer.map_or_else(String::new, for_operations));
    let text = |row: &PublishedRow| figure(row.unit, row.published, row.range, row.text.as_deref());
    let columns: [PublishedColumn<'_>; 9] = [
        ("as published", &|row| Some(row.row.clone())),
        ("document", &|row| Some(text(row))),
        (&run, &|row| of_run(row, fewer.is_some())),
        ("lost", &lost),
        ("document, of its baseline", &|row| row.published_ratio.map(brief_percent)),
        ("this run, of its baseline", &ratio),
        ("CPU, trials alone", &|row| cell(row).map(cpu)),
        ("bound by", &|row| cell(row)?.bound_by.map(words::bound)),
        // The list of exceptions has the other lines: the end of a log.
        ("why no number", &|row| row.reason.as_deref()?.lines().next().map(str::to_owned)),
    ];
    let is_filled = |(_, text): &PublishedColumn<'_>| {
        table.rows.iter().any(|row| text(row).is_some_and(|text| !text.is_empty()))
    };
    let columns: Vec<_> = columns.into_iter().filter(is_filled).collect();
    let row = |row: &PublishedRow| columns.iter().map(|(_, text)| text(row).unwrap_or_default()).collect();
    TextTable::new(&table.title, columns.iter().map(|(header, _)| *header))
        .with_rows(table.rows.iter().map(row))
}

/// ` for 5,000 operations`
fn for_operations(number: u64) -> String {
    format!(" for {} operations", count(number))
}

/// The number of operations, where all rows of the run are of as many in place of the document's number.
fn operations(table: &PublishedRows) -> Option<u64> {
    let mut all = table.rows.iter().filter(|row| row.value.is_some()).map(|row| row.operations);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// `is_told`: the header has the number of operations.
fn of_run(row: &PublishedRow, is_told: bool) -> Option<String> {
    let value = row.value?;
    let own = row.unit.own(value).map(|(value, unit)| format!(" = {} {unit}", plain(value)));
    let fewer = row.operations.filter(|_| !is_told).map(for_operations);
    let (value, unit) = (Digits::OF_VALUES.text(value, ends(row)), row.unit.name());
    Some(format!("{value} {unit}{}{}", fewer.unwrap_or_default(), own.unwrap_or_default()))
}

/// The interval, or the range of a few trials whose median the value is.
fn ends(row: &PublishedRow) -> Ends {
    let trials = row.alone.filter(|alone| row.value == Some(alone.value));
    let range = trials.and_then(|alone| Some(Ends::RangeOf(alone.n, alone.range?)));
    range.filter(|_| row.ci95.is_none()).unwrap_or(row.ci95.into())
}

/// `client 5.2, server 6.1 µs/op`
fn cpu(cell: &CellReport) -> String {
    let unit = if cell.cpu.values().any(|cost| cost.us_per_mb.is_some()) { "µs/MB" } else { "µs/op" };
    let roles = cell.cpu.iter().filter(|(consumer, _)| **consumer != Consumer::Machine);
    let cost = |(role, cost): (&Consumer, &CpuCost)| {
        Some(format!("{role} {}", plain(cost.us_per_op.or(cost.us_per_mb)?)))
    };
    let costs: Vec<String> = roles.filter_map(cost).collect();
    if costs.is_empty() { String::new() } else { format!("{} {unit}", costs.join(", ")) }
}

/// Values of single rounds, a line for each row that has several: `lwip reader: 0.531, 0.540`.
pub(crate) fn rounds(published: &PublishedReport) -> Vec<String> {
    let rows = published.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let line = |(table, row): (&PublishedRows, &PublishedRow)| {
        let values: Vec<String> = row.values.iter().map(|value| plain(*value)).collect();
        format!("{}, {}, {}: {}", table.title, row.row, row.unit.name(), values.join(", "))
    };
    rows.filter(|(_, row)| row.values.len() > 1).map(line).collect()
}

fn derived(table: &DerivedRows) -> TextTable {
    let of = |row: &RatioOfTwo, ratio: f64, ends: Ends| match (table.form, ends) {
        (DerivedForm::Difference, ends) => change(ratio, ends, row.is_inverse),
        (DerivedForm::Percent, Ends::Unknown) => brief_percent(ratio),
        (DerivedForm::Percent, ends) => percent(ratio, ends),
        (DerivedForm::Times, Ends::Unknown) => format!("{}x", plain(ratio)),
        (DerivedForm::Times, ends) => times(ratio, ends),
    };
    let row = |row: &RatioOfTwo| {
        let document = row.published.map(|ratio| of(row, ratio, Ends::Unknown));
        let run = row.ratio.zip(row.ci95).map(|(ratio, ci95)| of(row, ratio, Ends::from_units(row.n, ci95)));
        let is_difference = table.form == DerivedForm::Difference;
        let document_micros = row.published_difference.filter(|_| is_difference).map(longer_by);
        let run_micros = row.difference.as_ref().filter(|_| is_difference).map(difference);
        vec![row.row.clone(), joined([document, document_micros]), joined([run, run_micros, basis(row)])]
    };
    let shown = TextTable::new(&table.title, ["as published", "document", "this run (95 % interval)"]);
    TextTable { notes: leaders(table).into_iter().collect(), ..shown.with_rows(table.rows.iter().map(row)) }
}

fn joined<const N: usize>(facts: [Option<String>; N]) -> String {
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The basis of a ratio of the run, where that is no duet of the two: `each beside proxy/direct`.
fn basis(ratio: &RatioOfTwo) -> Option<String> {
    ratio.through.as_ref().filter(|_| ratio.ratio.is_some()).map(|third| format!("each beside {third}"))
}

/// The findings of the document, and whether they hold.
pub(crate) fn findings(published: &PublishedReport) -> TextTable {
    let row = |finding: &FindingReport| {
        let ratio = finding.readings.first().and_then(|reading| reading.published).map(brief_percent);
        let figures = finding.figures.join("\n");
        vec![
            finding.text.clone(),
            ratio.into_iter().chain([figures]).collect::<Vec<_>>().join("\n"),
            finding.readings.iter().map(reading).collect::<Vec<_>>().join("\n"),
            confirmation_name(finding.confirmation).to_owned(),
            decides(finding),
        ]
    };
    let headers = ["the document's finding", "document", "this run", "today", "what decides it"];
    TextTable::new("Findings", headers).with_rows(published.findings.iter().map(row))
}

/// `with a LAN's delay: 73 % (71 to 75): holds`; without a form the ratio alone.
fn reading(reading: &RatioOfTwo) -> String {
    let ratio = reading.ratio.zip(reading.ci95);
    let ratio = ratio.map(|(ratio, ci95)| percent(ratio, Ends::from_units(reading.n, ci95)));
    let facts = joined([ratio, reading.difference.as_ref().map(difference), basis(reading)]);
    if reading.row.is_empty() {
        return facts;
    }
    let facts = if facts.is_empty() { facts } else { format!("{facts}: ") };
    format!("{}: {facts}{}", reading.row, confirmation_name(reading.confirmation))
}

/// Two forms with opposite answers are shown first: these were measured.
fn decides(finding: &FindingReport) -> String {
    let form_of = |wanted: Confirmation| {
        let mut readings = finding.readings.iter();
        readings.find(|reading| reading.confirmation == wanted).map(|reading| &reading.row)
    };
    let forms = form_of(Confirmation::Holds).zip(form_of(Confirmation::DoesNotHold));
    let forms = forms.map(|(holds, not)| format!("form: it holds with {holds} and not with {not}."));
    let stated = finding.decides.as_ref().map(|decides| {
        let by = match decides.by {
            Decider::Form => "form",
            Decider::Version => "version",
            Decider::Machine => "machine",
        };
        format!("{by}: {}", decides.why)
    });
    forms.into_iter().chain(stated).collect::<Vec<_>>().join(" ")
}
