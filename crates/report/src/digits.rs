//! Digits of numbers: as many as an interval justifies, the same in a column, and commas between thousands.

use super::model::{Comparison, ShareOf};
use linerate_analysis::stats::estimate::FEWEST_ROUNDS;

/// The ends in parentheses behind a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    /// A 95 % interval.
    Interval([f64; 2]),
    /// The lowest and the highest of so few that they have no interval.
    RangeOf(u32, [f64; 2]),
    Unknown,
}

impl From<[f64; 2]> for Ends {
    fn from(interval: [f64; 2]) -> Self {
        Self::Interval(interval)
    }
}

impl From<Option<[f64; 2]>> for Ends {
    fn from(interval: Option<[f64; 2]>) -> Self {
        interval.map_or(Self::Unknown, Self::Interval)
    }
}

impl From<&Comparison> for Ends {
    fn from(found: &Comparison) -> Self {
        if found.ci95_is_range { Self::RangeOf(found.n, found.ci95) } else { Self::Interval(found.ci95) }
    }
}

impl From<&ShareOf> for Ends {
    fn from(share: &ShareOf) -> Self {
        Self::from_units(share.n, share.ci95)
    }
}

impl Ends {
    /// The interval of `n` units or rounds; their range where they are too few for an interval.
    pub(crate) fn from_units(n: u32, ends: [f64; 2]) -> Self {
        if n < FEWEST_ROUNDS { Self::RangeOf(n, ends) } else { Self::Interval(ends) }
    }

    /// In another unit, also one in which the lower end is the higher one.
    pub(crate) fn map(self, with: impl Fn(f64) -> f64) -> Self {
        let ordered = |[a, b]: [f64; 2]| [a.min(b), a.max(b)];
        match self {
            Self::Interval(ends) => Self::Interval(ordered(ends.map(with))),
            Self::RangeOf(n, ends) => Self::RangeOf(n, ordered(ends.map(with))),
            Self::Unknown => Self::Unknown,
        }
    }

    fn bounds(self) -> Option<[f64; 2]> {
        match self {
            Self::Interval(ends) | Self::RangeOf(_, ends) => Some(ends),
            Self::Unknown => None,
        }
    }

    /// `2.10 to 2.19`, or `n=3, 2.10 to 2.19`; `None` for an interval of width 0.
    fn text(self, number: impl Fn(f64) -> String) -> Option<String> {
        let ends = self.bounds().filter(|[from, to]| from < to);
        let ends = ends.map(|[from, to]| format!("{} to {}", number(from), number(to)));
        match self {
            Self::RangeOf(n, _) => {
                Some(format!("n={n}{}", ends.map_or_else(String::new, |e| format!(", {e}"))))
            }
            Self::Interval(_) | Self::Unknown => ends,
        }
    }
}

/// Significant digits that all numbers of a column have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits(i32);

impl Digits {
    /// Digits of values: whoever divides two of them gets the ratio to its three digits.
    pub(crate) const OF_VALUES: Self = Self(4);
    /// Digits of factors and of values without an interval: `3.14`.
    pub(crate) const OF_FACTORS: Self = Self(3);
    const FEWEST: i32 = 3;
    const MOST: i32 = 4;

    /// Digits of ratios: as many as the narrowest interval of the column justifies, within [`Self::FEWEST`]
    /// and [`Self::MOST`].
    pub(crate) fn of_ratios(numbers: impl Iterator<Item = (f64, Ends)>) -> Self {
        let justified = |(value, ends): (f64, Ends)| {
            let [from, to] = ends.bounds().filter(|[from, to]| from < to)?;
            Some(magnitude(value) + 1 + wanted(to - from))
        };
        let most = numbers.filter_map(justified).max();
        Self(most.map_or(Self::MOST, |most| most.clamp(Self::FEWEST, Self::MOST)))
    }

    /// `14,640 (14,200 to 15,010)`: all with the last digit of the value.
    pub(crate) fn text(self, value: f64, ends: impl Into<Ends>) -> String {
        let (value, range) = self.value_and_range(value, ends.into());
        in_parentheses(value, range)
    }

