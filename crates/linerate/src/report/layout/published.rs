//! The figures of a document beside those of the run, as rows of text.

use crate::report::model::{PublishedReport, PublishedRow, PublishedRows};
use crate::report::numbers::{brief_percent, percent, plain, with_interval};

/// A table of the document.
#[derive(Debug)]
pub(crate) struct PublishedTable<'a> {
    pub(crate) title: &'a str,
    pub(crate) headers: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The document in a line, and what differs from it.
pub(crate) fn about(published: &PublishedReport) -> Vec<String> {
    let date = published.date.as_ref().map_or_else(String::new, |date| format!(", {date}"));
    let first = format!("{}{date}. Measured on: {}.", published.document, published.machine);
    std::iter::once(first).chain(published.differences.iter().cloned()).collect()
}

pub(crate) fn tables(published: &PublishedReport) -> impl Iterator<Item = PublishedTable<'_>> {
    published.tables.iter().map(table)
}

fn table(table: &PublishedRows) -> PublishedTable<'_> {
    let has_ratios = table.rows.iter().any(|row| row.published_ratio.is_some());
    let mut headers = vec!["as published", "document", "this run (95 % interval)"];
    if has_ratios {
        headers.extend(["document, of its baseline", "this run, of its baseline"]);
    }
    headers.push("");
    let rows = table.rows.iter().map(|row| {
        let mut texts = vec![row.row.clone(), of_document(row), of_run(row)];
        if has_ratios {
            texts.push(row.published_ratio.map(brief_percent).unwrap_or_default());
            let ratio = row.ratio.zip(row.ratio_ci95);
            texts.push(ratio.map(|(ratio, interval)| percent(ratio, interval)).unwrap_or_default());
        }
        texts.push(row.reason.clone().unwrap_or_default());
        texts
    });
    PublishedTable { title: &table.title, headers, rows: rows.collect() }
}

/// `0.531 Gbit/s (0.432 to 0.638)`
fn of_document(row: &PublishedRow) -> String {
    let unit = row.unit.name();
    let range = row.range.map(|[low, high]| format!("{} to {}", plain(low), plain(high)));
    match (row.published, range) {
        (Some(value), Some(range)) => format!("{} {unit} ({range})", plain(value)),
        (Some(value), None) => format!("{} {unit}", plain(value)),
        (None, Some(range)) => format!("{range} {unit}"),
        (None, None) => row.text.clone().unwrap_or_default(),
    }
}

fn of_run(row: &PublishedRow) -> String {
    let value = row.median.zip(row.ci95);
    value
        .map(|(median, interval)| {
            format!("{} {}, n={}", with_interval(median, interval), row.unit.name(), row.n)
        })
        .unwrap_or_default()
}
