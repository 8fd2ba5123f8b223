//! Numbers of a text, with the precision in which they are written.

use crate::page::{interval, number};
use serde_json::Value;

/// A number, and half a unit of its last digit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) value: f64,
    half_unit: f64,
}

impl Shown {
    pub(crate) fn is(&self, exact: f64) -> bool {
        (self.value - exact).abs() <= self.half_unit * 1.001 + exact.abs() * 1e-12
    }
}

/// `12,345.6 (12,000 to 1.00e300)` has three. A whole number that ends in zeros may be rounded to three
/// digits.
pub(crate) fn numbers(text: &str) -> Vec<Shown> {
    let pattern = regex::Regex::new(r"-?\d[\d,]*(\.\d+)?(e-?\d+)?").unwrap();
    let shown = |text: &str| {
        let text = text.replace(',', "");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        let exponent: i32 = exponent.parse().ok()?;
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let rounded = if decimals == 0 { zeros.min(digits.len().saturating_sub(3)) as i32 } else { 0 };
        Some(Shown { value: text.parse().ok()?, half_unit: 0.5 * 10_f64.powi(exponent - decimals + rounded) })
    };
    pattern.find_iter(text).filter_map(|found| shown(found.as_str().trim_end_matches(','))).collect()
}

/// True if a text begins with these numbers.
pub(crate) fn begins_with(text: &str, exact: &[f64]) -> bool {
    let shown = numbers(text);
    shown.len() >= exact.len() && shown.iter().zip(exact).all(|(shown, exact)| shown.is(*exact))
}

/// True if a text is this estimate with its interval; an interval of width 0 is left out. Small rates of
/// bits, which are in Gbit/s, have a unit of their own.
pub(crate) fn is_estimate(text: &str, value: f64, ends: [f64; 2]) -> bool {
    let factor = if text.contains(" Mbit/s") { 1e3 } else { 1.0 };
    let (value, [low, high]) = (value * factor, ends.map(|end| end * factor));
    // Ends have the last digit of the value, and a range of a few says of how many.
    let shown = numbers(&regex::Regex::new("n=\\d+(, )?").unwrap().replace(text, ""));
    let wanted = if low == high { vec![value] } else { vec![value, low, high] };
    let unit = shown.first().map_or(0.0, |first| first.half_unit);
    let is_it =
        |(shown, exact): (&Shown, &f64)| Shown { half_unit: shown.half_unit.max(unit), ..*shown }.is(*exact);
    shown.len() >= wanted.len() && shown.iter().zip(&wanted).all(is_it)
}

/// True if a text is the value of a row, with its interval; a row without one may have the range of its
/// trials. `factor`: that of its unit.
pub(crate) fn is_value(text: &str, entry: &Value, factor: f64) -> bool {
    let value = number(&entry["value"]) * factor;
    let interval = |ends: &Value| interval(ends).map(|end| end * factor);
    match (&entry["ci95"], &entry["alone"]["range"]) {
        (ends, _) if ends.is_array() => is_estimate(text, value, interval(ends)),
        (_, range) if text.contains("n=") => is_estimate(text, value, interval(range)),
        _ => !text.contains('(') && is_estimate(text, value, [value; 2]),
    }
}

/// True if the text is the ratio: in percent, or as a multiple from ten on; beside nothing in its place, as
/// the change of the performance.
pub(crate) fn is_ratio(text: &str, ratio: f64, ends: [f64; 2]) -> bool {
    if text.starts_with(['+', '-']) || text.starts_with("0.0 %") {
        return is_more(text, ratio, ends);
    }
    let factor = if text.contains('%') { 100.0 } else { 1.0 };
    text.contains(['%', 'x']) && is_estimate(text, ratio * factor, ends.map(|end| end * factor))
}

/// True if the text is the change of a latency: how much longer it is, in percent or as a factor. `ratio`:
/// that of performance.
pub(crate) fn is_longer(text: &str, ratio: f64, ends: [f64; 2]) -> bool {
    let [low, high] = ends;
    is_more(text, 1.0 / ratio, [1.0 / high, 1.0 / low])
}

/// True if the text is the change of a CPU time: how much more it is.
pub(crate) fn is_more(text: &str, ratio: f64, ends: [f64; 2]) -> bool {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    match text.contains('%') {
        true => is_estimate(text, percent(ratio), ends.map(percent)),
        false => text.contains('x') && is_estimate(text, ratio, ends),
    }
}

/// True if a text begins with a ratio as a factor: of a cost with how much more it is.
pub(crate) fn is_multiple(text: &str, ratio: f64, [low, high]: [f64; 2], is_cost: bool) -> bool {
    match is_cost {
        true => is_estimate(text, 1.0 / ratio, [1.0 / high, 1.0 / low]),
        false => is_estimate(text, ratio, [low, high]),
    }
}

/// The units of times on a page, and what microseconds are multiplied by in each.
pub(crate) const TIMES: [(&str, f64); 3] = [("µs", 1.0), ("ms", 1e-3), ("s", 1e-6)];

/// The factor of the unit at the end of a label such as `p99 latency, ms`; 1 of any other label.
pub(crate) fn of_label(label: &str) -> f64 {
    let unit = TIMES.iter().find(|(unit, _)| label.ends_with(&format!(" latency, {unit}")));
    unit.map_or(1.0, |(_, factor)| *factor)
}

/// A label without its unit of times.
pub(crate) fn without_time(label: &str) -> &str {
    let mut units = TIMES.iter().filter_map(|(unit, _)| label.strip_suffix(&format!(" latency, {unit}")));
    units.next().unwrap_or(label)
}

/// Whether less of a metric is better, and it is no performance.
pub(crate) fn is_cost(metric: &str) -> bool {
    ["latency", "microseconds", "CPU", "MiB of memory"].iter().any(|word| metric.contains(word))
}
