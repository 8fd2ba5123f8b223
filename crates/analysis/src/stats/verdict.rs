//! The verdict on a comparison.

use super::ratio::RatioEstimate;
use serde::{Deserialize, Serialize};

/// The relative difference that matters to users, unless a suite has another.
pub const MARGIN: f64 = 0.03;
/// A difference has a full mark up to this q value, a light one above it.
pub const FALSE_DISCOVERY: f64 = 0.05;

/// The outcome of a comparison, a reading of it, a cell that has two builds, or all these cells together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    #[serde(rename = "faster")]
    Faster,
    #[serde(rename = "slower")]
    Slower,
    /// The 95 % interval excludes 1 and is inside the margin: certain, and too small to matter.
    #[serde(rename = "differs by less than the margin")]
    SmallDifference,
    /// The 90 % interval is inside the margin (two one-sided tests, Schuirmann 1987).
    #[serde(rename = "within the margin")]
    WithinMargin,
    /// Any slowdown is below the margin: enough for a gate.
    #[serde(rename = "not slower")]
    NotSlower,
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// There is no ratio: a cell or more than a tenth of the units failed.
    #[serde(rename = "failed")]
    Failed,
    /// There is no ratio: a system is not here, or does not support the cell; of all cells: there is none.
    #[serde(rename = "missing")]
    Missing,
}

impl Verdict {
    /// The verdict on several cells together. One without a ratio is never a success.
    pub fn of_all(cells: impl Iterator<Item = Self>) -> Self {
        let open = |verdict: Self| match verdict {
            Self::Failed | Self::Missing => Self::CannotTell,
            found => found,
        };
        cells.map(open).reduce(Self::worse).unwrap_or(Self::Missing)
    }

    /// True where the two differ for certain.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Slower | Self::Faster)
    }

    /// The verdict on two readings of a cell that matters more to a user.
    pub fn worse(self, other: Self) -> Self {
        let rank = |verdict: Self| match verdict {
            Self::Faster => 0,
            Self::WithinMargin => 1,
            Self::SmallDifference => 2,
            Self::NotSlower => 3,
            Self::CannotTell => 4,
            Self::Slower => 5,
            Self::Failed | Self::Missing => 6,
        };
        // The first reading may gain while the other stays.
        let gains = self == Self::Faster && rank(other) <= rank(Self::NotSlower);
        if gains || rank(self) >= rank(other) { self } else { other }
    }
}

/// The verdict on a ratio of performance. `margin` is the relative difference that matters, such as 0.03.
pub fn verdict(estimate: &RatioEstimate, margin: f64) -> Verdict {
    let is_within = |[low, high]: [f64; 2]| low >= 1.0 - margin && high <= 1.0 + margin;
    // Of five units too: their 90 % interval is their range.
    let Some(interval) = estimate.ci95 else { return Verdict::CannotTell };
    match direction(interval) {
        Verdict::CannotTell if estimate.ci90.is_some_and(is_within) => Verdict::WithinMargin,
        Verdict::Faster | Verdict::Slower if is_within(interval) => Verdict::SmallDifference,
        found => found,
    }
}

/// Whether it says that no difference matters.
pub fn is_equal(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::SmallDifference | Verdict::WithinMargin | Verdict::NotSlower)
}

/// Faster, slower or cannot tell: where a ratio's interval lies, whatever the size of the difference.
pub fn direction([low, high]: [f64; 2]) -> Verdict {
    match (low > 1.0, high < 1.0) {
        (true, _) => Verdict::Faster,
        (_, true) => Verdict::Slower,
        _ => Verdict::CannotTell,
    }
}

/// Whether a ratio's whole interval is farther than `tolerance` from 1, on one side.
pub fn lies_beyond([low, high]: [f64; 2], tolerance: f64) -> bool {
    low > 1.0 + tolerance || high < 1.0 - tolerance
}