    /// `73.1 % (71.0 to 74.9)`; from 200 % on `2.42x (2.37 to 2.45)`.
    pub(crate) fn percent(self, ratio: f64, ends: impl Into<Ends>) -> String {
        let (factor, unit) = if ratio >= MULTIPLE { (1.0, "x") } else { (100.0, " %") };
        let (value, range) = self.value_and_range(ratio * factor, ends.into().map(|end| end * factor));
        in_parentheses(value + unit, range)
    }

    fn value_and_range(self, value: f64, ends: Ends) -> (String, Option<String>) {
        let last = magnitude(value) + 1 - self.0;
        let unit = 10_f64.powi(last.max(0));
        let number = |value: f64| decimal((value / unit).round_ties_even() * unit, -last);
        // Decimals are rounded once, by the format.
        let number = |value: f64| if last > 0 { number(value) } else { decimal(value, -last) };
        (number(value), ends.text(number))
    }
}

fn decimal(value: f64, digits: i32) -> String {
    fixed(value, digits.clamp(0, MOST_DECIMALS) as usize)
}

/// From here on a ratio is a multiple, and a change a factor: `2.4x` is read faster than `242 %`.
pub(crate) const MULTIPLE: f64 = 2.0;

/// The value and its interval as `2.10 to 2.19` with the same decimals; `None` for an interval of width 0.
pub(crate) fn value_and_range(value: f64, ends: Ends) -> (String, Option<String>) {
    let bounds = ends.bounds().unwrap_or([value; 2]);
    if value == 0.0 && bounds == [0.0; 2] {
        return ("0".to_owned(), None);
    }
    let digits = decimals(value, bounds);
    (fixed(value, digits), ends.text(|end| fixed(end, digits)))
}

/// As [`value_and_range`], of a change, which may be near 0 while its interval is not.
pub(crate) fn change_and_range(value: f64, ends: Ends) -> (String, Option<String>) {
    let bounds = ends.bounds().unwrap_or([value; 2]);
    if value == 0.0 && bounds == [0.0; 2] {
        return value_and_range(value, ends);
    }
    let digits = decimals(bounds.into_iter().map(f64::abs).fold(value.abs(), f64::max), bounds);
    (fixed(value, digits), ends.text(|end| fixed(end, digits)))
}

/// As [`change_and_range`], with one decimal and the sign of the change.
pub(crate) fn change_in_tenths(value: f64, ends: Ends) -> (String, Option<String>) {
    // Without the sign of a zero.
    let tenths = |value: f64| fixed((value * 10.0).round() / 10.0 + 0.0, 1);
    let text = tenths(value);
    let sign = if value > 0.0 && text.parse() != Ok(0.0) { "+" } else { "" };
    (format!("{sign}{text}"), ends.text(tenths))
}

pub(crate) fn in_parentheses(value: String, range: Option<String>) -> String {
    range.map_or_else(|| value.clone(), |range| format!("{value} ({range})"))
}

/// A number without an interval, to three significant digits: `0.0213`, `2.13`, `2,130`.
pub fn plain(value: f64) -> String {
    decimal(value, 2 - magnitude(value))
}

/// `10,000`.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A count with its noun: "1 flow", "1,024 flows".
pub fn counted(amount: impl Into<u64>, noun: &str) -> String {
    match amount.into() {
        1 => format!("1 {noun}"),
        amount => format!("{} {noun}s", count(amount)),
    }
}

/// Further digits are rounding errors of `f64`.
const MOST_DECIMALS: i32 = 12;

/// Decimals that show the interval's width to one digit, or to two where its first digit is 1 or 2; at least
/// two significant digits of the value, and at most six.
pub(crate) fn decimals(value: f64, [from, to]: [f64; 2]) -> usize {
    let width = to - from;
    let wanted = if width > 0.0 { wanted(width) } else { 3 - magnitude(value) };
    let (fewest, most) = (1 - magnitude(value), 5 - magnitude(value));
    wanted.clamp(fewest, most).clamp(0, MOST_DECIMALS) as usize
}

