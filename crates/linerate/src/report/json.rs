//! `report.json`: the model, serialised.

use super::model::Report;
use super::style::Style;

/// Pretty-printed, so that reports can be compared line by line.
#[must_use]
pub(super) fn render(report: &Report, _: Style) -> String {
    let json =
        serde_json::to_string_pretty(report).expect("a report has string keys only, so it always serialises");
    json + "\n"
}
