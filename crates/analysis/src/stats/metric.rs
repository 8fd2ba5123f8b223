//! The value of a trial by each metric, and its direction.

use super::ByRound;
use super::latency::sound;
use linerate_contract::{Nanos, Role};
use linerate_model::{Measurement, Metric};

/// Gigabits are decimal, like link speeds.
const BITS_PER_GBIT: f64 = 1e9;
const NANOS_PER_MICRO: f64 = 1e3;
const BYTES_PER_KIB: f64 = 1024.0;

/// The value of a measurement by a metric.
pub trait Value {
    /// The trial's value: finite and, except for growth, positive; `None` where the measurement is empty.
    fn value(self, measurement: &Measurement) -> Option<f64>;

    /// The values of those measurements that have one.
    fn values<'a>(self, by_round: impl IntoIterator<Item = (u32, &'a Measurement)>) -> ByRound;
}

impl Value for Metric {
    fn value(self, measurement: &Measurement) -> Option<f64> {
        let seconds = measurement.elapsed.as_secs_f64();
        let value = match self {
            Self::Seconds if measurement.operations == 0 => return None,
            Self::Seconds => seconds,
            Self::OperationsPerSecond => measurement.operations as f64 / seconds,
            Self::MibPerSecond => measurement.bytes.as_mib_f64() / seconds,
            Self::GbitPerSecond => measurement.bytes.0 as f64 * 8.0 / BITS_PER_GBIT / seconds,
            Self::SentGbitPerSecond => {
                let datagrams = measurement.datagrams?;
                let each = measurement.bytes.0 as f64 / datagrams.received as f64;
                datagrams.sent as f64 * each * 8.0 / BITS_PER_GBIT / seconds
            }
            Self::MeanLatency => match sound(&measurement.latency) {
                Some(counts) => counts.mean()? / NANOS_PER_MICRO,
                None => reported_latency(measurement, "mean")?,
            },
            Self::P50Latency => percentile(measurement, 50.0, "p50")?,
            Self::P90Latency => percentile(measurement, 90.0, "p90")?,
            Self::P99Latency => percentile(measurement, 99.0, "p99")?,
            Self::P999Latency => percentile(measurement, 99.9, "p999")?,
            Self::MinLatency => sound(&measurement.latency)?.min as f64 / NANOS_PER_MICRO,
            Self::PeakMemory => measurement.peak_memory?.as_mib_f64(),
            Self::ClientCpu => cpu(measurement, Role::Client)?,
            Self::ServerCpu => cpu(measurement, Role::Server)?,
            Self::CpuPerKib => {
                let cpu = measurement.cpu.values().fold(Nanos::ZERO, |sum, time| sum + *time);
                cpu.0 as f64 / (measurement.bytes.0 as f64 / BYTES_PER_KIB)
            }
            Self::MaxLatency => sound(&measurement.latency)?.max as f64 / NANOS_PER_MICRO,
            Self::ServerDescriptorsGrowth => {
                let usage = measurement.usage?;
                usage.after.descriptors as f64 - usage.before.descriptors as f64
            }
            Self::ServerMemoryGrowth => {
                let usage = measurement.usage?;
                usage.after.memory.as_mib_f64() - usage.before.memory.as_mib_f64()
            }
        };
        (value.is_finite() && (value > 0.0 || self.is_growth())).then_some(value)
    }

    fn values<'a>(self, by_round: impl IntoIterator<Item = (u32, &'a Measurement)>) -> ByRound {
        by_round.into_iter().filter_map(|(round, m)| Some((round, self.value(m)?))).collect()
    }
}

/// From the histogram; without one, the value of this name in the output of a foreign client.
fn percentile(measurement: &Measurement, percent: f64, name: &str) -> Option<f64> {
    match sound(&measurement.latency) {
        Some(counts) => Some(counts.percentile(percent)? as f64 / NANOS_PER_MICRO),
        None => reported_latency(measurement, name),
    }
}

/// CPU time of a role's processes per operation, in microseconds.
fn cpu(measurement: &Measurement, role: Role) -> Option<f64> {
    Some(measurement.cpu.get(&role)?.as_micros_f64() / measurement.operations as f64)
}

