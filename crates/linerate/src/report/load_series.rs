//! Output of `linerate load --csv`: a row a second.

use super::load::micros;
use linerate_contract::{Counts, Nanos, Sample};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rate, failures, and percentiles of the response times of each second.
#[must_use]
pub fn csv(samples: &[Sample]) -> String {
    let mut out = String::from("seconds,operations_per_second,failed,p50_us,p99_us\n");
    let (mut before, mut at) = (Counts::default(), Nanos::ZERO);
    for sample in samples {
        let all = sample.latency.clone().unwrap_or_default();
        let own = between(&before, &all);
        let micros = |percent| own.percentile(percent).map_or_else(String::new, |ns| micros(ns).to_string());
        let rate = sample.operations as f64 / sample.at_ns.since(at).as_secs_f64();
        let _ = writeln!(
            out,
            "{:.3},{rate:.1},{},{},{}",
            sample.at_ns.as_secs_f64(),
            sample.failed,
            micros(50.0),
            micros(99.0)
        );
        (before, at) = (all, sample.at_ns);
    }
    out
}

/// What was recorded after `before`: both have the same buckets.
fn between(before: &Counts, after: &Counts) -> Counts {
    let before: BTreeMap<u64, u64> = before.pairs.iter().copied().collect();
    let own = |(value, n): &(u64, u64)| (*value, n - before.get(value).unwrap_or(&0).min(n));
    Counts { pairs: after.pairs.iter().map(own).filter(|(_, n)| *n > 0).collect(), ..Counts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::Bytes;

    #[test]
    fn a_row_of_csv_has_the_percentiles_of_its_own_second() {
        let sample = |at, operations, pairs: Vec<(u64, u64)>| Sample {
            at_ns: Nanos(at),
            operations,
            bytes: Bytes(0),
            failed: 1,
            latency: Some(Counts { pairs, min: 10_000, max: 90_000 }),
            lost: None,
            rtt_us: None,
        };
        let samples = [
            sample(1_000_000_000, 100, vec![(10_000, 100)]),
            sample(3_000_000_000, 50, vec![(10_000, 100), (90_000, 50)]),
        ];
        assert_eq!(
            csv(&samples),
            "seconds,operations_per_second,failed,p50_us,p99_us\n1.000,100.0,1,10,10\n3.000,25.0,1,90,90\n"
        );
    }
}
