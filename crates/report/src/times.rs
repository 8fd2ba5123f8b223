//! Times as text: the only place that chooses a unit, which a column has in common.

use super::axis::short;
use super::digits::{Digits, Ends, plain};

/// A unit of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimeUnit {
    Nanos,
    Micros,
    Millis,
    Seconds,
}

impl TimeUnit {
    /// A number of more digits than four is in a larger unit, whatever the others are.
    pub(crate) const MOST: f64 = 10_000.0;

    /// The largest unit in which the shortest of these times, in microseconds, is at least 1; a larger one if
    /// the longest would be a number of five digits. Microseconds without a time.
    pub(crate) fn fitting(times: impl IntoIterator<Item = f64>) -> Self {
        let sound = times.into_iter().map(f64::abs).filter(|us| us.is_finite() && *us > 0.0);
        let ends = |(low, high): (f64, f64), us: f64| (low.min(us), high.max(us));
        let (low, high) = sound.fold((f64::INFINITY, 0.0), ends);
        let units = [Self::Millis, Self::Seconds];
        let is_fit = |unit: &Self| unit.of_micros(low) >= 1.0 && high > 0.0;
        let smaller = |unit: &Self| if *unit == Self::Millis { Self::Micros } else { Self::Millis };
        let is_needed = |unit: &Self| smaller(unit).of_micros(high) >= Self::MOST;
        units.into_iter().rfind(|unit| is_fit(unit) || is_needed(unit)).unwrap_or(Self::Micros)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nanos => "ns",
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
        }
    }

    /// Microseconds in this unit.
    pub(crate) fn of_micros(self, us: f64) -> f64 {
        match self {
            Self::Nanos => us * 1e3,
            Self::Micros => us,
            Self::Millis => us / 1e3,
            Self::Seconds => us / 1e6,
        }
    }
}

/// `340 ns`, `26.0 µs`, `10.6 ms`, `5.30 s`.
pub(crate) fn time(us: f64) -> String {
    let unit = if us > 0.0 && us < 1.0 { TimeUnit::Nanos } else { TimeUnit::fitting([us]) };
    format!("{} {}", plain(unit.of_micros(us)), unit.name())
}

/// A round time on an axis: `500 µs`, `20 ms`.
pub(crate) fn tick(us: f64) -> String {
    let unit = TimeUnit::fitting([us]);
    if us == 0.0 { "0".to_owned() } else { format!("{} {}", short(unit.of_micros(us)), unit.name()) }
}

/// Two times in the same unit.
pub(crate) fn times_of(values: [f64; 2]) -> [String; 2] {
    let unit = TimeUnit::fitting(values);
    let text = |us: f64| Digits::OF_FACTORS.text(unit.of_micros(us), Ends::Unknown);
    values.map(|us| format!("{} {}", text(us), unit.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_unit_of_its_size() {
        let found = [0.34, 26.0, 999.0, 1_128.0, 10_600.0, 5_300_000.0, 0.0].map(time);
        assert_eq!(found, ["340 ns", "26.0 µs", "999 µs", "1.13 ms", "10.6 ms", "5.30 s", "0.00 µs"]);
        assert_eq!([0.0, 0.5, 500.0, 1_000.0, 2e7].map(tick), ["0", "0.5 µs", "500 µs", "1 ms", "20 s"]);
    }

    #[test]
    fn a_column_has_one_unit() {
        let of = |column: &[f64]| TimeUnit::fitting(column.iter().copied()).name();
        assert_eq!(of(&[236.7, 2_619.0]), "µs");
        assert_eq!(of(&[34_472.0, 3_044_556.0]), "ms");
        assert_eq!(of(&[2.1e6, 5.3e6]), "s");
        assert_eq!(of(&[236.7, 1_701_398.0]), "ms", "no number has five digits");
        assert_eq!(of(&[236.7, 17.0e6]), "s");
        assert_eq!((of(&[]), of(&[0.0, f64::NAN])), ("µs", "µs"));
        assert_eq!(times_of([18_600.0, 59_700.0]), ["18.6 ms", "59.7 ms"]);
        assert_eq!(times_of([148.0, 1_428.0]), ["148 µs", "1,430 µs"]);
    }
}
