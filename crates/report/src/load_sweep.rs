//! Output of `linerate load --sweep`: latency against the rate.

use super::Style;
use super::load::{LoadResult, Words, loop_kind, operations_json, time};
use super::load_json::{HighestJson, LoadJson, SweepJson, SweepStepJson};
use super::numbers::{count, plain};
use super::terminal::plain_table;
use linerate_analysis::stats::highest_rate::{HighestRate, LatencyBound};
use linerate_contract::{Arrival, Done, Spec};
use std::fmt::Write;

/// An open loop at a share of the capacity.
#[derive(Debug)]
pub struct Step {
    pub share: f64,
    pub spec: Spec,
    pub done: Done,
}

impl Step {
    /// At each of [`PERCENTILES`], in nanoseconds; `None` without an operation.
    fn latencies(&self) -> [Option<u64>; PERCENTILES.len()] {
        PERCENTILES.map(|(_, percent)| self.done.latency.as_ref()?.supported_percentile(percent))
    }
}

/// The curve, and the highest rate within a bound where one was searched.
#[derive(Debug)]
pub struct SweepResult<'a> {
    pub target: &'a str,
    pub words: Words,
    /// Operations per second of a closed loop with the same connections.
    pub capacity: f64,
    pub steps: &'a [Step],
    pub highest: Option<(LatencyBound, HighestRate)>,
}

impl<'a> SweepResult<'a> {
    fn load(&self, step: &'a Step) -> LoadResult<'a> {
        let Step { spec, done, .. } = step;
        LoadResult { target: self.target, words: self.words, spec, done, samples: &[] }
    }
}

const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// A row for each rate.
pub fn text(result: &SweepResult<'_>, style: Style) -> String {
    let mut out = String::new();
    let title = console::style(result.target).bold().force_styling(style.colour);
    let operation = result.words.operation;
    let capacity = count(result.capacity.round() as u64);
    let _ = writeln!(out, "{title}\nclosed loop: {capacity} {operation}s/s");
    if let Some(step) = result.steps.first() {
        let kind = loop_kind(&Spec { rate: None, ..step.spec.clone() });
        let arrivals =
            if step.spec.arrival == Arrival::Poisson { "open loops, Poisson arrivals" } else { "open loops" };
        let kind = kind.replacen("closed loop", arrivals, 1);
        let _ = writeln!(out, "{kind}, {} connections\n", step.spec.connections);
    }
    let mut table = plain_table(style);
    let head = ["share", "offered/s", "achieved/s"].into_iter().chain(PERCENTILES.map(|(name, _)| name));
    table.set_header(head.chain(["client CPU", "failed"]));
    for step in result.steps {
        let load = result.load(step);
        let first = [
            format!("{:.0} %", step.share * 100.0),
            count(step.spec.rate.unwrap_or(0.0).round() as u64),
            count(load.per_second(step.done.operations as f64).round() as u64),
        ];
        let last = [
            load.cpu_us_per_request().map_or_else(|| "-".into(), |us| format!("{} µs", plain(us))),
            count(step.done.errors.total()),
        ];
        let latencies = step.latencies().map(|found| found.map_or_else(|| "-".into(), time));
        table.add_row(first.into_iter().chain(latencies).chain(last));
    }
    let _ = writeln!(out, "{}", table.trim_fmt());
    out.push_str("latencies count from the time at which a request was due\n");
    if let Some((bound, found)) = &result.highest {
        let _ = writeln!(out, "\n{}", highest(bound, found, result.capacity));
    }
    out
}

/// Such as `highest rate with p99 at most 2.00 ms: 12,300/s (to 12,800/s), 61 % of the closed loop's`.
fn highest(bound: &LatencyBound, found: &HighestRate, capacity: f64) -> String {
    let rate = |rate: f64| format!("{}/s", count(rate.round() as u64));
    let what = format!("highest rate with p{} at most {}", bound.percent, time(bound.most.0));
    match (found.passes, found.fails, found.undecided) {
        (Some(passes), Some(fails), _) if found.is_decided() => {
            let share = plain(passes / capacity * 100.0);
            format!("{what}: {} (not {}), {share} % of the closed loop's", rate(passes), rate(fails))
        }
        (passes, fails, Some((at, [low, high]))) => {
            let above = passes.map_or_else(String::new, |passes| format!(" above {}", rate(passes)));
            let below = fails.map_or_else(String::new, |fails| format!(" below {}", rate(fails)));
            let [low, high] = [low, high].map(|us| time((us * 1e3) as u64));
            let interval = format!("at {} p{} is {low} to {high}", rate(at), bound.percent);
            format!("{what}: not decided{above}{below}; {interval} (95 %): try a longer -d")
        }
        (Some(passes), None, None) => {
            format!("{what}: at least {}, the highest that was tried", rate(passes))
        }
        (None, Some(fails), None) => format!("{what}: below {}, the lowest that was tried", rate(fails)),
        _ => format!("{what}: not decided"),
    }
}

/// A line for each rate.
pub fn csv(result: &SweepResult<'_>) -> String {
    let mut out = String::from(
        "share,offered_per_second,achieved_per_second,p50_us,p90_us,p99_us,p999_us,client_cpu_us,failed\n",
    );
    for step in result.steps {
        let load = result.load(step);
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let [p50, p90, p99, p999] = step.latencies().map(|found| found.map(|ns| ns as f64 / 1e3));
        let values = [
            Some(step.share),
            step.spec.rate,
            Some(load.per_second(step.done.operations as f64)),
            p50,
            p90,
            p99,
            p999,
            load.cpu_us_per_request(),
            Some(step.done.errors.total() as f64),
        ];
        let _ = writeln!(out, "{}", values.map(number).join(","));
    }
    out
}

/// `linerate.load.sweep/1`.
pub fn json(result: &SweepResult<'_>) -> String {
    let step = |step| {
        let load = result.load(step);
        SweepStepJson { share: step.share, load: operations_json(&load) }
    };
    let highest = result.highest.map(|(bound, found)| HighestJson {
        percentile: bound.percent,
        most_us: bound.most.as_micros_f64(),
        is_decided: found.is_decided(),
        passes_per_second: found.passes,
        fails_per_second: found.fails,
    });
    LoadJson::Sweep(SweepJson {
        schema: "linerate.load.sweep/1",
        url: result.target,
        closed_loop_per_second: result.capacity,
        steps: result.steps.iter().map(step).collect(),
        highest,
    })
    .text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_a_pair_of_rates_or_not_decided() {
        let bound = LatencyBound { percent: 99.0, most: linerate_contract::Nanos(2_000_000) };
        let of =
            |passes, fails, undecided| highest(&bound, &HighestRate { passes, fails, undecided }, 10_000.0);
        let decided = of(Some(8_000.0), Some(8_300.0), None);
        assert_eq!(
            decided,
            "highest rate with p99 at most 2.00 ms: 8,000/s (not 8,300/s), 80.0 % of the closed loop's"
        );
        let open = of(Some(8_000.0), None, Some((9_000.0, [1_500.0, 2_500.0])));
        assert!(open.contains("not decided above 8,000/s; at 9,000/s p99 is 1.50 ms to 2.50 ms"), "{open}");
        assert!(of(Some(12_000.0), None, None).contains("at least 12,000/s"));
        assert!(of(None, Some(1_000.0), None).contains("below 1,000/s"));
    }
}
