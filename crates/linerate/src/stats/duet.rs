//! The log ratios of duets: one for each unit.

use crate::measurement::{Duet, DuetWindow, Metric, Outcome, SIDES_NOT_GROUPED, SideWindow};
use linerate_contract::Role;

/// True if windows of duets have ratios of this metric. In closed loops time and mean latency are inverse to
/// the rate.
#[must_use]
pub fn is_of_windows(metric: Metric) -> bool {
    is_rate(metric) || cost(metric).is_some()
}

/// True for work over time, and not for CPU time over work.
#[must_use]
pub fn is_rate(metric: Metric) -> bool {
    rate(metric).is_some()
}

fn rate(metric: Metric) -> Option<fn(&SideWindow) -> f64> {
    match metric {
        Metric::Seconds | Metric::OperationsPerSecond | Metric::MeanLatency => {
            Some(|side| side.operations as f64)
        }
        Metric::MibPerSecond | Metric::GbitPerSecond => Some(|side| side.bytes.0 as f64),
        _ => None,
    }
}

/// The role whose CPU time is the metric; `Some(None)`: all roles.
fn cost(metric: Metric) -> Option<Option<Role>> {
    match metric {
        Metric::ClientCpu => Some(Some(Role::Client)),
        Metric::ServerCpu => Some(Some(Role::Server)),
        Metric::CpuPerKib => Some(None),
        _ => None,
    }
}

/// The log ratio of performance of side 0 over side 1: above 0 is better. The mean over the windows of the
/// unit. `None` for a failed unit, a unit whose sides share CPUs by process, and a metric that windows do
/// not have.
#[must_use]
pub fn log_ratio(duet: &Duet, metric: Metric) -> Option<f64> {
    if let Some(role) = cost(metric) {
        return log_cpu_ratio(duet, metric, role).map(|log| -log);
    }
    if duet.flags.iter().any(|flag| flag == SIDES_NOT_GROUPED) {
        return None;
    }
    let rate = rate(metric)?;
    mean_log(duet, |side| rate(side) / side.elapsed.0 as f64)
}

/// The log ratio of CPU time per operation, side 0 over side 1: above 0 is more expensive. Of one role, or
/// of all. Per byte where `metric` counts bytes.
#[must_use]
pub fn log_cpu_ratio(duet: &Duet, metric: Metric, role: Option<Role>) -> Option<f64> {
    let work =
        |side: &SideWindow| if metric.is_bulk() { side.bytes.0 as f64 } else { side.operations as f64 };
    let cpu = |side: &SideWindow| {
        let of_role = side.cpu.iter().filter(|(of, _)| role.is_none_or(|role| role == **of));
        of_role.map(|(_, time)| time.0 as f64).sum::<f64>()
    };
    mean_log(duet, |side| cpu(side) / work(side))
}

fn mean_log(duet: &Duet, value: impl Fn(&SideWindow) -> f64) -> Option<f64> {
    let log = |window: &DuetWindow| (value(&window.sides[0]) / value(&window.sides[1])).ln();
    let logs: Vec<f64> = duet.windows.iter().map(log).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (duet.outcome == Outcome::Ok && mean.is_finite()).then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Bytes, Nanos};

    fn side(operations: u64, cpu: u64) -> SideWindow {
        SideWindow {
            elapsed: Nanos(1_000),
            operations,
            bytes: Bytes(operations * 10),
            cpu: [(Role::Server, Nanos(cpu)), (Role::Client, Nanos(cpu))].into(),
            ..SideWindow::default()
        }
    }

    fn duet(windows: Vec<[SideWindow; 2]>) -> Duet {
        serde_json::from_value::<Duet>(serde_json::json!({
            "suite": "s", "cells": ["a", "b"], "unit": 1, "at": 0, "outcome": "ok", "stages": {},
        }))
        .map(|duet| Duet { windows: windows.into_iter().map(|sides| DuetWindow { sides }).collect(), ..duet })
        .expect("it follows the model")
    }

    #[test]
    fn a_unit_is_the_mean_of_its_windows() {
        let unit = duet(vec![[side(200, 10), side(100, 10)], [side(800, 10), side(100, 10)]]);
        let rate = log_ratio(&unit, Metric::OperationsPerSecond).unwrap();
        assert!((rate.exp() - 4.0).abs() < 1e-12, "{rate}");
        assert_eq!(log_ratio(&unit, Metric::Seconds), Some(rate));
        assert_eq!(log_ratio(&unit, Metric::GbitPerSecond), Some(rate));
        assert_eq!(log_ratio(&unit, Metric::P99Latency), None);
        let cpu = log_cpu_ratio(&unit, Metric::OperationsPerSecond, None).unwrap();
        assert!((cpu.exp() - 0.25).abs() < 1e-12, "{cpu}");
        assert_eq!(log_cpu_ratio(&unit, Metric::OperationsPerSecond, Some(Role::Server)), Some(cpu));
        assert_eq!(log_cpu_ratio(&unit, Metric::OperationsPerSecond, Some(Role::Relay)), None);
    }

    #[test]
    fn units_without_grouped_sides_have_no_rate_but_a_cpu_cost() {
        let mut unit = duet(vec![[side(200, 10), side(100, 10)]]);
        unit.flags = vec![SIDES_NOT_GROUPED.to_owned()];
        assert_eq!(log_ratio(&unit, Metric::Seconds), None);
        assert!(log_cpu_ratio(&unit, Metric::Seconds, None).is_some());
    }

    #[test]
    fn an_empty_or_stopped_side_has_no_ratio() {
        assert_eq!(log_ratio(&duet(vec![]), Metric::Seconds), None);
        assert_eq!(log_ratio(&duet(vec![[side(0, 10), side(100, 10)]]), Metric::Seconds), None);
        assert_eq!(log_ratio(&duet(vec![[side(100, 10), side(0, 10)]]), Metric::Seconds), None);
    }
}
