//! The comparison of two cells, as a report has it.

use super::alone::{Alone, SoloRatio};
use crate::stats::difference::LatencyDifference;
use crate::stats::verdict::{Verdict, control_fails};
use linerate_contract::Role;
use linerate_model::Better;
use linerate_model::Sharing;
use serde::{Deserialize, Serialize};

/// The ratio of two cells: Hodges-Lehmann estimate of the units' log ratios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Id of the cell compared with.
    pub with: String,
    /// The median of `with` in its trials alone, in the unit of the row; by the ratio it is the value of the
    /// row. Absent where `with` has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_value: Option<f64>,
    /// Performance of this cell over that of `with`: above 1 is better, whatever the unit's direction.
    pub ratio: f64,
    /// From the signed-rank distribution; with fewer units than that needs their range.
    pub ci95: [f64; 2],
    /// `ci95` is the range of too few units.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ci95_is_range: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci90: Option<[f64; 2]>,
    /// The difference of latencies in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<LatencyDifference>,
    /// The signed-rank test's, two-sided, that the ratio is 1. Absent where the numbers were looked at while
    /// they were measured: the interval is then that of all looks together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// Benjamini and Hochberg's, over the comparisons of a table with its baselines by one metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<f64>,
    /// |ratio - 1| that this number of units with this spread finds with a power of 80 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_detectable: Option<f64>,
    /// Units of duets; of a ratio from solo trials: rounds in which both succeeded.
    pub n: u32,
    /// The ratio of each unit or round, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<f64>,
    pub verdict: Verdict,
    /// The rank correlation of each unit with the next, where independent units seldom have as much: the
    /// interval is then too narrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocorrelation: Option<f64>,
    /// The load generator was the limit of one of the two. Equal rates are then no evidence about the
    /// systems, and in an open loop no values are: there is no verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_is_limit: bool,
    /// Set where the two were measured in duet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<DuetReport>,
}

impl Comparison {
    /// True if a baseline in duet with itself differs from itself, so that its duets decide nothing.
    /// `margin`: the difference that matters.
    pub fn fails_as_control(&self, margin: f64) -> bool {
        !self.ci95_is_range && control_fails(self.ci95, margin)
    }

    /// The smallest bias, as a share, that a control like this shows: half of its interval's width. `None`
    /// with fewer than six units.
    pub fn smallest_bias(&self) -> Option<f64> {
        let [low, high] = self.ci95;
        (!self.ci95_is_range).then(|| (high - low) / 2.0 / self.ratio)
    }

    /// Whether the CPU time comes before the rate.
    pub fn is_cpu_first(&self) -> bool {
        self.duet.as_ref().is_some_and(|duet| duet.cpu_first)
    }

    /// The value of the row: that of the cell compared with, by the ratio. `None` where that cell has none.
    pub fn value(&self, better: Better) -> Option<RowValue> {
        let ci95 = Some(self.ci95).filter(|_| !self.ci95_is_range);
        let scale = |ratio: f64| if better == Better::Higher { ratio } else { ratio.recip() };
        RowValue::scaled(self.with_value?, scale(self.ratio), ci95.map(|ends| ends.map(scale)))
    }

    /// The CPU time of the row: that of the cell compared with, by the ratio of the CPU times.
    pub fn cpu_value(&self) -> Option<RowValue> {
        let duet = self.duet.as_ref()?;
        RowValue::scaled(duet.with_cpu_us?, duet.cpu_ratio?, duet.cpu_ci95)
    }

    /// The ratio of the trials alone, where it contradicts this one.
    pub fn denied_by(&self) -> Option<SoloRatio> {
        let duet = self.duet.as_ref()?;
        duet.contradicted_by.or(duet.doubted_by)
    }

    /// True if solo trials contradict the duets, or if other processes used the CPUs: then it has no verdict.
    pub fn is_in_doubt(&self) -> bool {
        self.duet.as_ref().is_some_and(|duet| duet.contradicted_by.is_some() || duet.strangers.is_some())
    }
}