/// Decimals that show a width to one digit, or to two where its first digit is 1 or 2.
fn wanted(width: f64) -> i32 {
    let first = magnitude(width);
    let is_small = width / 10_f64.powi(first) < 3.0;
    i32::from(is_small) - first
}

/// The power of ten of the first significant digit.
fn magnitude(value: f64) -> i32 {
    let magnitude = value.abs().log10().floor();
    if magnitude.is_finite() { magnitude as i32 } else { 0 }
}

pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    /// Larger numbers are damaged or in the wrong unit; in full they would widen the table.
    const WIDEST: f64 = 1e15;
    if value.abs() >= WIDEST {
        return format!("{value:.2e}");
    }
    let text = grouped(&format!("{value:.decimals$}"));
    // A rounded zero has no sign.
    let is_zero = text.trim_start_matches(['-', '0', '.']).is_empty();
    if is_zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// Commas between thousands: one column has numbers of four digits and of five.
/// A text such as a title, in which whole numbers of five digits and more have commas as all other numbers.
pub(crate) fn with_commas(text: &str) -> String {
    let (mut shown, mut digits) = (String::new(), String::new());
    for letter in text.chars().map(Some).chain([None]) {
        if let Some(digit) = letter.filter(char::is_ascii_digit) {
            digits.push(digit);
            continue;
        }
        let number = std::mem::take(&mut digits);
        shown += &if number.len() > 4 { grouped(&number) } else { number };
        shown.extend(letter);
    }
    shown
}

fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut text = sign.to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_of_a_column_have_the_same_significant_digits_and_commas() {
        let text = |value: f64, ends: Option<[f64; 2]>| Digits::OF_VALUES.text(value, ends);
        assert_eq!(text(14_641.0, None), "14,640");
        assert_eq!(text(8_799.3, Some([8_500.0, 9_100.0])), "8,799 (8,500 to 9,100)");
        assert_eq!(text(0.219, None), "0.2190");
        assert_eq!(text(0.5312, Some([0.5101, 0.54663])), "0.5312 (0.5101 to 0.5466)");
        let (wide, narrow) = (Ends::Interval([0.639, 0.721]), Ends::Interval([1.3312, 1.333]));
        let percent = |column: &[(f64, Ends)]| {
            let digits = Digits::of_ratios(column.iter().copied());
            column.iter().map(|(ratio, ends)| digits.percent(*ratio, *ends)).collect::<Vec<_>>()
        };
        assert_eq!(percent(&[(0.6878, wide)]), ["68.8 % (63.9 to 72.1)"]);
        let both = ["68.78 % (63.90 to 72.10)", "133.2 % (133.1 to 133.3)"];
        assert_eq!(percent(&[(0.6878, wide), (1.332, narrow)]), both);
    }

    #[test]
    fn the_range_of_a_few_says_how_many_they_are() {
        let few = Ends::from_units(3, [376.2, 464.0]);
        assert_eq!(Digits(3).text(400.0, few), "400 (n=3, 376 to 464)");
        assert_eq!(Digits(3).percent(0.69, few.map(|end| end / 600.0)), "69.0 % (n=3, 62.7 to 77.3)");
        assert_eq!(Digits(3).percent(10.81, Ends::from_units(6, [10.4, 11.3])), "10.8x (10.4 to 11.3)");
        assert_eq!(Digits(3).text(400.0, Ends::from_units(1, [400.0; 2])), "400 (n=1)");
    }

    #[test]
    fn numbers_without_interval_have_three_significant_digits() {
        assert_eq!([12.345, 1_234.5, 0.001_234].map(plain), ["12.3", "1,234", "0.00123"]);
        assert_eq!([999, 1_000, 1_234_567].map(count), ["999", "1,000", "1,234,567"]);
        assert_eq!([grouped("-12345.5"), grouped("-123")], ["-12,345.5", "-123"]);
        assert_eq!([fixed(-0.001, 2), fixed(-0.01, 2)], ["0.00", "-0.01"]);
        assert_eq!(
            with_commas("104857600 bytes, 4096-byte page, 10000"),
            "104,857,600 bytes, 4096-byte page, 10,000"
        );
    }
}