fn reported_latency(measurement: &Measurement, name: &str) -> Option<f64> {
    measurement.reported_latency.get(name).map(|nanos| nanos.as_micros_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Bytes, Counts, Datagrams};
    use linerate_model::{Usage, UsagePair};

    #[test]
    fn values_by_hand() {
        let two_seconds = Measurement {
            elapsed: Nanos(2_000_000_000),
            operations: 1_000,
            bytes: Bytes(1 << 30),
            latency: Some(Counts { pairs: vec![(1_000, 1), (3_000, 1)], min: 1_000, max: 3_000 }.into()),
            cpu: [(Role::Client, Nanos(7_000_000))].into(),
            ..Measurement::default()
        };
        assert_eq!(Metric::Seconds.value(&two_seconds), Some(2.0));
        assert_eq!(Metric::OperationsPerSecond.value(&two_seconds), Some(500.0));
        assert_eq!(Metric::MibPerSecond.value(&two_seconds), Some(512.0));
        assert_eq!(Metric::GbitPerSecond.value(&two_seconds), Some(4.294_967_296));
        assert_eq!(Metric::CpuPerKib.value(&two_seconds), Some(7_000_000.0 / 1024.0 / 1024.0));
        assert_eq!(Metric::MeanLatency.value(&two_seconds), Some(2.0));
        assert_eq!(Metric::P50Latency.value(&two_seconds), Some(1.0));
        assert_eq!(Metric::P999Latency.value(&two_seconds), Some(3.0));
        assert_eq!(Metric::MinLatency.value(&two_seconds), Some(1.0));
        assert_eq!(Metric::ClientCpu.value(&two_seconds), Some(7.0));
        assert_eq!(Metric::ServerCpu.value(&two_seconds), None);
    }

    #[test]
    fn sent_datagrams_have_the_mean_size_of_received_ones() {
        let half_lost = Measurement {
            elapsed: Nanos(1_000_000_000),
            bytes: Bytes(125_000_000),
            datagrams: Some(Datagrams { sent: 2_000, received: 1_000, lost: 1_000, ..Datagrams::default() }),
            ..Measurement::default()
        };
        assert_eq!(Metric::GbitPerSecond.value(&half_lost), Some(1.0));
        assert_eq!(Metric::SentGbitPerSecond.value(&half_lost), Some(2.0));
        assert_eq!(Metric::SentGbitPerSecond.value(&Measurement { datagrams: None, ..half_lost }), None);
    }

    #[test]
    fn resource_usage_may_grow_or_shrink() {
        let usage = |descriptors, mib: u64| Usage { descriptors, memory: Bytes(mib << 20) };
        let grown = |before, after| Measurement {
            usage: Some(UsagePair { before, after }),
            ..Measurement::default()
        };
        let leaking = grown(usage(10, 5), usage(2_010, 9));
        assert_eq!(Metric::ServerDescriptorsGrowth.value(&leaking), Some(2_000.0));
        assert_eq!(Metric::ServerMemoryGrowth.value(&leaking), Some(4.0));
        assert_eq!(Metric::ServerMemoryGrowth.value(&grown(usage(10, 5), usage(10, 4))), Some(-1.0));
        assert_eq!(Metric::ServerDescriptorsGrowth.value(&grown(usage(10, 5), usage(10, 4))), Some(0.0));
        assert_eq!(Metric::ServerDescriptorsGrowth.value(&Measurement::default()), None);
    }

    #[test]
    fn an_empty_measurement_has_no_value_by_any_metric() {
        let nothing = Measurement::default();
        let no_time = Measurement { operations: 5, bytes: Bytes(5), ..Measurement::default() };
        let no_work = Measurement { elapsed: Nanos(5), ..Measurement::default() };
        for metric in [
            Metric::Seconds,
            Metric::OperationsPerSecond,
            Metric::MibPerSecond,
            Metric::GbitPerSecond,
            Metric::MeanLatency,
            Metric::P99Latency,
            Metric::MaxLatency,
            Metric::ClientCpu,
        ] {
            for empty in [&nothing, &no_time, &no_work] {
                assert_eq!(metric.value(empty), None, "{metric:?}");
            }
        }
    }
}
