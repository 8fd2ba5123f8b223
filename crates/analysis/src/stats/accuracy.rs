//! The accuracy of reported values where the truth is known.

use super::ByRound;
use super::ratio::RatioEstimate;
use serde::{Deserialize, Serialize};

/// Whether reported values are those of the ground truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Accuracy {
    /// The 95 % interval of the error is inside the tolerance.
    #[serde(rename = "right")]
    Right,
    /// The value is outside, above or below.
    #[serde(rename = "wrong")]
    Wrong,
    #[serde(rename = "cannot tell")]
    CannotTell,
}

/// Reported over true, from the value of each round; `None` without a value.
pub fn over_truth(reported: &ByRound, truth: f64) -> Option<RatioEstimate> {
    RatioEstimate::from_logs(reported.values().map(|value| (value / truth).ln()))
}

/// The accuracy of values that are `ratio` of the truth; `tolerance` is relative, such as 0.1.
pub fn accuracy(ratio: &RatioEstimate, tolerance: f64) -> Accuracy {
    let (least, most) = (1.0 - tolerance, 1.0 + tolerance);
    match ratio.ci95 {
        Some([low, high]) if low >= least && high <= most => Accuracy::Right,
        Some([low, high]) if low > most || high < least => Accuracy::Wrong,
        _ => Accuracy::CannotTell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(values: &[f64]) -> Accuracy {
        let reported = (1..).zip(values.iter().copied()).collect();
        accuracy(&over_truth(&reported, 90.0).expect("there are values"), 0.1)
    }

    #[test]
    fn values_near_the_truth_are_right_and_far_ones_are_wrong_on_either_side() {
        assert_eq!(judged(&[88.0, 89.0, 90.0, 91.0, 92.0, 90.5]), Accuracy::Right);
        assert_eq!(judged(&[4.0, 4.1, 4.2, 3.9, 4.0, 4.3]), Accuracy::Wrong);
        assert_eq!(judged(&[900.0, 910.0, 905.0, 890.0, 901.0, 903.0]), Accuracy::Wrong);
    }

    #[test]
    fn an_interval_across_the_tolerance_or_of_five_values_cannot_tell() {
        assert_eq!(judged(&[70.0, 89.0, 90.0, 91.0, 92.0, 110.0]), Accuracy::CannotTell);
        assert_eq!(judged(&[4.0; 5]), Accuracy::CannotTell);
    }
}
