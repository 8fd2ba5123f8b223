//! Numbers as text, with their units and intervals.

pub(crate) use super::digits::{Digits, Ends, count, value_and_range};
pub use super::digits::{counted, plain};
pub(crate) use super::times::{TimeUnit, tick, time, times_of};

use super::digits::{MULTIPLE, change_and_range, change_in_tenths, decimals, fixed, in_parentheses};
use super::model::AgainstTruth;
use super::words;
use linerate_analysis::judge::pairs::Finding;
use linerate_analysis::stats::accuracy::Accuracy;
use linerate_analysis::stats::difference::LatencyDifference;
use linerate_model::DocumentUnit;
use std::time::Duration;

/// `2.13 (2.10 to 2.19)`; with an interval of width 0, `2.130`.
pub(crate) fn with_interval(value: f64, ends: impl Into<Ends>) -> String {
    let (value, range) = value_and_range(value, ends.into());
    in_parentheses(value, range)
}

/// `73 % (71 to 75)`; from 200 % on `2.42x (2.37 to 2.45)`.
pub(crate) fn percent(ratio: f64, ends: impl Into<Ends>) -> String {
    if ratio >= MULTIPLE {
        return times(ratio, ends);
    }
    let (value, range) = value_and_range(ratio * 100.0, ends.into().map(|bound| bound * 100.0));
    in_parentheses(value + " %", range)
}

/// A round ratio on an axis: `50 %`, `20x`.
pub(crate) fn tick_percent(ratio: f64) -> String {
    let rounded = |value: f64| (value * 1e3).round() / 1e3;
    if ratio >= MULTIPLE { format!("{}x", rounded(ratio)) } else { format!("{} %", rounded(ratio * 100.0)) }
}

/// A round ratio on an axis of changes: `-50 %`, `20x`.
pub(crate) fn tick_change(ratio: f64) -> String {
    let percent = ((ratio - 1.0) * 1e5).round() / 1e3;
    match ratio {
        _ if ratio >= MULTIPLE => tick_percent(ratio),
        _ if percent > 0.0 => format!("+{percent} %"),
        // Without the sign of a zero.
        _ => format!("{} %", percent + 0.0),
    }
}

/// A round factor on an axis of costs: `10x`.
pub(crate) fn tick_times(ratio: f64) -> String {
    format!("{}x", (ratio * 1e2).round() / 1e2)
}

/// As `percent`, to three significant digits and without an interval.
pub(crate) fn brief_percent(ratio: f64) -> String {
    if ratio >= MULTIPLE { format!("{}x", plain(ratio)) } else { format!("{} %", plain(ratio * 100.0)) }
}

/// A share as a whole percentage; below 1 % with a digit more.
pub(crate) fn brief_percent_of(share: f64) -> String {
    let percent = share * 100.0;
    format!("{} %", fixed(percent, usize::from(percent.abs() < 1.0)))
}

