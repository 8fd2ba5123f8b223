//! What the work cost in CPU time: per operation, or per megabyte where the work is bytes.
//!
//! Two views, because neither is whole: the process time of each role, and the busy time of all the lab's CPUs, which
//! also has the interrupts that the kernel charges to nobody.

use super::estimate::{Estimate, Scale};
use crate::measurement::{Measurement, Metric};
use linerate_contract::{Nanos, Role};
use std::collections::BTreeMap;

const BYTES_PER_MB: f64 = 1e6;

/// Who paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payer {
    Role(Role),
    /// All the lab's CPUs together.
    Machine,
}

/// What one unit of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    Operation,
    Megabyte,
}

impl Per {
    #[must_use]
    pub fn of(metric: Metric) -> Self {
        if metric.is_bulk() { Self::Megabyte } else { Self::Operation }
    }

    fn units(self, measurement: &Measurement) -> f64 {
        match self {
            Self::Operation => measurement.operations as f64,
            Self::Megabyte => measurement.bytes.0 as f64 / BYTES_PER_MB,
        }
    }
}

/// Microseconds per unit of work by payer: medians over the trials.
#[must_use]
pub fn cost<'a>(
    measurements: impl IntoIterator<Item = &'a Measurement>,
    per: Per,
) -> BTreeMap<Payer, Estimate> {
    let mut micros: BTreeMap<Payer, Vec<f64>> = BTreeMap::new();
    for measurement in measurements {
        let units = per.units(measurement);
        for (payer, time) in paid(measurement) {
            micros.entry(payer).or_default().push(time.as_micros_f64() / units);
        }
    }
    micros
        .into_iter()
        .filter_map(|(payer, values)| Some((payer, Estimate::of(values, Scale::Linear)?)))
        .collect()
}

fn paid(measurement: &Measurement) -> impl Iterator<Item = (Payer, Nanos)> {
    let machine = measurement.cpus.iter().fold(Nanos::ZERO, |sum, cpu| sum + cpu.busy);
    let roles = measurement.cpu.iter().map(|(role, time)| (Payer::Role(*role), *time));
    roles.chain((!measurement.cpus.is_empty()).then_some((Payer::Machine, machine)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::CpuWindow;
    use linerate_contract::Bytes;

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
        assert_eq!(per_operation[&Payer::Role(Role::Client)].median, 20.0);
        assert_eq!(per_operation[&Payer::Role(Role::Client)].interval, [10.0, 30.0]);
        assert_eq!(per_operation[&Payer::Machine].median, 50.0);
        assert_eq!(cost(&trials, Per::Megabyte)[&Payer::Role(Role::Client)].median, 40.0);
    }

    #[test]
    fn no_work_has_no_cost() {
        let idle = Measurement { operations: 0, ..trial(100) };
        assert_eq!(cost([&idle], Per::Operation), BTreeMap::new());
        assert_eq!(cost([&Measurement::default()], Per::Megabyte), BTreeMap::new());
    }
}
