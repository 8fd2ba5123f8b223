//! Output of `linerate selftest`: ground truth and measurement.

use super::Style;
use super::load::time;
use super::numbers::{count, plain};
use linerate_analysis::selftest::{Bound, Row, RowState, TRIES, Unit};
use std::fmt::Write;

/// The rows of one case.
#[derive(Debug, Clone)]
pub struct Section {
    name: String,
    about: String,
    rows: Vec<Row>,
    /// The share of its time that the client lost.
    lost: f64,
}

impl Section {
    pub fn new(name: &str, about: &str, rows: Vec<Row>, lost: f64) -> Self {
        Self { name: name.into(), about: about.into(), rows, lost }
    }

    /// Rows with this judgement.
    pub fn count(&self, wanted: RowState) -> usize {
        self.rows.iter().filter(|row| row.state(self.lost) == wanted).count()
    }
}

/// The whole table.
pub fn text(sections: &[Section], style: Style) -> String {
    let mut out = String::new();
    let head = format!("{:<34}{:>12}{:>12}{:>10}  {}", "", "truth", "measured", "off", "bound");
    let _ = writeln!(out, "{head}");
    for section in sections {
        let name = console::style(&section.name).bold().force_styling(style.colour);
        let _ = writeln!(out, "{name}: {}", section.about);
        for row in &section.rows {
            let _ = writeln!(out, "{}", line(row, section.lost, style));
        }
    }
    let all = |wanted| sections.iter().map(|section| section.count(wanted)).sum::<usize>();
    let disturbed = all(RowState::Disturbed);
    if disturbed > 0 {
        let _ = writeln!(
            out,
            "\n{disturbed} not judged: in each of {TRIES} tries the client lost so much CPU time to other \
             work that these values show nothing about the instrument."
        );
    }
    let unknown = all(RowState::Unknown);
    if unknown > 0 {
        let _ = writeln!(
            out,
            "\n{unknown} not judged: the way through the loopback of this machine varies by more than their \
             bound (above, `loopback`)."
        );
    }
    let wrong = all(RowState::Off);
    let _ = match wrong {
        0 if disturbed + unknown > 0 => writeln!(out, "\nAll other values are within their bounds."),
        0 => writeln!(out, "\nAll values are within their bounds."),
        _ => writeln!(
            out,
            "\n{wrong} out of bounds. Repeat on an idle machine: if values are still out of bounds, \
             the measurement is wrong."
        ),
    };
    out
}

fn line(row: &Row, lost: f64, style: Style) -> String {
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
        Bound::Within(_) | Bound::Unknown(_) => {
            let sign = if off < 0.0 { '-' } else { '+' };
            (value(row.truth), format!("{sign}{}", value(off.abs())))
        }
        _ => (value(row.truth), format!("{:+.2} %", off / row.truth * 100.0)),
    };
    let bound = match row.bound {
        Bound::Exact => "exact".into(),
        Bound::Above(nanos) => time(nanos as u64),
        Bound::Within(distance) | Bound::Unknown(distance) => format!("+-{}", value(distance)),
        Bound::Share(share) => format!("{} %", plain(share * 100.0)),
        Bound::None => String::new(),
    };
    let state = row.state(lost);
    let verdict = match state {
        RowState::Within => "",
        RowState::Off => "   OFF",
        RowState::Disturbed | RowState::Unknown => "   not judged",
    };
    let line = format!("  {:<32}{truth:>12}{:>12}{off:>10}  {bound}{verdict}", row.what, value(row.measured));
    let line = line.trim_end().to_owned();
    console::style(line).red().force_styling(style.colour && state == RowState::Off).to_string()
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
            tolerates: 0.01,
        };
        let sections = [Section::new(
            "fixed",
            "each answer after 5 ms",
            vec![
                row("answers", 20_000.0, 20_000.0, Unit::Count, Bound::Exact),
                row("p50", 5e6, 5.04e6, Unit::Nanos, Bound::Share(0.01)),
                row("p99", 5e6, 6e6, Unit::Nanos, Bound::Share(0.01)),
                row("p50, short", 108_000.0, 104_900.0, Unit::Nanos, Bound::Within(5_000.0)),
                row("p99, short", 108_000.0, 128_000.0, Unit::Nanos, Bound::Unknown(10_000.0)),
                Row::shown("stops", 326.0, Unit::Count),
            ],
            0.001,
        )];
        let text = text(&sections, Style::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "  answers                               20,000      20,000         0  exact");
        assert_eq!(lines[3], "  p50                                  5.00 ms     5.04 ms   +0.80 %  1.00 %");
        assert!(lines[4].ends_with("+20.00 %  1.00 %   OFF"), "{}", lines[4]);
        assert_eq!(
            lines[5],
            "  p50, short                            108 µs      105 µs  -3.10 µs  +-5.00 µs"
        );
        assert!(lines[6].ends_with("128 µs  +20.0 µs  +-10.0 µs   not judged"), "{}", lines[6]);
        assert_eq!(lines[7], "  stops                                                326");
        assert!(text.contains("1 not judged: the way through the loopback"), "{text}");
        assert!(text.contains("1 out of bounds"));
        assert_eq!(sections[0].count(RowState::Off), 1);
        let disturbed = Section { lost: 0.02, ..sections[0].clone() };
        let text = super::text(&[disturbed], Style::default());
        assert!(text.contains("+20.00 %  1.00 %   not judged") && text.contains("4 not judged"), "{text}");
        assert!(!text.contains("OFF") && text.contains("All other values"), "{text}");
    }
}