/// `82 to 84 %`, and `82 %` where the two are equal at this precision; `0.82x to 12.3x` for multiples.
pub(crate) fn percent_range(low: f64, high: f64) -> String {
    if high >= MULTIPLE {
        let [low, high] = [low, high].map(plain);
        return if low == high { format!("{low}x") } else { format!("{low}x to {high}x") };
    }
    let digits = usize::from(low < 0.1);
    let [low, high] = [low, high].map(|ratio| fixed(ratio * 100.0, digits));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// `1.59x (1.57 to 1.61)`.
pub(crate) fn times(ratio: f64, ends: impl Into<Ends>) -> String {
    let ends = ends.into();
    if ends == Ends::Unknown {
        return plain(ratio) + "x";
    }
    let (value, range) = value_and_range(ratio, ends);
    in_parentheses(value + "x", range)
}

/// `+0.42 µs (0.36 to 0.48)`: how much longer an operation takes than with the baseline.
pub(crate) fn difference(found: &LatencyDifference) -> String {
    difference_in(found, TimeUnit::fitting([largest(found)]))
}

/// As [`difference`], in the unit of a column.
pub(crate) fn difference_in(found: &LatencyDifference, unit: TimeUnit) -> String {
    let [value, from, to] = [found.us, found.ci95[0], found.ci95[1]].map(|us| unit.of_micros(us));
    let digits = decimals(unit.of_micros(largest(found)), [from, to]);
    let sign = if value > 0.0 { "+" } else { "" };
    let range = (from < to).then(|| format!(" ({} to {})", fixed(from, digits), fixed(to, digits)));
    format!("{sign}{} {}{}", fixed(value, digits), unit.name(), range.unwrap_or_default())
}

/// The number that needs most room: a difference may be near 0 while its interval is not.
pub(crate) fn largest(found: &LatencyDifference) -> f64 {
    found.ci95.into_iter().chain([found.us]).map(f64::abs).fold(0.0, f64::max)
}

/// `+2.84 µs`, without an interval.
pub(crate) fn longer_by(us: f64) -> String {
    let sign = if us > 0.0 { "+" } else { "-" };
    format!("{sign}{}", time(us.abs()))
}

/// How much the value of a cell differs: `+29.6 %`, `-4.0 % (-4.5 to -3.5)`. `is_inverse`: lower values are
/// those of a higher performance.
pub(crate) fn change(ratio: f64, ends: impl Into<Ends>, is_inverse: bool) -> String {
    let of = |ratio: f64| (if is_inverse { 1.0 / ratio } else { ratio } - 1.0) * 100.0;
    let value = of(ratio);
    let sign = if value > 0.0 { "+" } else { "" };
    let ends = ends.into();
    if ends == Ends::Unknown {
        // Without an interval no digit after the first decimal is known to be right.
        let tenths = (value * 10.0).round() / 10.0;
        let sign = if tenths > 0.0 { "+" } else { "" };
        return format!("{sign}{} %", fixed(tenths + 0.0, 1));
    }
    let (text, range) = change_and_range(value, ends.map(of));
    in_parentheses(format!("{sign}{text} %"), range)
}

/// How much more a latency or another cost is than the baseline's: `+38 % (31 to 44)`, `2.2x (2.1 to 2.3)`.
/// `performance`: the baseline's by that of the row.
pub(crate) fn longer(performance: f64, ends: impl Into<Ends>) -> String {
    if performance <= 1.0 / MULTIPLE {
        return times(1.0 / performance, ends.into().map(|end| 1.0 / end));
    }
    change(performance, ends, true)
}

/// How much of the performance beside nothing is left, as a change with one decimal in all rows:
/// `-21.0 % (-22.7 to -19.6)`, `2.4x (2.3 to 2.5)`.
pub(crate) fn cost(ratio: f64, ends: impl Into<Ends>) -> String {
    if ratio >= MULTIPLE {
        return times(ratio, ends);
    }
    let of = |ratio: f64| (ratio - 1.0) * 100.0;
    let (text, range) = change_in_tenths(of(ratio), ends.into().map(of));
    in_parentheses(text + " %", range)
}

/// How much more CPU time: `+50 %`, `2.6x`. `ratio`: that of the row by the baseline's.
pub(crate) fn more(ratio: f64, ends: impl Into<Ends>) -> String {
    if ratio >= MULTIPLE { times(ratio, ends) } else { change(ratio, ends, false) }
}

/// A figure of a document, with all its digits: `0.531 Gbit/s (0.432 to 0.638)`.
pub(crate) fn figure(
    unit: DocumentUnit,
    value: Option<f64>,
    range: Option<[f64; 2]>,
    text: Option<&str>,
) -> String {
    let unit = unit.name();
    let range = range.map(|[low, high]| format!("{low} to {high}"));
    match (value, range) {
        (Some(value), Some(range)) => format!("{value} {unit} ({range})"),
        (Some(value), None) => format!("{value} {unit}"),
        (None, Some(range)) => format!("{range} {unit}"),
        (None, None) => text.unwrap_or_default().to_owned(),
    }
}

/// Half of the width of an interval: `±0.9 %`.
pub(crate) fn plus_minus(share: f64) -> String {
    format!("±{} %", fixed(share * 100.0, decimals(share * 100.0, [0.0, share * 100.0])))
}

/// `error -95.6 % (-96.1 to -95.0) of 90.0 ms: wrong, 22.5 times too low`. `truth`: the true value.
pub(crate) fn error(found: &AgainstTruth, truth: &str) -> String {
    let (error, range) = error_and_range(found);
    let factor = if found.ratio < 1.0 {
        format!(", {} times too low", plain(1.0 / found.ratio))
    } else {
        format!(", {} times the truth", plain(found.ratio))
    };
    let factor = Some(factor).filter(|_| found.accuracy == Accuracy::Wrong).unwrap_or_default();
    format!("error {error} %{range} of {truth}: {}{factor}", words::accuracy(found.accuracy))
}

/// In percent; the range in parentheses, with a space before it.
fn error_and_range(found: &AgainstTruth) -> (String, String) {
    let ends = Ends::from_units(found.n, found.ci95).map(|bound| (bound - 1.0) * 100.0);
    let (error, range) = change_and_range((found.ratio - 1.0) * 100.0, ends);
    (error, range.map_or_else(String::new, |range| format!(" ({range})")))
}

/// `-95.6 % (-96.1 to -95.0): wrong`.
pub(crate) fn brief_error(found: &AgainstTruth) -> String {
    let (error, range) = error_and_range(found);
    format!("{error} %{range}: {}", words::accuracy(found.accuracy))
}

/// `1.4 %`: a share with two significant digits, or fewer.
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 4.0) as i32 } else { 0 };
    let scale = 10_f64.powi(digits);
    // Without the sign of a zero.
    format!("{} %", (percent * scale).round() / scale + 0.0)
}

