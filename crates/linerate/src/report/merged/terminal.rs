//! The merged report in a terminal: a table of ratios, the hosts that disagree, and the hosts.

use super::model::MergedReport;
use super::view::{self, TextTable};
use crate::report::formats::Style;
use crate::report::terminal::plain_table;
use std::fmt::Write;

pub(super) fn render(report: &MergedReport, style: Style) -> String {
    let mut text = String::new();
    for suite in &report.suites {
        let _ = writeln!(text, "{}: {}\n", suite.name, suite.question);
        for table in &suite.tables {
            let _ = writeln!(text, "{}\n{}\n", table.title, view::caption(table).join("\n"));
            write_table(&mut text, &view::ratios(report, table), style);
            for line in view::sentences(table) {
                let _ = writeln!(text, "{line}\n");
            }
            if let Some(disagreements) = view::disagreements(table) {
                let _ = writeln!(text, "Hosts that disagree\n");
                write_table(&mut text, &disagreements, style);
            }
            if style.long {
                write_table(&mut text, &view::values(table), style);
            }
        }
    }
    write_table(&mut text, &view::hosts(report), style);
    for flag in &report.flags {
        let _ = writeln!(text, "{flag}");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn write_table(text: &mut String, view: &TextTable, style: Style) {
    let mut table = plain_table(style);
    table.set_header(&view.headers);
    table.add_rows(&view.rows);
    let _ = writeln!(text, "{}\n", table.trim_fmt());
}