/// The part of the margin by which an A/A control may differ from itself: twice as much would decide most of
/// what the margin decides.
const CONTROL_SHARE: f64 = 1.0 / 3.0;
/// A control may always differ by this: the half-width of its own interval is 0.3 % after a minute.
const CONTROL_LEAST: f64 = 0.005;

/// Whether a control with this interval differs from itself, where differences of `margin` matter.
pub fn control_fails(interval: [f64; 2], margin: f64) -> bool {
    lies_beyond(interval, (CONTROL_SHARE * margin).max(CONTROL_LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(center: f64, spread: f64) -> RatioEstimate {
        RatioEstimate::from_logs((0..11).map(|i| center + spread * (f64::from(i) - 5.0) / 5.0))
            .expect("there are units")
    }

    #[test]
    fn each_of_the_five_words_has_its_case() {
        assert_eq!(verdict(&around(0.1, 0.05), 0.03), Verdict::Faster);
        assert_eq!(verdict(&around(-0.1, 0.05), 0.03), Verdict::Slower);
        assert_eq!(verdict(&around(0.01, 0.005), 0.03), Verdict::SmallDifference);
        assert_eq!(verdict(&around(0.0, 0.01), 0.03), Verdict::WithinMargin);
        assert_eq!(verdict(&around(0.0, 0.2), 0.03), Verdict::CannotTell);
    }

    #[test]
    fn a_cell_has_the_worse_of_two_verdicts_and_a_gain_in_rate_counts() {
        assert_eq!(Verdict::Faster.worse(Verdict::NotSlower), Verdict::Faster);
        assert_eq!(Verdict::WithinMargin.worse(Verdict::Faster), Verdict::WithinMargin);
        assert_eq!(Verdict::Faster.worse(Verdict::CannotTell), Verdict::CannotTell);
        assert_eq!(Verdict::CannotTell.worse(Verdict::Slower), Verdict::Slower);
    }

    #[test]
    fn cells_together_are_slower_if_one_is_and_open_if_one_has_no_ratio() {
        let all = |cells: &[Verdict]| Verdict::of_all(cells.iter().copied());
        assert_eq!(all(&[Verdict::Failed, Verdict::Slower, Verdict::Faster]), Verdict::Slower);
        assert_eq!(all(&[Verdict::Missing, Verdict::Faster]), Verdict::CannotTell);
        assert_eq!(all(&[Verdict::WithinMargin, Verdict::Faster, Verdict::NotSlower]), Verdict::NotSlower);
        assert_eq!(all(&[Verdict::WithinMargin, Verdict::SmallDifference]), Verdict::SmallDifference);
        assert_eq!(all(&[]), Verdict::Missing);
    }

    #[test]
    fn a_control_may_differ_by_a_third_of_the_margin_and_always_by_half_a_percent() {
        let fails = |low: f64, margin: f64| control_fails([low, 1.1], margin);
        assert!(fails(1.011, 0.03) && !fails(1.009, 0.03));
        assert!(fails(1.006, 0.01) && !fails(1.004, 0.01));
    }

    #[test]
    fn a_difference_that_is_certain_matters_where_it_may_be_as_large_as_the_margin() {
        assert_eq!(verdict(&around(0.01, 0.005), 0.01), Verdict::Faster);
        assert_eq!(verdict(&around(-0.03, 0.015), 0.03), Verdict::Slower);
        assert_eq!(verdict(&around(-0.01, 0.005), 0.03), Verdict::SmallDifference);
    }

    #[test]
    fn five_units_decide_nothing_however_clear() {
        let five =
            |center: f64| RatioEstimate::from_logs([0.0, 0.01, 0.02, 0.03, 0.04].map(|log| log + center));
        assert_eq!(verdict(&five(0.5).expect("there are units"), 0.03), Verdict::CannotTell);
        assert_eq!(verdict(&five(-0.02).expect("there are units"), 0.1), Verdict::CannotTell);
    }
}