/// `1.1 %`: a bound with at most one decimal, rounded up, so that it holds.
pub(crate) fn bound(share: f64) -> String {
    let percent = share * 100.0;
    let scale = if percent < 10.0 { 10.0 } else { 1.0 };
    format!("{} %", (percent * scale).ceil() / scale)
}

/// `-4.1 % (-5.0 to -3.2)`: the change of a measure.
pub(crate) fn signed(found: &Finding) -> String {
    // A verdict without an interval is that of all windows.
    let few = if found.verdict.is_difference() { "each window" } else { TOO_FEW };
    with_end(found.percent(), found.percent_ci95(), few)
}

const TOO_FEW: &str = "too few pairs";

/// `+4.1 % (3.2 to 5.0)`, of numbers that are percentages.
pub(crate) fn signed_percent(percent: f64, ci95: Option<[f64; 2]>) -> String {
    with_end(percent, ci95, TOO_FEW)
}

/// The interval in parentheses; without one this text.
fn with_end(percent: f64, ci95: Option<[f64; 2]>, without: &str) -> String {
    let number = |value: f64| signed_number(value, ci95);
    let end = ci95.map_or_else(|| without.to_owned(), |ends| ends.map(number).join(" to "));
    format!("{} % ({end})", number(percent))
}

/// `+4.1`: a percentage with its sign; a rounded zero has none.
pub(crate) fn signed_number(value: f64, ci95: Option<[f64; 2]>) -> String {
    let text = percent_number(value, ci95);
    if value > 0.0 && text.parse() != Ok(0.0) { format!("+{text}") } else { text }
}

/// `4.1`: a percentage with the decimals that its interval justifies; `0.0` in `0.0 (-4.6 to 2.5)`.
pub(crate) fn percent_number(value: f64, ci95: Option<[f64; 2]>) -> String {
    let ends = ci95.unwrap_or([value; 2]);
    let of_size = |size: f64| fixed(value, decimals(size, ends));
    let text = of_size(value.abs().max((ends[1] - ends[0]) / 2.0));
    // An end on one side of zero stays there.
    if ends.contains(&value) && text.parse() == Ok(0.0) { of_size(value) } else { text }
}

/// `95 s`, `7.3 s`: seconds of wall time.
pub(crate) fn seconds(value: f64) -> String {
    // The sum of nothing is a negative zero.
    let value = value + 0.0;
    format!("{} s", if value < 10.0 { fixed(value, 1) } else { fixed(value, 0) })
}

