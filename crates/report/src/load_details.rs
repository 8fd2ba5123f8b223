//! Lines of a load of HTTP beside its rate and latencies: events within responses, and a row for each of
//! several requests.

use super::load::{percentiles, time};
use super::load_json::{EventsJson, RequestJson};
use super::numbers::{count, plain};
use linerate_contract::{Counts, Done, EventCounts, RequestCounts, Spec, WeightedRequest};
use std::fmt::Write;

/// Rows in the text; the document has all of them.
const ROWS: usize = 50;
/// Characters of a request in its row.
const LONGEST: usize = 40;

impl EventsJson {
    pub(super) fn new(events: &EventCounts, seconds: f64) -> Self {
        Self {
            count: events.count,
            per_second: if seconds > 0.0 { events.count as f64 / seconds } else { 0.0 },
            first_us: percentiles(&events.first),
            gap_us: percentiles(&events.gap),
        }
    }
}

/// `60 in 2.00 s: 30.0 per second; first 1.02 ms (p99 1.90 ms), gap 20.1 ms (p99 20.4 ms)`
pub(super) fn events(events: &EventCounts, seconds: f64) -> String {
    let EventsJson { count: all, per_second, .. } = EventsJson::new(events, seconds);
    let times = |name: &str, counts: &Counts| {
        let Some(median) = counts.percentile(50.0) else { return String::new() };
        let p99 =
            counts.supported_percentile(99.0).map_or_else(String::new, |p| format!(" (p99 {})", time(p)));
        format!("{name} {}{p99}", time(median))
    };
    let (first, gap) = (times("; first", &events.first), times(", gap", &events.gap));
    format!("{} in {} s: {} per second{first}{gap}", count(all), plain(seconds), plain(per_second))
}

/// `404: 12 responses, p50 1.02 ms, p99 3.10 ms`
pub(super) fn of_status(status: &str, times: &Counts) -> String {
    let at = |(name, percent)| {
        let value = times.supported_percentile(percent).map_or_else(|| "-".into(), time);
        format!("{name} {value}")
    };
    let [p50, p99] = [("p50", 50.0), ("p99", 99.0)].map(at);
    format!("{status}: {} responses, {p50}, {p99}", count(times.total()))
}

/// A row for each request, where there are several.
pub(super) fn rows(out: &mut String, spec: &Spec, done: &Done) {
    let rows = by_request(spec, done);
    if rows.is_empty() {
        return;
    }
    let names: Vec<String> = rows.iter().take(ROWS).map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let _ = writeln!(out, "\n  {:width$}{:>12}{:>10}{:>12}{:>12}", "", "good", "failed", "p50", "p99");
    for (row, (name, counts)) in rows.iter().zip(names.iter().zip(&done.requests)) {
        let at = |percent| counts.latency.supported_percentile(percent).map_or_else(|| "-".into(), time);
        let (good, failed) = (count(row.operations), count(row.failed));
        let [p50, p99] = [at(50.0), at(99.0)];
        let _ = writeln!(out, "  {name:width$}{good:>12}{failed:>10}{p50:>12}{p99:>12}");
    }
    if rows.len() > ROWS {
        let _ =
            writeln!(out, "  and {} more: --json FILE has all of them", count((rows.len() - ROWS) as u64));
    }
}

/// `GET /items`, cut at [`LONGEST`] characters.
fn name(row: &RequestJson<'_>) -> String {
    let whole = format!("{} {}", row.method, row.path);
    if whole.chars().count() <= LONGEST {
        return whole;
    }
    whole.chars().take(LONGEST - 3).chain("...".chars()).collect()
}

pub(super) fn by_request<'a>(spec: &'a Spec, done: &'a Done) -> Vec<RequestJson<'a>> {
    let of = |(request, row): (&'a WeightedRequest, &'a RequestCounts)| RequestJson {
        method: request.request.method.as_deref().unwrap_or("GET"),
        path: &request.path,
        operations: row.operations,
        failed: row.errors.total(),
        errors: &row.errors,
        latency_us: percentiles(&row.latency),
    };
    spec.requests.iter().zip(&done.requests).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_contract::{ErrorKind, Errors, Layer, Request, Role, Workload};

    fn counts(nanos: u64, n: u64) -> Counts {
        Counts { pairs: vec![(nanos, n)], min: nanos, max: nanos }
    }

    #[test]
    fn each_of_several_requests_has_a_row_and_percentiles_only_where_values_lie_beyond_them() {
        let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        let one = |path: &str| {
            let request = Request::default();
            WeightedRequest { path: path.into(), request, expect: None, weight: 1 }
        };
        spec.requests = vec![one("/items"), one(&format!("/{}", "x".repeat(50)))];
        let errors = Errors([(ErrorKind::Reset, 2)].into());
        let rows = vec![
            RequestCounts { operations: 1_000, errors: Errors::default(), latency: counts(60_000, 1_000) },
            RequestCounts { operations: 9, errors, latency: counts(80_000, 9) },
        ];
        let done = Done { requests: rows, ..Done::default() };
        let mut text = String::new();
        super::rows(&mut text, &spec, &done);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2], ["GET", "/items", "1,000", "0", "60.0", "µs", "60.0", "µs"], "{text}");
        assert_eq!(lines[3][2..], ["9", "2", "80.0", "µs", "-"], "{text}");
        let json = by_request(&spec, &done);
        assert_eq!((json[1].failed, json[1].errors.total()), (2, 2));
        assert!(json[0].latency_us.contains_key("p99") && !json[1].latency_us.contains_key("p90"));
        let mut none = String::new();
        super::rows(&mut none, &spec, &Done::default());
        assert_eq!(none, "");
    }

    #[test]
    fn events_have_a_rate_the_first_and_gaps() {
        let all = EventCounts { count: 60, first: counts(1_020_000, 6), gap: counts(20_100_000, 54) };
        let text = events(&all, 2.0);
        assert_eq!(text, "60 in 2.00 s: 30.0 per second; first 1.02 ms, gap 20.1 ms");
    }
}
