//! How much of a cell's rate each role decides, from probes.
//!
//! A probe is a duet of a cell with itself in which CPU time is taken from a role of one side. The
//! sensitivity is d ln(rate) / d ln(CPU time): 1 where the rate falls by as much as the role's CPU time, 0
//! where it does not fall. Time per operation is the sum of what roles use, one after the other, and of
//! what they wait, so the sensitivities of all roles add up to 1 where nothing but CPU time is waited for
//! (Euler's theorem on homogeneous functions).

use super::ratio::RatioEstimate;
use linerate_model::{Metric, SideWindow, Unit};
use serde::Serialize;

/// 1: the rate falls by as much as the role's CPU time; 0: it does not fall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sensitivity {
    pub value: f64,
    /// From the signed-rank distribution; absent with fewer than six units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Units.
    pub n: u32,
}

impl Sensitivity {
    /// From the units of one role's probe; `None` without a unit. The estimate and the interval are those of
    /// ratios: Hodges and Lehmann's, and the signed-rank test's.
    pub fn from_units<'a>(units: impl IntoIterator<Item = &'a Unit>, metric: Metric) -> Option<Self> {
        let values = units.into_iter().filter_map(|unit| sensitivity(unit, metric));
        let estimate = RatioEstimate::from_logs(values)?;
        let ci95 = estimate.ci95.map(|interval| interval.map(f64::ln));
        Some(Self { value: estimate.ratio.ln(), ci95, n: estimate.n })
    }
}

/// The sensitivity in one unit: the log ratio of rates over that of the CPU time left to the role.
fn sensitivity(unit: &Unit, metric: Metric) -> Option<f64> {
    let probe = unit.together()?.probe?;
    let [one, two] = unit.both()?;
    let rate = |side: &SideWindow| {
        let work = if metric.is_bulk() { side.bytes.0 } else { side.operations };
        work as f64 / side.elapsed.0 as f64
    };
    let (braked, free) = if probe.side == 0 { (one, two) } else { (two, one) };
    let role = braked.cpu.get(&probe.role)?.0 as f64;
    let left = role / (role + braked.brake?.0 as f64);
    let value = (rate(braked) / rate(free)).ln() / left.ln();
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Bytes, Nanos, Role};
    use linerate_model::{Probe, Sharing, Sides, Together};

    /// Side 1 has the brake.
    fn unit(operations: [u64; 2], brake: Option<u64>) -> Unit {
        with(Some(Probe { role: Role::Relay, side: 1, share: 0.1 }), operations, brake)
    }

    fn with(probe: Option<Probe>, operations: [u64; 2], brake: Option<u64>) -> Unit {
        let side = |index: usize| SideWindow {
            elapsed: Nanos(1_000),
            operations: operations[index],
            bytes: Bytes(operations[index] * 7),
            cpu: [(Role::Relay, Nanos(900)), (Role::Client, Nanos(5))].into(),
            brake: brake.filter(|_| index == 1).map(Nanos),
            ..SideWindow::default()
        };
        let sides = Some([side(0), side(1)]);
        let both = Together { probe, sides, ..Together::new(Sharing::Turns) };
        Unit::new(Sides::Probed(0, Role::Relay), both.into())
    }

    fn swapped(unit: &Unit) -> Unit {
        let both = unit.together().unwrap();
        let [one, two] = both.sides.clone().unwrap();
        let probe = both.probe.map(|probe| Probe { side: 1 - probe.side, ..probe });
        Unit::new(unit.sides, Together { sides: Some([two, one]), probe, ..both.clone() }.into())
    }

    #[test]
    fn a_rate_that_falls_with_the_cpu_time_has_a_sensitivity_of_one_whichever_side_is_probed() {
        let unit = unit([1_000, 900], Some(100));
        for unit in [swapped(&unit), unit] {
            let values = [Metric::Seconds, Metric::GbitPerSecond].map(|metric| sensitivity(&unit, metric));
            assert!(values.iter().all(|value| (value.unwrap() - 1.0).abs() < 1e-12), "{values:?}");
        }
    }

    #[test]
    fn a_rate_that_stays_has_none() {
        assert_eq!(sensitivity(&unit([1_000, 1_000], Some(100)), Metric::Seconds), Some(0.0));
    }

    #[test]
    fn the_time_that_was_really_taken_counts_and_a_unit_without_it_is_left_out() {
        let twice = sensitivity(&unit([1_000, 810], Some(211)), Metric::Seconds).unwrap();
        assert!((twice - 1.0).abs() < 0.01, "{twice}");
        assert_eq!(sensitivity(&unit([1_000, 800], Some(0)), Metric::Seconds), None);
        assert_eq!(sensitivity(&unit([1_000, 800], None), Metric::Seconds), None);
        let plain = with(None, [1_000, 900], Some(100));
        assert_eq!(sensitivity(&plain, Metric::Seconds), None);
    }

    #[test]
    fn six_units_have_an_interval_that_contains_the_value() {
        let units: Vec<Unit> = (0..6).map(|n| unit([1_000, 897 + n], Some(100))).collect();
        let of_six = Sensitivity::from_units(&units, Metric::Seconds).unwrap();
        let [low, high] = of_six.ci95.unwrap();
        assert!(low < of_six.value && of_six.value < high && high < 1.05, "{of_six:?}");
        assert_eq!(Sensitivity::from_units(&units[..5], Metric::Seconds).unwrap().ci95, None);
        assert_eq!(Sensitivity::from_units([], Metric::Seconds), None);
    }
}
