//! The log ratios of duets: one for each unit.

use linerate_contract::{Choice, Ends, Role};
use linerate_model::{Histogram, Measurement, Metric, PlannedCell, SideWindow, Unit};

/// The share of a CPU that a loop uses that is alone: what does not wait differs from its CPU time by its
/// start and end only.
const BUSY: f64 = 0.97;

/// True if windows of duets have ratios of this metric. In closed loops time and mean latency are inverse to
/// the rate.
pub fn is_of_windows(metric: Metric) -> bool {
    is_rate(metric) || cost(metric).is_some()
}

/// True for work over time, and not for CPU time over work.
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

/// The log ratio of performance of side 0 over side 1: above 0 is better. `None` for a failed unit, and for a
/// metric that windows do not have.
pub fn log_ratio(unit: &Unit, metric: Metric) -> Option<f64> {
    log_ratio_of(unit.both()?, metric)
}

/// The log ratio of performance of two windows at the same time, as [`log_ratio`] has it of a unit.
pub fn log_ratio_of(sides: &[SideWindow; 2], metric: Metric) -> Option<f64> {
    if let Some(role) = cost(metric) {
        return log_cpu_ratio_of(sides, metric, role.as_slice()).map(|log| -log);
    }
    if let Some([ours, theirs]) = latencies_of(sides, metric) {
        let log = (theirs / ours).ln();
        return log.is_finite().then_some(log);
    }
    let rate = rate(metric)?;
    log_of(sides, |side| rate(side) / side.elapsed.0 as f64)
}

/// The logarithm of what each side did in a second, or of the inverse of its latency; `None` as of
/// [`log_ratio`], and for CPU time.
pub fn log_rates(unit: &Unit, metric: Metric) -> Option<[f64; 2]> {
    let logs = match (latencies(unit, metric), rate(metric)) {
        (Some(latencies), _) => latencies.map(|us| -us.ln()),
        (None, Some(rate)) => unit.both()?.each_ref().map(|side| (rate(side) / side.elapsed.0 as f64).ln()),
        (None, None) => return None,
    };
    logs.iter().all(|log| log.is_finite()).then_some(logs)
}

/// True for both ends in one loop, on one thread, most of whose trials alone used a CPU all the time.
/// Such a loop never waits: how long its work takes alone is its CPU time.
pub fn is_busy_loop<'m>(cell: &PlannedCell, alone: impl Iterator<Item = &'m Measurement>) -> bool {
    let is_loop = cell.options.get(Ends::OPTION).is_some_and(|ends| ends == Ends::OneLoop.word())
        && cell.parameters.threads.is_none_or(|threads| threads == 1);
    let is_busy = |trial: &Measurement| {
        let cpu: f64 = trial.cpu.values().map(|time| time.0 as f64).sum();
        cpu >= BUSY * trial.elapsed.0 as f64
    };
    let (busy, idle): (Vec<_>, Vec<_>) = alone.partition(|trial| is_busy(trial));
    is_loop && busy.len() > idle.len()
}

/// The log ratio of two loops that are busy, as [`log_ratio`], by CPU time in place of the window. What the
/// kernel gives to others, and how it shares a CPU between the sides, is then no part of it.
pub fn log_ratio_of_loops(unit: &Unit, metric: Metric) -> Option<f64> {
    if is_rate(metric) {
        return log_cpu_ratio(unit, metric, &[]).map(|log| -log);
    }
    log_ratio(unit, metric)
}

/// A latency of both sides in microseconds; `None` but for open loops, and for other metrics.
pub fn latencies(unit: &Unit, metric: Metric) -> Option<[f64; 2]> {
    latencies_of(unit.both()?, metric)
}

fn latencies_of(sides: &[SideWindow; 2], metric: Metric) -> Option<[f64; 2]> {
    let [ours, theirs] = sides.each_ref().map(|side| latency(side.latency.as_ref()?, metric));
    Some([ours? / 1e3, theirs? / 1e3])
}

