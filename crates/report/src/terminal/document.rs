//! A document beside the run that repeats it.

use super::{LINE_UNDER_HEADERS, bold, empty, header, width, wrapped};
use crate::Style;
use crate::layout;
use crate::model::{FindingReport, PublishedReport};
use crate::numbers::{Ends, brief_percent, percent};
use crate::words::confirmation_name;
use std::fmt::Write;

/// A document beside the run.
pub(super) fn text(text: &mut String, published: &PublishedReport, style: Style) {
    let _ = writeln!(text, "{}", bold("as published", style));
    for line in layout::published::about(published) {
        text.push_str(&wrapped(&line, width(style)));
    }
    if !published.findings.is_empty() {
        let _ = writeln!(text, "\n{}", bold("findings of the document", style));
        text.push_str(&finding_lines(published, width(style)));
    }
    for shown in layout::published::tables(published, &[]) {
        let mut table = empty(style, LINE_UNDER_HEADERS);
        table.set_header(shown.headers.iter().map(|name| header(name, style)));
        table.add_rows(shown.rows);
        let _ = writeln!(text, "\n{}\n{}", bold(&shown.title, style), table.trim_fmt());
        shown.notes.iter().for_each(|note| text.push_str(&wrapped(note, width(style))));
    }
    let rounds = if style.long { layout::published::rounds(published) } else { Vec::new() };
    rounds.iter().for_each(|line| text.push_str(&wrapped(line, width(style))));
    text.push('\n');
}

/// The findings in lines of this width: whether one holds today, the sentence, the document's ratio and that
/// of this run.
fn finding_lines(published: &PublishedReport, width: usize) -> String {
    let row = |finding: &FindingReport| {
        let first = finding.readings.first();
        let document = first.and_then(|reading| reading.published).map(brief_percent).unwrap_or_default();
        let run = first.and_then(|reading| Some((reading, reading.ratio?, reading.ci95?)));
        let run = run.map(|(reading, ratio, ci95)| percent(ratio, Ends::from_units(reading.n, ci95)));
        [
            confirmation_name(finding.confirmation).to_owned(),
            finding.text.clone(),
            document,
            run.unwrap_or_default(),
        ]
    };
    let head = ["today", "the document's finding", "document", "this run"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(published.findings.iter().map(row)).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [today, document, run] = [0, 2, 3].map(widest);
    let room = width.saturating_sub(today + document + run + 6).max(20).min(widest(1));
    let lines = |[holds, finding, published, here]: &[String; 4]| {
        let words = wrapped(finding, room);
        let mut lines = String::new();
        for (at, words) in words.lines().enumerate() {
            let [holds, published, here] =
                [holds, published, here].map(|text| if at == 0 { text } else { "" });
            let line = format!("{holds:today$}  {words:room$}  {published:>document$}  {here}");
            lines.push_str(line.trim_end());
            lines.push('\n');
        }
        lines
    };
    rows.iter().map(lines).collect()
}
