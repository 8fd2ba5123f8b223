//! In Markdown: ratios and disagreements; values, hosts and versions are folded.

use super::model::MergedReport;
use super::view;
use crate::Style;
use crate::layout::TextTable;
use crate::markdown::{escape, fold, text_table};
use std::fmt::Write;

pub(super) fn render(report: &MergedReport, _: Style) -> String {
    let mut text = String::new();
    for table in report.shown() {
        if table.is_first() {
            let _ = writeln!(text, "# {}: {}\n", escape(table.suite), escape(table.question));
        }
        let (title, caption) = (&table.table().title, view::caption(&table).join("; "));
        let _ = writeln!(text, "## {}\n\n{}\n", escape(title), escape(&caption));
        write(&mut text, &view::ratios(&table));
        for line in view::sentences(&table) {
            let _ = writeln!(text, "{}\n", escape(&line));
        }
        if let Some(disagreements) = view::disagreements(&table) {
            let _ = writeln!(text, "### Hosts that disagree\n");
            write(&mut text, &disagreements);
        }
        fold(&mut text, "Values of each host", |text| write(text, &view::values(&table)));
    }
    let _ = writeln!(text, "## The hosts\n");
    write(&mut text, &view::hosts(report));
    for flag in &report.flags {
        let _ = writeln!(text, "- {}", escape(flag));
    }
    let _ = writeln!(text);
    fold(&mut text, "Versions", |text| write(text, &view::versions(&report.hosts)));
    fold(&mut text, "How to read it", |text| {
        for line in view::HOW_TO_READ {
            let _ = writeln!(text, "- {line}");
        }
    });
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn write(text: &mut String, view: &TextTable) {
    text_table(text, view);
    text.push('\n');
}
