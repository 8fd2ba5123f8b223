//! The injected values of a case against what its client measured.

use super::{FULL, HEADERS, PathCase, REFERENCE, Traffic};
use crate::measurement::WireCounts;
use crate::selftest::{Bound, Row, Unit};
use linerate_contract::{Datagrams, Done, Nanos};

/// The tolerance of a delay: this share of it, or this time.
const DELAY_SHARE: f64 = 0.05;
const DELAY_TIME: f64 = 100_000.0;
const RATE_SHARE: f64 = 0.02;
/// Standard deviations of a count: of a thousand right runs one is outside.
const DEVIATIONS: f64 = 3.29;

/// The rows of a case. `reference` is the median echo over the means alone.
pub fn rows(case: &PathCase, done: &Done, wire: &WireCounts, reference: Option<Nanos>) -> Vec<Row> {
    let up = case.up;
    let mut rows = match (case.traffic, done.datagrams) {
        (Traffic::Echoes(count), _) => echo_rows(case, done, count, reference),
        (Traffic::Stream { .. }, Some(datagrams)) => match (up.rate, up.reorder.is_zero()) {
            (Some(rate), _) => {
                let seconds = done.end_ns.since(done.start_ns).as_secs_f64();
                let frames = datagrams.received as f64 * (FULL + HEADERS) as f64;
                let measured = if seconds > 0.0 { frames * 8.0 / seconds } else { 0.0 };
                vec![row(
                    &format!("bits per second of {rate}"),
                    rate.0 as f64,
                    measured,
                    Unit::PerSecond,
                    Bound::Share(RATE_SHARE),
                )]
            }
            (None, false) => {
                vec![Row::shown("datagrams reordered", datagrams.reordered as f64, Unit::Count)]
            }
            (None, true) => vec![lost(case, datagrams)],
        },
        (Traffic::Stream { .. }, None) => vec![row("datagrams", 1.0, 0.0, Unit::Count, Bound::Exact)],
    };
    if let Some(up) = wire.up {
        rows.push(Row::shown("packets late by over 100 µs", up.late as f64, Unit::Count));
        if up.overrun > 0 {
            rows.push(row(
                "packets lost by the relay itself",
                0.0,
                up.overrun as f64,
                Unit::Count,
                Bound::Exact,
            ));
        }
    }
    rows
}

fn echo_rows(case: &PathCase, done: &Done, echoes: u64, reference: Option<Nanos>) -> Vec<Row> {
    let mut rows = vec![row("echoes", echoes as f64, done.operations as f64, Unit::Count, Bound::Exact)];
    let Some(times) = percentiles(done) else { return rows };
    let Some(reference) = reference.filter(|_| case.name != REFERENCE) else {
        rows.extend([
            Row::shown("p50 of an echo", times(50.0), Unit::Nanos),
            Row::shown("p99 of an echo", times(99.0), Unit::Nanos),
        ]);
        return rows;
    };
    if !case.up.reorder.is_zero() {
        rows.push(not_delayed(case, done, echoes));
        return rows;
    }
    let (delay, jitter) = (case.up.delay.0 as f64, case.up.jitter.0 as f64);
    let mut judged = |what: &str, truth: f64, percentile: f64| {
        let bound = Bound::Within((DELAY_SHARE * truth).max(DELAY_TIME));
        let measured = times(percentile) - reference.0 as f64;
        rows.push(row(what, truth, measured, Unit::Nanos, bound));
    };
    judged("delay, p50", delay, 50.0);
    if jitter > 0.0 {
        // Of an even distribution.
        judged("delay, p10", delay - 0.8 * jitter, 10.0);
        judged("delay, p90", delay + 0.8 * jitter, 90.0);
    }
    rows.push(Row::shown("delay, p99", times(99.0) - reference.0 as f64, Unit::Nanos));
    rows
}

/// The median echo.
pub fn median(done: &Done) -> Option<Nanos> {
    percentiles(done).map(|times| Nanos(times(50.0) as u64))
}

fn percentiles(done: &Done) -> Option<impl Fn(f64) -> f64> {
    let counts = done.latency.as_ref().filter(|counts| counts.total() > 0)?;
    Some(|percent| counts.percentile(percent).unwrap_or(0) as f64)
}