/// A time as text, such as `1m 2s`; parts of a second count as one.
pub fn whole_seconds(seconds: f64) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(seconds.ceil() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_no_more_digits_than_its_interval_and_a_bound_is_rounded_up() {
        let of = |value: f64, ends: [f64; 2]| signed_percent(value, Some(ends));
        assert_eq!(of(0.0059, [-4.6, 2.5]), "0.0 % (-4.6 to +2.5)");
        assert_eq!(of(0.47, [-1.6, 4.5]), "+0.5 % (-1.6 to +4.5)");
        assert_eq!(of(2.9, [0.03, 12.0]), "+2.9 % (+0.030 to +12)");
        assert_eq!(of(-41.0, [-51.0, -28.0]), "-41 % (-51 to -28)");
        assert_eq!([0.00062, 0.0106, 0.122].map(bound), ["0.1 %", "1.1 %", "13 %"]);
    }

    #[test]
    fn a_range_of_percentages_has_the_digits_of_its_lower_end() {
        assert_eq!(percent_range(0.8192, 0.84), "82 to 84 %");
        assert_eq!(percent_range(0.0421, 0.31), "4.2 to 31.0 %");
        assert_eq!(percent_range(0.8192, 0.8199), "82 %");
        assert_eq!(percent_range(0.8192, 12.34), "0.819x to 12.3x");
    }

    #[test]
    fn a_ratio_of_two_hundred_percent_is_a_multiple() {
        assert_eq!(percent(1.96, [1.85, 2.04]), "196 % (185 to 204)");
        assert_eq!(percent(10.81, [10.4, 11.3]), "10.8x (10.4 to 11.3)");
        assert_eq!((brief_percent(0.1234), brief_percent(2.0)), ("12.3 %".into(), "2.00x".into()));
        assert_eq!([1.5, 2.5, 20.0].map(tick_percent), ["150 %", "2.5x", "20x"]);
        assert_eq!([0.5, 1.0, 1.2, 2.5].map(tick_change), ["-50 %", "0 %", "+20 %", "2.5x"]);
        assert_eq!([1.0, 1.0 / 0.3, 10.0].map(tick_times), ["1x", "3.33x", "10x"]);
    }

    #[test]
    fn digits_follow_the_width_of_the_interval() {
        assert_eq!(with_interval(2.1312, [2.1044, 2.1891]), "2.13 (2.10 to 2.19)");
        assert_eq!(with_interval(2.1312, [2.1301, 2.1316]), "2.1312 (2.1301 to 2.1316)");
        assert_eq!(with_interval(161.864, [150.2, 171.9]), "162 (150 to 172)");
        assert_eq!(with_interval(76_321.4, [74_001.0, 78_012.0]), "76,321 (74,001 to 78,012)");
        assert_eq!(with_interval(0.000_123_4, [0.000_12, 0.000_13]), "0.000123 (0.000120 to 0.000130)");
    }

    #[test]
    fn a_number_keeps_two_digits_however_wide_its_interval() {
        assert_eq!(with_interval(1.41, [0.2, 9.7]), "1.4 (0.2 to 9.7)");
    }

    #[test]
    fn an_interval_of_width_zero_is_omitted() {
        assert_eq!(
            (with_interval(2.5, [2.5, 2.5]), with_interval(0.0, [0.0, 0.0])),
            ("2.500".into(), "0".into())
        );
        assert_eq!(percent(0.5, [0.5, 0.5]), "50.00 %");
        assert_eq!(percent(0.7312, [0.71, 0.749]), "73 % (71 to 75)");
        assert_eq!(percent(0.0141, [0.0139, 0.0143]), "1.41 % (1.39 to 1.43)");
    }

    #[test]
    fn a_difference_near_zero_has_the_digits_of_its_interval_and_a_larger_one_its_sign() {
        let text = |us, ci95| difference(&LatencyDifference { us, ci95 });
        assert_eq!(text(0.0003, [-0.12, 0.14]), "+0.00 µs (-0.12 to 0.14)");
        assert_eq!(text(-1.23, [-1.5, -1.1]), "-1.2 µs (-1.5 to -1.1)");
        assert_eq!(text(1_016.0, [-1_093.0, 29_459.0]), "+1 ms (-1 to 29)");
    }

    #[test]
    fn a_figure_of_a_document_has_all_its_digits_and_a_change_its_sign() {
        let of = |value, range| figure(DocumentUnit::Seconds, value, range, Some("none"));
        assert_eq!(of(Some(161.864), None), "161.864 s");
        assert_eq!(of(Some(0.531), Some([0.432, 0.638])), "0.531 s (0.432 to 0.638)");
        assert_eq!((of(None, Some([2.3, 5.3])), of(None, None)), ("2.3 to 5.3 s".into(), "none".into()));
        assert_eq!(change(0.772, None, true), "+29.5 %");
        assert_eq!(change(0.96, Some([0.955, 0.965]), false), "-4.0 % (-4.5 to -3.5)");
        assert_eq!(cost(0.79014, [0.7729, 0.8044]), "-21.0 % (-22.7 to -19.6)");
        assert_eq!([1.216, 0.99999].map(|ratio| cost(ratio, None)), ["+21.6 %", "0.0 %"]);
        assert_eq!(change(0.9998, Some([0.92, 1.02]), false), "0.0 % (-8.0 to 2.0)");
        assert_eq!([2.84, -1_234.0].map(longer_by), ["+2.84 µs", "-1.23 ms"]);
    }

    #[test]
    fn a_change_with_a_verdict_is_not_said_to_be_of_too_few_units() {
        let found = |verdict: &str| {
            let json = serde_json::json!({ "measure": "rate", "ratio": 0.02, "verdict": verdict });
            signed(&serde_json::from_value(json).unwrap())
        };
        assert_eq!(found("slower"), "-98.00 % (each window)");
        assert_eq!(found("cannot tell"), "-98.00 % (too few pairs)");
    }

    #[test]
    fn damaged_numbers_do_not_widen_a_table() {
        assert_eq!(with_interval(1e300, [1e299, 1e301]), "1.00e300 (1.00e299 to 1.00e301)");
        assert_eq!(with_interval(1e-300, [0.0, 1e-299]), "0.000000000000 (0.000000000000 to 0.000000000000)");
    }
}
