//! Results of `linerate load` over time: `--csv`, and `by_second` of `--json`.

use super::load::micros;
use linerate_contract::{Bytes, Counts, Done, Nanos, Sample};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The rest of a second at the end of the window has a row if it is at least this long: the rate of less is
/// that of a few operations.
const SHORTEST: Nanos = Nanos(100_000_000);

/// Operations of a second.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OperationsSecond {
    /// The end of this second, since the window opened.
    seconds: f64,
    operations_per_second: f64,
    failed: u64,
    /// Response times of this second alone.
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

/// Bytes of a second, in one direction.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamSecond {
    /// The end of this second, since the window opened.
    seconds: f64,
    gbit_per_second: f64,
    /// The longest smoothed round-trip time of its connections.
    rtt_us: Option<u64>,
}

/// Rate, failures, and percentiles of the response times of each second.
pub fn of_operations(done: &Done, samples: &[Sample]) -> Vec<OperationsSecond> {
    let rest = rest(done, samples);
    let (mut before, mut at) = (Counts::default(), Nanos::ZERO);
    let mut second = |sample: &Sample| {
        let all = sample.latency.clone().unwrap_or_default();
        let own = between(&before, &all);
        let took = sample.at_ns.since(at).as_secs_f64();
        (before, at) = (all, sample.at_ns);
        OperationsSecond {
            seconds: sample.at_ns.as_secs_f64(),
            operations_per_second: sample.operations as f64 / took,
            failed: sample.failed,
            p50_us: own.supported_percentile(50.0).map(micros),
            p99_us: own.supported_percentile(99.0).map(micros),
        }
    };
    samples.iter().chain(&rest).map(&mut second).collect()
}

/// Bits of each second.
pub fn of_stream(done: &Done, samples: &[Sample]) -> Vec<StreamSecond> {
    let rest = rest(done, samples);
    let mut at = Nanos::ZERO;
    let mut second = |sample: &Sample| {
        let took = sample.at_ns.since(at).as_secs_f64();
        at = sample.at_ns;
        StreamSecond {
            seconds: sample.at_ns.as_secs_f64(),
            gbit_per_second: sample.bytes.0 as f64 * 8.0 / 1e9 / took,
            rtt_us: sample.rtt_us,
        }
    };
    samples.iter().chain(&rest).map(&mut second).collect()
}

/// The part of the result beyond the last sample. Without a sample it is the result.
fn rest(done: &Done, samples: &[Sample]) -> Option<Sample> {
    let (last, at_ns) = (samples.last()?, done.end_ns.since(done.start_ns));
    let sum = |value: fn(&Sample) -> u64| samples.iter().map(value).sum::<u64>();
    (at_ns.since(last.at_ns) >= SHORTEST).then(|| Sample {
        at_ns,
        operations: done.operations.saturating_sub(sum(|sample| sample.operations)),
        bytes: Bytes(done.bytes.0.saturating_sub(sum(|sample| sample.bytes.0))),
        failed: done.errors.total().saturating_sub(sum(|sample| sample.failed)),
        latency: done.latency.clone(),
        lost: None,
        rtt_us: None,
    })
}

/// The values that were recorded after `before`: both have the same buckets.
fn between(before: &Counts, after: &Counts) -> Counts {
    let before: BTreeMap<u64, u64> = before.pairs.iter().copied().collect();
    let own = |(value, n): &(u64, u64)| (*value, n - before.get(value).unwrap_or(&0).min(n));
    Counts { pairs: after.pairs.iter().map(own).filter(|(_, n)| *n > 0).collect(), ..Counts::default() }
}

/// A line for each second.
pub fn csv(seconds: &[OperationsSecond]) -> String {
    let mut out = String::from("seconds,operations_per_second,failed,p50_us,p99_us\n");
    for OperationsSecond { seconds, operations_per_second, failed, p50_us, p99_us } in seconds {
        let [p50, p99] = [p50_us, p99_us].map(|us| us.map_or_else(String::new, |us| us.to_string()));
        let _ = writeln!(out, "{seconds:.3},{operations_per_second:.1},{failed},{p50},{p99}");
    }
    out
}

/// A line for each second and direction.
pub fn stream_csv(directions: &[(&str, Vec<StreamSecond>)]) -> String {
    let mut out = String::from("direction,seconds,gbit_per_second,rtt_us\n");
    for (direction, all) in directions {
        for StreamSecond { seconds, gbit_per_second, rtt_us } in all {
            let rtt = rtt_us.map_or_else(String::new, |us| us.to_string());
            let _ = writeln!(out, "{direction},{seconds:.3},{gbit_per_second:.4},{rtt}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, operations: u64, pairs: Vec<(u64, u64)>) -> Sample {
        Sample {
            at_ns: Nanos(at),
            operations,
            bytes: Bytes(operations * 1_250_000),
            failed: 1,
            latency: Some(Counts { pairs, min: 10_000, max: 90_000 }),
            lost: None,
            rtt_us: Some(45),
        }
    }

    fn samples() -> [Sample; 2] {
        [
            sample(1_000_000_000, 100, vec![(10_000, 100)]),
            sample(3_000_000_000, 50, vec![(10_000, 100), (90_000, 50)]),
        ]
    }

    fn done(window: u64) -> Done {
        Done {
            operations: 160,
            bytes: Bytes(200_000_000),
            start_ns: Nanos(7),
            end_ns: Nanos(7 + window),
            latency: Some(Counts { pairs: vec![(10_000, 110), (90_000, 50)], min: 10_000, max: 90_000 }),
            ..Done::default()
        }
    }

    #[test]
    fn a_row_has_the_percentiles_of_its_own_second_and_the_last_one_the_rest() {
        let text = csv(&of_operations(&done(3_500_000_000), &samples()));
        let head = "seconds,operations_per_second,failed,p50_us,p99_us\n";
        let whole = "1.000,100.0,1,10,10\n3.000,25.0,1,90,\n";
        assert_eq!(text, format!("{head}{whole}3.500,20.0,0,10,\n"));
        // The last sample is at the end of the window.
        assert_eq!(csv(&of_operations(&done(3_050_000_000), &samples())), format!("{head}{whole}"));
        assert_eq!(of_operations(&done(50_000_000), &[]), []);
    }

    #[test]
    fn a_stream_has_its_bits_by_direction() {
        let text = stream_csv(&[("to server", of_stream(&done(3_500_000_000), &samples()))]);
        let rows = "to server,1.000,1.0000,45\nto server,3.000,0.2500,45\nto server,3.500,0.2000,\n";
        assert_eq!(text, format!("direction,seconds,gbit_per_second,rtt_us\n{rows}"));
    }
}