/// In nanoseconds. Of a percentile at least one operation was slower, else it would be the maximum.
fn latency(histogram: &Histogram, metric: Metric) -> Option<f64> {
    let percentile = |percent: f64| {
        let slower = histogram.total()? as f64 * (1.0 - percent / 100.0);
        (slower >= 1.0).then(|| histogram.percentile(percent).map(|nanos| nanos as f64)).flatten()
    };
    match metric {
        Metric::MeanLatency => histogram.mean(),
        Metric::P50Latency => percentile(50.0),
        Metric::P90Latency => percentile(90.0),
        Metric::P99Latency => percentile(99.0),
        Metric::P999Latency => percentile(99.9),
        _ => None,
    }
}

/// The log ratio of CPU time per operation, side 0 over side 1: above 0 is more expensive. Of some roles, or
/// without any of all. Per byte where `metric` counts bytes.
pub fn log_cpu_ratio(unit: &Unit, metric: Metric, roles: &[Role]) -> Option<f64> {
    log_cpu_ratio_of(unit.both()?, metric, roles)
}

/// The log ratio of CPU time per operation of two windows, as [`log_cpu_ratio`] has it of a unit.
pub fn log_cpu_ratio_of(sides: &[SideWindow; 2], metric: Metric, roles: &[Role]) -> Option<f64> {
    log_of(sides, |side| cpu_per_operation(side, metric, roles))
}

/// CPU time per operation, or per byte where `metric` counts bytes, in nanoseconds.
pub fn cpu_per_operation(side: &SideWindow, metric: Metric, roles: &[Role]) -> f64 {
    let work = if metric.is_bulk() { side.bytes.0 as f64 } else { side.operations as f64 };
    let of_role = side.cpu.iter().filter(|(role, _)| roles.is_empty() || roles.contains(role));
    of_role.map(|(_, time)| time.0 as f64).sum::<f64>() / (work * side.all_over_counted())
}

