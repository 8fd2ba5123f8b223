//! The documents that suites repeat, as a page and as Markdown: their tables beside those of the newest run
//! of each with `--published`, and which of their findings hold.

use super::SiteRun;
use crate::html::{published_table, published_tables};
use crate::layout::{self, TextTable};
use crate::markdown;
use crate::model::{PublishedReport, SuiteReport};
use crate::terminal::wrapped;
use crate::words::confirmation_name;
use linerate_analysis::judge::Confirmation;
use maud::{Markup, html};
use std::fmt::Write;

pub(super) const TITLE: &str = "Five published benchmarks, measured again";

/// The width of a line of Markdown.
const WIDTH: usize = 118;

const ABOUT: [&str; 3] = [
    "The suites of linerate repeat five documents that have benchmarks of network stacks. Their tables \
     are measured again here, with their own parameters where a machine with Linux can have them. Each \
     figure of a document is printed as the document has it, in its unit, beside the median of this run. \
     A row that cannot be repeated here has the reason.",
    "A figure belongs to the versions and the machine of its time: another one today does not make it \
     wrong. What is compared are the findings: which of two figures is ahead, or by how much. Whether one \
     holds is computed from the 95 % interval of the ratio of the two cells that repeat its figures. It \
     holds, it does not hold, the run does not decide it, or nothing here measures it.",
    "The run adds to each row its interval, the CPU time of each role for an operation or a megabyte, and \
     what bound the cell: a role's CPU, the path, or waiting. Percentages are of performance: above 100 % \
     is better, whether the unit is seconds or bytes per second.",
];

/// A document and the run that repeats it.
pub(super) struct Again<'a> {
    run: &'a SiteRun,
    suite: &'a SuiteReport,
    published: &'a PublishedReport,
}

/// The newest run of each document that measured a cell of it, in full before in the quick form: an
/// interrupted run has none of its last suites. `runs`: the oldest first.
pub(super) fn documents(runs: &[SiteRun]) -> Vec<Again<'_>> {
    let mut found: Vec<Again<'_>> = Vec::new();
    let of_form = |quick: bool| {
        let is_it = move |run: &&SiteRun| run.report.run.published && run.report.run.quick == quick;
        runs.iter().rev().filter(is_it)
    };
    for run in of_form(false).chain(of_form(true)) {
        for suite in &run.report.suites {
            let is_known = found.iter().any(|other| other.suite.name == suite.name);
            let is_measured = suite.cells.iter().any(|cell| cell.n > 0);
            let published = suite.published.as_ref().filter(|_| !is_known && is_measured);
            found.extend(published.map(|published| Again { run, suite, published }));
        }
    }
    found
}

impl Again<'_> {
    /// Short enough for a heading: the whole is below it.
    fn title(&self) -> String {
        let document = self.published.document.split(':').next().unwrap_or_default();
        format!("{}: {document}", self.suite.name)
    }

    /// When, where and how it was measured.
    fn made(&self) -> Vec<String> {
        let run = &self.run.report.run;
        let quick = if run.quick { " in the quick form" } else { "" };
        let names = layout::versions(std::slice::from_ref(self.suite));
        let versions: Vec<String> = names.iter().map(|(name, version)| format!("{name} {version}")).collect();
        vec![
            format!(
                "Measured again: {}{quick}, on {}, {}, with linerate {}.",
                self.run.day(),
                self.run.host(),
                self.run.report.host.kernel,
                run.linerate
            ),
            format!("To repeat it: {}", run.command),
            format!("Versions: {}.", versions.join("; ")),
        ]
    }

    fn rows(&self) -> (usize, usize) {
        let rows = || self.published.tables.iter().flat_map(|table| &table.rows);
        (rows().filter(|row| row.value.is_some()).count(), rows().count())
    }

    fn findings(&self, wanted: Confirmation) -> usize {
        self.published.findings.iter().filter(|finding| finding.confirmation == wanted).count()
    }
}

const ANSWERS: [Confirmation; 4] =
    [Confirmation::Holds, Confirmation::DoesNotHold, Confirmation::NotDecided, Confirmation::NotMeasured];

fn summary(documents: &[Again<'_>]) -> TextTable {
    let row = |again: &Again<'_>| {
        let (measured, all) = again.rows();
        let answers = ANSWERS.iter().map(|answer| again.findings(*answer).to_string());
        [again.title(), format!("{measured} of {all}")].into_iter().chain(answers).collect()
    };
    let headers = ["document", "rows measured"].into_iter().chain(ANSWERS.map(confirmation_name));
    TextTable::new("Rows and findings", headers).with_rows(documents.iter().map(row))
}

pub(super) fn body(documents: &[Again<'_>]) -> Markup {
    html! {
        h1 { (TITLE) }
        @for text in ABOUT { p { (text) } }
        (published_table(&summary(documents)))
        @for again in documents {
            section.suite id=(again.suite.name) {
                h2 { a.anchor href={ "#" (again.suite.name) } { (again.title()) } }
                ul { @for line in again.made() { li { (line) } } }
                p { a href={ (again.run.file()) "#" (again.suite.name) } { "All numbers of this run" } }
                (published_tables(again.published, &again.suite.cells))
            }
        }
    }
}

/// The page as a file for `docs/`.
pub(super) fn text(documents: &[Again<'_>]) -> String {
    let mut text = format!("# {TITLE}\n\n");
    for about in ABOUT {
        let _ = writeln!(text, "{about}\n");
    }
    markdown::text_table(&mut text, &summary(documents));
    for again in documents {
        let _ = writeln!(text, "\n## {}\n", markdown::escape(&again.title()));
        markdown::lines(&mut text, &again.made());
        markdown::published_text(&mut text, again.published, &again.suite.cells);
    }
    let line = |line: &str| match line.as_bytes().first() {
        Some(b'-') => wrapped(line, WIDTH).trim_end().replace('\n', "\n  "),
        Some(b'|' | b'<' | b'#') | None => line.to_owned(),
        Some(_) => wrapped(line, WIDTH).trim_end().to_owned(),
    };
    let text = text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n");
    text + "\n"
}