/// The part of a ratio that only duets have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DuetReport {
    /// How the two shared the CPUs.
    pub sharing: Option<Sharing>,
    /// The cell that each of the two was measured in duet with, where they were not with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// CPU time per operation (or byte), this cell over `with`: above 1 is more expensive.
    pub cpu_ratio: Option<f64>,
    /// Absent with fewer than 6 units.
    pub cpu_ci95: Option<[f64; 2]>,
    /// The roles whose CPU time it is; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub cpu_of: Vec<Role>,
    /// The CPU time of `with` in its trials alone: microseconds per operation, or per megabyte where the
    /// work is bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_cpu_us: Option<f64>,
    /// The verdict on the CPU time by itself, in a comparison of builds; slower is more expensive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_verdict: Option<Verdict>,
    /// In a comparison of builds: a role used a CPU all the time, so the CPU time is the first reading.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cpu_first: bool,
    /// The ratio of the solo trials, where it contradicts that of the duets: then there is no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicted_by: Option<SoloRatio>,
    /// A contradiction of three to five solo trials, and of a comparison of builds: the verdict stays, with a
    /// warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubted_by: Option<SoloRatio>,
    /// The share of the CPUs' time that other processes used, where it is more than 10 % in so many units
    /// that fewer than six are left: then there is no verdict. The mean of those units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strangers: Option<f64>,
}

/// The number that a row shows. Where the row has a ratio, it is the baseline's value in trials alone by that
/// ratio, so that the values of a table have the ratios beside them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowValue {
    pub value: f64,
    /// 95 %; `None` with too few trials or units.
    pub ci95: Option<[f64; 2]>,
}

impl RowValue {
    /// The value of a row: by its ratio, else that of its trials alone. `None` for a cell without a result.
    pub fn of_row(alone: Option<Alone>, found: Option<&Comparison>, better: Better) -> Option<Self> {
        let alone = alone?;
        let by_ratio = found.and_then(|found| found.value(better));
        Some(by_ratio.unwrap_or(Self { value: alone.value, ci95: alone.ci95 }))
    }

    /// `None` where a number is not finite.
    fn scaled(baseline: f64, ratio: f64, ci95: Option<[f64; 2]>) -> Option<Self> {
        let ordered = |[a, b]: [f64; 2]| [a.min(b) * baseline, a.max(b) * baseline];
        let found = Self { value: baseline * ratio, ci95: ci95.map(ordered) };
        let is_finite = |value: &f64| value.is_finite();
        (is_finite(&found.value) && found.ci95.iter().flatten().all(is_finite)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slower() -> Comparison {
        let duet = DuetReport {
            cpu_ratio: Some(1.5),
            cpu_ci95: Some([1.4, 1.6]),
            with_cpu_us: Some(20.0),
            ..DuetReport::default()
        };
        Comparison {
            with: "base".into(),
            with_value: Some(1_000.0),
            ratio: 0.8,
            ci95: [0.75, 0.85],
            ci95_is_range: false,
            ci90: None,
            difference: None,
            p: None,
            q: None,
            smallest_detectable: None,
            n: 9,
            units: Vec::new(),
            verdict: Verdict::Slower,
            autocorrelation: None,
            client_is_limit: false,
            duet: Some(duet),
        }
    }

    #[test]
    fn a_rows_value_is_the_baselines_by_its_ratio_whatever_its_trials_alone_say() {
        let alone = Alone { value: 1_100.0, ci95: None, range: Some([1_050.0, 1_150.0]), n: 3 };
        let of = |found: Option<&Comparison>, better| RowValue::of_row(Some(alone), found, better).unwrap();
        let rate = of(Some(&slower()), Better::Higher);
        assert_eq!((rate.value, rate.ci95), (800.0, Some([750.0, 850.0])));
        let time = of(Some(&slower()), Better::Lower);
        assert_eq!((time.value, time.ci95), (1_250.0, Some([1_000.0 / 0.85, 1_000.0 / 0.75])));
        assert_eq!(of(None, Better::Higher), RowValue { value: 1_100.0, ci95: None });
        let nothing_to_scale = Comparison { with_value: None, ..slower() };
        assert_eq!(of(Some(&nothing_to_scale), Better::Higher).value, 1_100.0);
        assert_eq!(RowValue::of_row(None, Some(&slower()), Better::Higher), None, "it failed");
    }

    #[test]
    fn the_range_of_too_few_units_is_no_interval_of_the_value() {
        let few = Comparison { ci95_is_range: true, ..slower() };
        assert_eq!(few.value(Better::Higher), Some(RowValue { value: 800.0, ci95: None }));
    }

    #[test]
    fn the_cpu_time_of_a_row_is_the_baselines_by_the_ratio_of_the_cpu_times() {
        let cpu = slower().cpu_value().unwrap();
        assert_eq!((cpu.value, cpu.ci95), (30.0, Some([28.0, 32.0])));
        assert_eq!(Comparison { duet: None, ..slower() }.cpu_value(), None);
    }

    #[test]
    fn a_damaged_ratio_has_no_value() {
        let tiny = Comparison { ratio: 1e-300, ci95: [0.0, 1e-300], ..slower() };
        assert_eq!(tiny.value(Better::Lower), None);
    }
}
