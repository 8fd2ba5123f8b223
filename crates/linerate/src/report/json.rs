//! `report.json`: the model as it is.

use super::model::Report;

/// Pretty, so that two reports can be compared line by line.
#[must_use]
pub fn render(report: &Report) -> String {
    let json =
        serde_json::to_string_pretty(report).expect("a report has string keys only, so it always serialises");
    json + "\n"
}
