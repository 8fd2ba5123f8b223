//! The merged report in a terminal: a table of ratios, the hosts that disagree, and the hosts.

use super::model::MergedReport;
use super::view;
use crate::Style;
use crate::terminal::text_table;
use std::fmt::Write;

pub(super) fn render(report: &MergedReport, style: Style) -> String {
    let mut text = String::new();
    for table in report.shown() {
        if table.is_first() {
            let _ = writeln!(text, "{}: {}\n", table.suite, table.question);
        }
        let _ = writeln!(text, "{}\n{}\n", table.table().title, view::caption(&table).join("\n"));
        text.push_str(&text_table(&view::ratios(&table), style));
        for line in view::sentences(&table) {
            let _ = writeln!(text, "{line}\n");
        }
        if let Some(disagreements) = view::disagreements(&table) {
            let _ = writeln!(text, "Hosts that disagree\n");
            text.push_str(&text_table(&disagreements, style));
        }
        if style.long {
            text.push_str(&text_table(&view::values(&table), style));
        }
    }
    text.push_str(&text_table(&view::hosts(report), style));
    for flag in &report.flags {
        let _ = writeln!(text, "{flag}");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}
