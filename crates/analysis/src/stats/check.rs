//! Consistency of a cell's numbers.
//!
//! In a closed loop the mean number of operations in flight is the number of connections. By Little's law
//! (1961) it is also throughput times mean latency. If the two differ, the generator left connections idle,
//! or timed and counted different things.

use super::latency::sound;
use linerate_contract::Nanos;
use linerate_model::Measurement;

/// The name of a foreign client's mean latency.
const MEAN: &str = "mean";
/// Ramp and tail of a window and the gaps between operations are below a tenth of it.
const TOLERANCE: f64 = 0.1;

/// Operations in flight over all trials, if that is more than 10 % off the number expected. `None` also where
/// no latency was recorded. A foreign client's mean is checked against its own rate.
pub fn littles_law<'a>(
    measurements: impl IntoIterator<Item = &'a Measurement>,
    expected: u64,
) -> Option<f64> {
    let (mut in_operations, mut elapsed) = (0.0, 0.0);
    for measurement in measurements {
        in_operations += match (sound(&measurement.latency), measurement.reported_latency.get(MEAN)) {
            (Some(latency), _) => latency.sum(),
            (None, Some(mean)) => mean.0 as f64 * measurement.operations as f64,
            (None, None) => continue,
        };
        elapsed += measurement.elapsed.0 as f64;
    }
    let in_flight = in_operations / elapsed;
    let off = (in_flight / expected as f64 - 1.0).abs();
    (off.is_finite() && in_operations > 0.0 && off > TOLERANCE).then_some(in_flight)
}

/// No progress for this share of a window is a hang, whatever the rate.
pub const LONGEST_STALL: f64 = 0.2;
/// The longest stall on a path that loses packets: a retransmission that is lost too waits for twice as long
/// as the one before it (RFC 6298 section 5.5, RFC 9002 section 6.2.1), so a stall is the path's for some
/// seconds.
pub const LONGEST_STALL_WITH_LOSS: f64 = 0.5;
/// A shorter pause is none, in however short a window: on a machine with more to run than CPUs, a process
/// waited for 213 ms.
pub const LEAST_PAUSE: Nanos = Nanos(250_000_000);
/// With fewer operations, a pause of a fifth can be one slow operation.
pub const LEAST_OPERATIONS: u64 = 50;

/// Whether a system hung that ended `operations` within `time`, and none for as long as `stall`; `longest` is
/// the share of the time that is a hang.
pub fn has_hung(operations: u64, stall: Nanos, time: Nanos, longest: f64) -> bool {
    let is_long = stall.0 as f64 >= longest * time.0 as f64 && stall >= LEAST_PAUSE;
    is_long && operations >= LEAST_OPERATIONS
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{Counts, Nanos};

    fn thousand_of_a_millisecond(elapsed_ms: u64) -> Measurement {
        let latency = Counts { pairs: vec![(1_000_000, 1_000)], min: 1_000_000, max: 1_000_000 };
        Measurement {
            elapsed: Nanos(elapsed_ms * 1_000_000),
            latency: Some(latency.into()),
            ..Measurement::default()
        }
    }

    #[test]
    fn busy_connections_satisfy_littles_law() {
        assert_eq!(littles_law([&thousand_of_a_millisecond(200)], 5), None);
        assert_eq!(littles_law([&thousand_of_a_millisecond(215)], 5), None);
    }

    #[test]
    fn idle_connections_and_lost_time_are_found() {
        assert_eq!(littles_law([&thousand_of_a_millisecond(400)], 5), Some(2.5));
        assert_eq!(littles_law([&thousand_of_a_millisecond(100)], 5), Some(10.0));
    }

    #[test]
    fn a_reported_mean_that_contradicts_its_own_rate_is_found() {
        let reported = |micros: u64| Measurement {
            elapsed: Nanos(1_000_000_000),
            operations: 100_000,
            reported_latency: [(MEAN.to_owned(), Nanos(micros * 1_000))].into(),
            ..Measurement::default()
        };
        assert_eq!(littles_law([&reported(320)], 32), None);
        assert_eq!(littles_law([&reported(200)], 32), Some(20.0));
    }

    #[test]
    fn without_latency_there_is_no_result() {
        assert_eq!(littles_law([&Measurement::default()], 5), None);
        assert_eq!(littles_law([&thousand_of_a_millisecond(200)], 0), None);
        assert_eq!(littles_law([], 5), None);
    }
}