fn log_of([ours, theirs]: &[SideWindow; 2], value: impl Fn(&SideWindow) -> f64) -> Option<f64> {
    let log = (value(ours) / value(theirs)).ln();
    log.is_finite().then_some(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Bytes, Counts, Nanos};
    use linerate_model::{Sharing, Sides, Together};

    fn side(operations: u64, cpu: u64) -> SideWindow {
        SideWindow {
            elapsed: Nanos(1_000),
            operations,
            bytes: Bytes(operations * 10),
            cpu: [(Role::Server, Nanos(cpu)), (Role::Client, Nanos(cpu))].into(),
            ..SideWindow::default()
        }
    }

    fn duet(sides: Option<[SideWindow; 2]>) -> Unit {
        Unit::new(Sides::Two([0, 1]), Together { sides, ..Together::new(Sharing::Together) }.into())
    }

    #[test]
    fn a_unit_has_the_ratio_of_its_sides() {
        let unit = duet(Some([side(400, 10), side(100, 10)]));
        let rate = log_ratio(&unit, Metric::OperationsPerSecond).unwrap();
        assert!((rate.exp() - 4.0).abs() < 1e-12, "{rate}");
        assert_eq!(log_ratio(&unit, Metric::Seconds), Some(rate));
        assert_eq!(log_ratio(&unit, Metric::GbitPerSecond), Some(rate));
        assert_eq!(log_ratio(&unit, Metric::P99Latency), None);
        let [ours, theirs] = log_rates(&unit, Metric::OperationsPerSecond).unwrap();
        assert!((ours - theirs - rate).abs() < 1e-12 && log_rates(&unit, Metric::ServerCpu).is_none());
        let cpu = log_cpu_ratio(&unit, Metric::OperationsPerSecond, &[]).unwrap();
        assert!((cpu.exp() - 0.25).abs() < 1e-12, "{cpu}");
        assert_eq!(log_cpu_ratio(&unit, Metric::OperationsPerSecond, &[Role::Server]), Some(cpu));
        assert_eq!(log_cpu_ratio(&unit, Metric::OperationsPerSecond, &[Role::Relay]), None);
    }

    #[test]
    fn loops_that_never_wait_are_compared_by_cpu_time() {
        // Half the work in half the CPU time: the window says half the rate, the loop is as fast.
        let unit = duet(Some([side(50, 5), side(100, 10)]));
        assert!((log_ratio(&unit, Metric::MeanLatency).unwrap().exp() - 0.5).abs() < 1e-12);
        assert!((log_ratio_of_loops(&unit, Metric::MeanLatency).unwrap().exp() - 1.0).abs() < 1e-12);
        let cell = |ends: &str, threads: u64| {
            serde_json::from_value::<PlannedCell>(serde_json::json!({
                "id": "c", "axes": {}, "layer": "tcp", "workload": "rr", "options": {"ends": ends},
                "path": {"device": "loopback", "links": [{"mtu": 65_536}]},
                "parameters": {"operations": 1, "threads": threads}, "systems": [], "absent": null,
            }))
            .expect("it follows the model")
        };
        let trial = |cpu: u64| Measurement {
            elapsed: Nanos(1_000),
            cpu: [(Role::Client, Nanos(cpu))].into(),
            ..Measurement::default()
        };
        let is_busy = |ends: &str, threads: u64, cpu: [u64; 3]| {
            is_busy_loop(&cell(ends, threads), cpu.map(trial).iter())
        };
        assert!(is_busy("one-loop", 1, [990, 980, 900]));
        assert!(!is_busy("one-loop", 1, [990, 900, 900]), "it waits");
        assert!(!is_busy("one-loop", 2, [990; 3]), "its threads work at the same time");
        assert!(!is_busy("", 1, [990; 3]), "two processes");
        assert!(!is_busy_loop(&cell("one-loop", 1), [].iter()));
    }

    #[test]
    fn what_an_alternating_load_does_not_count_is_in_the_cpu_time_and_not_in_the_rate() {
        let guarded = SideWindow { uncounted: 100, ..side(400, 10) };
        let unit = duet(Some([guarded, side(100, 10)]));
        let rate = log_ratio(&unit, Metric::OperationsPerSecond).unwrap();
        let cpu = log_cpu_ratio(&unit, Metric::OperationsPerSecond, &[]).unwrap();
        assert!((rate.exp() - 4.0).abs() < 1e-12 && (cpu.exp() - 0.2).abs() < 1e-12, "{rate} {cpu}");
    }

    #[test]
    fn open_loops_are_compared_by_latencies_and_lower_is_better() {
        let with = |nanos: u64| {
            let counts = Counts { pairs: vec![(nanos, 99), (10 * nanos, 1)], min: nanos, max: 10 * nanos };
            SideWindow { latency: Some(counts.into()), ..side(100, 10) }
        };
        let unit = duet(Some([with(80_000), with(60_000)]));
        assert_eq!(latencies(&unit, Metric::P50Latency), Some([80.0, 60.0]));
        for metric in [Metric::P50Latency, Metric::MeanLatency, Metric::P99Latency] {
            let ratio = log_ratio(&unit, metric).unwrap().exp();
            assert!((ratio - 0.75).abs() < 1e-9, "{metric:?} {ratio}");
        }
        assert_eq!(log_ratio(&unit, Metric::P999Latency), None, "of 100 operations it is the maximum");
        assert_eq!(latencies(&duet(Some([side(1, 1), side(1, 1)])), Metric::P50Latency), None);
    }

    #[test]
    fn a_failed_unit_and_one_with_a_stopped_side_have_no_ratio() {
        assert_eq!(log_ratio(&duet(None), Metric::Seconds), None);
        assert_eq!(log_ratio(&duet(Some([side(0, 10), side(100, 10)])), Metric::Seconds), None);
        assert_eq!(log_ratio(&duet(Some([side(100, 10), side(0, 10)])), Metric::Seconds), None);
    }
}
