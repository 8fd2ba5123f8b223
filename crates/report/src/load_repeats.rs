//! Output of `linerate load --repeat`: a line for each run, and medians with intervals.

use super::Style;
use super::load::{self, LoadResult, loop_kind, operations_json, time};
use super::load_json::{LoadJson, MedianJson, RepeatsJson};
use super::numbers::{count, plain};
use linerate_analysis::stats::estimate::{Estimate, FEWEST_ROUNDS};
use linerate_contract::Counts;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A number of each run: its name as text and in JSON, its value, and how it is printed.
struct Figure {
    name: &'static str,
    key: &'static str,
    value: fn(&LoadResult<'_>) -> Option<f64>,
    text: fn(f64) -> String,
}

const FIGURES: [Figure; 6] = [
    Figure {
        name: "per second",
        key: "requests_per_second",
        value: |run| Some(run.per_second(run.done.operations as f64)),
        text: |rate| count(rate.round() as u64),
    },
    Figure {
        name: "client CPU",
        key: "client_cpu_us_per_request",
        value: |run| run.cpu_us_per_request(),
        text: |us| format!("{} µs", plain(us)),
    },
    Figure { name: "50 %", key: "p50_us", value: |run| micros(run, 50.0), text: of_micros },
    Figure { name: "90 %", key: "p90_us", value: |run| micros(run, 90.0), text: of_micros },
    Figure { name: "95 %", key: "p95_us", value: |run| micros(run, 95.0), text: of_micros },
    Figure { name: "99 %", key: "p99_us", value: |run| micros(run, 99.0), text: of_micros },
];

/// The runs as text. An interval needs six of them.
pub fn text(runs: &[LoadResult<'_>], style: Style) -> String {
    let mut out = String::new();
    let Some(first) = runs.first() else { return out };
    let title = console::style(first.target).bold().force_styling(style.colour);
    let _ = writeln!(out, "{title}\n{} runs of {}\n", runs.len(), loop_kind(first.spec));
    let mut cells: Vec<String> = FIGURES.iter().map(|figure| figure.name.to_owned()).collect();
    cells.push("failed".into());
    row(&mut out, "run", &cells);
    for (index, run) in runs.iter().enumerate() {
        let value = |figure: &Figure| (figure.value)(run).map_or_else(|| "-".into(), figure.text);
        let mut cells: Vec<String> = FIGURES.iter().map(value).collect();
        cells.push(count(run.done.errors.total()));
        row(&mut out, &(index + 1).to_string(), &cells);
    }
    let n = runs.len() as u32;
    let of_what = if n < FEWEST_ROUNDS {
        format!("median (lowest to highest: an interval needs {FEWEST_ROUNDS} runs)")
    } else {
        "median (95 % interval)".to_owned()
    };
    let _ = writeln!(out, "\n  {of_what}, n={n}");
    for figure in &FIGURES {
        let Some(Estimate { median, interval: [low, high], .. }) = estimate(figure, runs) else { continue };
        let [median, low, high] = [median, low, high].map(figure.text);
        let _ = writeln!(out, "  {:<12}{median} ({low} to {high})", figure.name);
    }
    out
}

fn row(out: &mut String, name: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| format!("{cell:>12}")).collect();
    let _ = writeln!(out, "  {name:>5}{cells}");
}

/// `linerate.load.repeats/1`.
pub fn json(runs: &[LoadResult<'_>]) -> String {
    let median = |figure: &Figure| {
        let found = estimate(figure, runs)?;
        let ci95 = found.is_sure().then_some(found.interval);
        Some((figure.key, MedianJson { median: found.median, ci95, n: found.n }))
    };
    LoadJson::Repeats(RepeatsJson {
        schema: "linerate.load.repeats/1",
        medians: FIGURES.iter().filter_map(median).collect::<BTreeMap<_, _>>(),
        runs: runs.iter().map(operations_json).collect(),
    })
    .text()
}

fn estimate(figure: &Figure, runs: &[LoadResult<'_>]) -> Option<Estimate> {
    Estimate::from_values(runs.iter().filter_map(figure.value))
}

fn micros(run: &LoadResult<'_>, percent: f64) -> Option<f64> {
    let latency: &Counts = run.done.latency.as_ref()?;
    latency.supported_percentile(percent).map(load::micros)
}

fn of_micros(micros: f64) -> String {
    time((micros * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::load::Words;
    use super::*;
    use linerate_contract::{Done, Layer, Nanos, Role, Spec, Workload};

    fn printed(runs: u64) -> (String, serde_json::Value) {
        let spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
        let done = |run| Done {
            operations: 1_000 + run,
            end_ns: Nanos(1_000_000_000),
            latency: Some(Counts { pairs: vec![(50_000 + run * 1_000, 1_000)], min: 0, max: 60_000 }),
            ..Done::default()
        };
        let done: Vec<Done> = (1..=runs).map(done).collect();
        let words = Words { operation: "request", payload: "bodies" };
        let result = |done| LoadResult { target: "http://a/", words, spec: &spec, done, samples: &[] };
        let runs: Vec<LoadResult<'_>> = done.iter().map(result).collect();
        (text(&runs, Style::default()), serde_json::from_str(&json(&runs)).unwrap())
    }

    #[test]
    fn repeats_have_a_row_each_and_medians_with_intervals() {
        let (text, json) = printed(7);
        assert!(text.contains("median (95 % interval), n=7"), "{text}");
        assert!(text.contains("50 %        54.0 µs (51.0 µs to 57.0 µs)"), "{text}");
        assert_eq!(json["medians"]["requests_per_second"]["median"], 1_004.0);
        assert_eq!(json["runs"].as_array().unwrap().len(), 7);
    }

    #[test]
    fn a_few_repeats_have_no_interval() {
        let (text, json) = printed(3);
        assert!(text.contains("lowest to highest: an interval needs 6 runs), n=3"), "{text}");
        assert!(json["medians"]["p50_us"]["ci95"].is_null());
    }
}
