//! CPU time per operation, or per megabyte where the work is bytes.
//!
//! Two views, because neither is complete: the process time of each role, and the busy time of all the lab's
//! CPUs, which includes interrupts that the kernel charges to no process.

use super::estimate::Estimate;
use linerate_contract::{Nanos, Role};
use linerate_model::{Measurement, Metric};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

const BYTES_PER_MB: f64 = 1e6;

/// A consumer of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consumer {
    Role(Role),
    /// All the lab's CPUs together.
    Machine,
}

/// A unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    Operation,
    Megabyte,
}

/// The name of a consumer, as keys and tables have it.
impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => role.fmt(f),
            Self::Machine => f.write_str("machine"),
        }
    }
}

impl Serialize for Consumer {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Per {
    pub fn from_metric(metric: Metric) -> Self {
        if metric.is_bulk() { Self::Megabyte } else { Self::Operation }
    }

    fn units(self, measurement: &Measurement) -> f64 {
        match self {
            Self::Operation => measurement.operations as f64,
            Self::Megabyte => measurement.bytes.0 as f64 / BYTES_PER_MB,
        }
    }
}

/// Microseconds per unit of work by consumer: medians over the trials.
pub fn cost<'a>(
    measurements: impl IntoIterator<Item = &'a Measurement>,
    per: Per,
) -> BTreeMap<Consumer, Estimate> {
    let mut micros: BTreeMap<Consumer, Vec<f64>> = BTreeMap::new();
    for measurement in measurements {
        let units = per.units(measurement);
        for (consumer, time) in consumed(measurement) {
            micros.entry(consumer).or_default().push(time.as_micros_f64() / units);
        }
    }
    micros
        .into_iter()
        .filter_map(|(consumer, values)| Some((consumer, Estimate::from_values(values)?)))
        .collect()
}

/// Microseconds per unit of work of some roles together, or without any of all.
pub fn total<'a>(
    measurements: impl IntoIterator<Item = &'a Measurement>,
    per: Per,
    roles: &[Role],
) -> Option<Estimate> {
    let micros = |measurement: &Measurement| {
        let of_role = measurement.cpu.iter().filter(|(role, _)| roles.is_empty() || roles.contains(role));
        let time = of_role.map(|(_, time)| *time).reduce(|sum, time| sum + time)?;
        Some(time.as_micros_f64() / per.units(measurement))
    };
    Estimate::from_values(measurements.into_iter().filter_map(micros))
}

fn consumed(measurement: &Measurement) -> impl Iterator<Item = (Consumer, Nanos)> {
    let machine = measurement.cpus.iter().fold(Nanos::ZERO, |sum, cpu| sum + cpu.busy);
    let roles = measurement.cpu.iter().map(|(role, time)| (Consumer::Role(*role), *time));
    roles.chain((!measurement.cpus.is_empty()).then_some((Consumer::Machine, machine)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Bytes;
    use linerate_model::CpuWindow;

    fn trial(client_us: u64) -> Measurement {
        let busy = |us: u64| CpuWindow { busy: Nanos(us * 1_000), ..CpuWindow::default() };
        Measurement {
            operations: 10,
            bytes: Bytes(5_000_000),
            cpu: BTreeMap::from([(Role::Client, Nanos(client_us * 1_000))]),
            cpus: vec![busy(300), busy(200)],
            ..Measurement::default()
        }
    }

    #[test]
    fn costs_by_hand() {
        let trials = [trial(100), trial(300), trial(200)];
        let per_operation = cost(&trials, Per::Operation);
        assert_eq!(per_operation[&Consumer::Role(Role::Client)].median, 20.0);
        assert_eq!(per_operation[&Consumer::Role(Role::Client)].interval, [10.0, 30.0]);
        assert_eq!(per_operation[&Consumer::Machine].median, 50.0);
        assert_eq!(cost(&trials, Per::Megabyte)[&Consumer::Role(Role::Client)].median, 40.0);
    }

    #[test]
    fn the_cost_of_some_roles_together_is_that_of_each_trial() {
        let server = |mut trial: Measurement, us: u64| {
            trial.cpu.insert(Role::Server, Nanos(us * 1_000));
            trial
        };
        let trials = [server(trial(100), 300), server(trial(300), 200), server(trial(200), 0)];
        let of = |roles: &[Role]| total(&trials, Per::Operation, roles).map(|cost| cost.median);
        assert_eq!(of(&[]), Some(40.0), "the median of 40, 50 and 20");
        assert_eq!(of(&[Role::Server]), Some(20.0));
        assert_eq!(of(&[Role::Relay]), None);
    }

    #[test]
    fn an_empty_measurement_has_no_cost() {
        let idle = Measurement { operations: 0, ..trial(100) };
        assert_eq!(cost([&idle], Per::Operation), BTreeMap::new());
        assert_eq!(cost([&Measurement::default()], Per::Megabyte), BTreeMap::new());
    }
}
