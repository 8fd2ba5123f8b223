//! In Markdown: ratios and disagreements; values, hosts and versions are folded.

use super::model::MergedReport;
use super::view;
use crate::formats::Style;
use crate::layout::TextTable;
use crate::markdown::{escape, fold, text_table};
use std::fmt::Write;

pub(super) fn render(report: &MergedReport, _: Style) -> String {
    let mut text = String::new();
    for suite in &report.suites {
        let _ = writeln!(text, "# {}: {}\n", escape(&suite.name), escape(&suite.question));
        for table in &suite.tables {
            let _ = writeln!(
                text,
                "## {}\n\n{}\n",
                escape(&table.title),
                escape(&view::caption(table).join("; "))
            );
            write(&mut text, &view::ratios(report, table));
            for line in view::sentences(table) {
                let _ = writeln!(text, "{}\n", escape(&line));
            }
            if let Some(disagreements) = view::disagreements(table) {
                let _ = writeln!(text, "### Hosts that disagree\n");
                write(&mut text, &disagreements);
            }
            fold(&mut text, "Values of each host", |text| write(text, &view::values(table)));
        }
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
