//! `report.json`: the model, serialised.

use super::Style;
use super::model::Report;

/// Pretty-printed, so that reports can be compared line by line.
pub(super) fn render(report: &Report, _: Style) -> String {
    let json =
        serde_json::to_string_pretty(report).expect("a report has string keys only, so it always serialises");
    json + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::fixture::{journal, run, trials};
    use serde_json::Value;

    #[test]
    fn units_bottlenecks_and_flags_are_words_in_json() {
        let report = build(&run(), &journal(&run(), &trials()));
        let json: Value = serde_json::from_str(&render(&report, Style::default())).unwrap();
        for (suite, id, words) in [
            (0, "nginx/limit", r#""operations/s" "client" ["bound-by-generator"]"#),
            (1, "yasio/client-writes/64", r#""Gbit/s" "waiting" ["few-rounds (3)","cpu-shared"]"#),
        ] {
            let cells = json["suites"][suite]["cells"].as_array().unwrap();
            let cell = cells.iter().find(|cell| cell["id"] == id).unwrap();
            assert_eq!(["unit", "bound_by", "flags"].map(|field| cell[field].to_string()).join(" "), words);
        }
    }
}