fn lost(case: &PathCase, datagrams: Datagrams) -> Row {
    let (n, p) = (datagrams.sent as f64, case.up.loss.0);
    // Losses of a burst are not independent: Gilbert's model widens the variance by (1 + r) / (1 - r), where
    // r is what remains of a state from one packet to the next.
    let out = 1.0 / case.up.burst.unwrap_or(1.0 / (1.0 - p));
    let remains = 1.0 - out - out * p / (1.0 - p);
    let deviation = (n * p * (1.0 - p) * (1.0 + remains) / (1.0 - remains)).sqrt();
    let burst = case.up.burst.map_or_else(String::new, |burst| format!(" in bursts of {burst}"));
    let what = format!("lost of {n}, {}{burst}", case.up.loss);
    row(&what, n * p, datagrams.lost as f64, Unit::Count, Bound::Within(DEVIATIONS * deviation))
}

/// Echoes that took less than the delay.
fn not_delayed(case: &PathCase, done: &Done, echoes: u64) -> Row {
    let pairs = done.latency.iter().flat_map(|counts| &counts.pairs);
    let early: u64 = pairs.filter(|(nanos, _)| *nanos < case.up.delay.0).map(|(_, count)| count).sum();
    let (n, p) = (echoes as f64, case.up.reorder.0);
    let deviation = (n * p * (1.0 - p)).sqrt();
    let what = format!("not delayed of {n}, {}", case.up.reorder);
    row(&what, n * p, early as f64, Unit::Count, Bound::Within(DEVIATIONS * deviation))
}

fn row(what: &str, truth: f64, measured: f64, unit: Unit, bound: Bound) -> Row {
    Row { what: what.into(), truth, measured, unit, bound, tolerates: f64::INFINITY }
}

/// Whether a stream at a high rate of packets was exact: nothing lost, and at most one in a hundred late.
pub fn is_exact(done: &Done, wire: &WireCounts) -> bool {
    let nothing_lost = done.datagrams.is_some_and(|datagrams| datagrams.sent > 0 && datagrams.lost == 0);
    let in_time = wire.up.is_none_or(|up| up.overrun == 0 && up.late * 100 <= up.packets);
    let unsent = done.schedule.as_ref().map_or(0, |schedule| schedule.unsent);
    nothing_lost && in_time && unsent * 100 <= done.datagrams.map_or(0, |datagrams| datagrams.sent)
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use linerate_contract::Recorder;

    fn case(name: &str, is_stream: bool) -> PathCase {
        let all = cases(Nanos(1_000_000_000)).into_iter();
        let is_it = |case: &PathCase| {
            case.name == name && matches!(case.traffic, Traffic::Stream { .. }) == is_stream
        };
        all.into_iter().find(is_it).unwrap()
    }

    fn is_good(case: &PathCase, done: &Done) -> bool {
        let rows = rows(case, done, &WireCounts::default(), Some(Nanos(100_000)));
        rows.iter().all(Row::is_within_bound)
    }

    #[test]
    fn a_count_of_losses_is_judged_by_its_own_scatter() {
        let of = |lost| Done {
            datagrams: Some(Datagrams {
                sent: 10_000,
                received: 10_000 - lost,
                lost,
                ..Datagrams::default()
            }),
            ..Done::default()
        };
        // 1 % of 10,000: a standard deviation is 9.95.
        let case = case("loss", true);
        assert!(is_good(&case, &of(100)) && is_good(&case, &of(132)) && !is_good(&case, &of(133)));
    }

    #[test]
    fn a_delay_is_the_time_beyond_the_reference_and_early_echoes_are_counted() {
        let echoes = |times: &[(u64, u64)]| {
            let mut latency = Recorder::default();
            times.iter().for_each(|(nanos, n)| (0..*n).for_each(|_| latency.record(*nanos)));
            let operations = times.iter().map(|(_, n)| n).sum();
            Done { operations, latency: Some(latency.counts()), ..Done::default() }
        };
        let delay = case("delay", false);
        assert!(is_good(&delay, &echoes(&[(1_150_000, 500)])));
        assert!(
            !is_good(&delay, &echoes(&[(1_250_000, 500)])) && !is_good(&delay, &echoes(&[(1_100_000, 499)]))
        );
        let reordering = case("reordering", false);
        assert!(is_good(&reordering, &echoes(&[(100_000, 50), (5_100_000, 450)])));
        assert!(!is_good(&reordering, &echoes(&[(100_000, 5), (5_100_000, 495)])));
    }
}
