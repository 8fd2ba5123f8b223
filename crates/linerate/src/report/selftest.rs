//! Output of `linerate selftest`: ground truth and measurement.

use super::load::time;
use super::numbers::{count, plain};
use super::style::Style;
use crate::selftest::{Bound, Row, Unit};
use std::fmt::Write;

/// The rows of one case.
#[derive(Debug, Clone)]
pub struct Section {
    name: String,
    about: String,
    rows: Vec<Row>,
}

impl Section {
    #[must_use]
    pub fn new(name: &str, about: &str, rows: Vec<Row>) -> Self {
        Self { name: name.into(), about: about.into(), rows }
    }

    #[must_use]
    pub fn is_within_bounds(&self) -> bool {
        self.rows.iter().all(Row::is_within_bound)
    }
}

/// The whole table.
#[must_use]
pub fn text(sections: &[Section], style: Style) -> String {
    let mut out = String::new();
    let head = format!("{:<34}{:>12}{:>12}{:>10}  {}", "", "truth", "measured", "off", "bound");
    let _ = writeln!(out, "{head}");
    for section in sections {
        let name = console::style(&section.name).bold().force_styling(style.colour);
        let _ = writeln!(out, "{name}: {}", section.about);
        for row in &section.rows {
            let _ = writeln!(out, "{}", line(row, style));
        }
    }
    let wrong = sections.iter().flat_map(|s| &s.rows).filter(|row| !row.is_within_bound()).count();
    let _ = match wrong {
        0 => writeln!(out, "\nAll values are within their bounds."),
        _ => writeln!(
            out,
            "\n{wrong} out of bounds. Repeat on an idle machine: if values are still out of bounds, \
             the measurement is wrong."
        ),
    };
    out
}

fn line(row: &Row, style: Style) -> String {
    let value = |value: f64| match row.unit {
        Unit::Nanos => time(value as u64),
        Unit::PerSecond => plain(value),
        Unit::Count => count(value as u64),
    };
    let off = row.measured - row.truth;
    let (truth, off) = match row.bound {
        _ if row.truth == 0.0 && (row.unit == Unit::Nanos || row.bound == Bound::None) => {
            (String::new(), String::new())
        }
        Bound::Exact if off == 0.0 => (value(row.truth), "0".into()),
        Bound::Exact => (value(row.truth), format!("{off:+}")),
        _ => (value(row.truth), format!("{:+.2} %", off / row.truth * 100.0)),
    };
    let bound = match row.bound {
        Bound::Exact => "exact".into(),
        Bound::Above(nanos) => time(nanos as u64),
        Bound::Share(share) => format!("{} %", plain(share * 100.0)),
        Bound::None => String::new(),
    };
    let verdict = if row.is_within_bound() { "" } else { "   OFF" };
    let line = format!("  {:<32}{truth:>12}{:>12}{off:>10}  {bound}{verdict}", row.what, value(row.measured));
    let line = line.trim_end().to_owned();
    console::style(line).red().force_styling(style.colour && !row.is_within_bound()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_truth_measurement_error_and_bound() {
        let row = |what: &str, truth, measured, unit, bound| Row {
            what: what.into(),
            truth,
            measured,
            unit,
            bound,
        };
        let sections = [Section::new(
            "fixed",
            "each answer after 5 ms",
            vec![
                row("answers", 20_000.0, 20_000.0, Unit::Count, Bound::Exact),
                row("p50", 5e6, 5.04e6, Unit::Nanos, Bound::Share(0.01)),
                row("p99", 5e6, 6e6, Unit::Nanos, Bound::Share(0.01)),
                Row::shown("stops", 326.0, Unit::Count),
            ],
        )];
        let text = text(&sections, Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "  answers                               20,000      20,000         0  exact");
        assert_eq!(lines[3], "  p50                                  5.00 ms     5.04 ms   +0.80 %  1.00 %");
        assert!(lines[4].ends_with("+20.00 %  1.00 %   OFF"), "{}", lines[4]);
        assert_eq!(lines[5], "  stops                                                326");
        assert!(text.contains("1 out of bounds"));
        assert!(!sections[0].is_within_bounds());
    }
}
