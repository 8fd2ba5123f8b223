//! The measure that decides about two builds: the CPU time of the subject where a role is saturated, else the
//! rate.

use super::*;
use crate::judge::{Comparison, SoloRatio};
use crate::stats::verdict::Verdict;
use linerate_contract::{Counts, Nanos};
use linerate_model::journal::read_journal;
use linerate_model::{Better, Histogram, SecondLoadRate, Sharing, Together};
use serde_json::json;

const CELLS: [&str; 2] = ["proxy@head", "proxy@base"];

/// Rate and CPU time per operation of head over base in each unit, and the CPU shares of client and relay in
/// the trials alone.
fn judged(rates: &[f64], cpu: f64, shares: [f64; 2]) -> JudgedPair {
    judged_with(rates, cpu, shares, Vec::new())
}

/// Two judged builds with units of a second load.
fn judged_with(rates: &[f64], cpu: f64, [client, relay]: [f64; 2], second: Vec<Unit>) -> JudgedPair {
    let cell = |id: &str, build: &str| {
        json!({
            "id": id, "axes": {"build": build}, "layer": "http", "workload": "rr",
            "path": {"device": "veth", "links": [{"mtu": 1500}]}, "parameters": {"operations": 1000},
            "systems": [
                {"role": "client", "name": "native", "version": null},
                {"role": "relay", "name": "proxy", "version": null, "build": build},
            ],
            "absent": null,
        })
    };
    let run = json!({
        "schema": "linerate.run/2", "id": "r", "command": "linerate gate s", "seed": 1, "rounds": 1,
        "quick": false, "budget": 12_000_000_000_u64, "started": "2026-11-21T20:53:14Z", "linerate": "0.1.0",
        "host": {"kernel": "", "cpu_model": "", "cpus": 2, "memory_bytes": 0, "privileges": "", "facts": {}},
        "comparison": {
            "kind": "gate", "subjects": [{"system": {"arm": "a"}}, {"system": {"arm": "b"}}], "margin": 0.01,
        },
        "suites": [{
            "name": "s", "question": "", "rounds": 1, "warmup_rounds": 0, "aa": null,
            "cells": [cell(CELLS[0], "head"), cell(CELLS[1], "base")],
            "tables": [{
                "name": "t", "title": "t", "metric": "operations-per-second", "rows": "path",
                "columns": "build", "row_values": [], "column_values": [], "cells": CELLS,
                "baseline": {"build": "base"}, "limit": null, "notes": [],
            }],
            "pairs": [{"cells": CELLS, "no_duet": null}],
        }],
    });
    let nanos = |share: f64| (share * 1e9) as u64;
    let window = |cpu: u32, role: &str, busy: f64| {
        json!({"cpu": cpu, "roles": [role], "total": nanos(1.0), "busy": nanos(busy), "interrupts": 0,
               "steal": 0})
    };
    let trial = |cell: &str| {
        json!({
            "kind": "trial", "suite": "s", "cell": cell, "round": 1, "at": 0, "stages": {}, "outcome": "ok",
            "measurement": {
                "elapsed": nanos(1.0), "operations": 1000, "bytes": 0,
                "cpu": {"client": nanos(client), "relay": nanos(relay)},
                "cpus": [window(0, "client", client), window(1, "relay", relay)],
            },
        })
    };
    let unit = |(unit, rate): (usize, &f64)| {
        let side = |operations: f64, relay: f64| {
            json!({"elapsed": nanos(1.0), "operations": operations as u64, "bytes": 0,
                   "cpu": {"client": nanos(0.1 + 0.01 * (unit % 7) as f64), "relay": relay as u64}})
        };
        // A per mille of noise.
        let own = cpu * (1.0 + 0.001 * ((unit % 3) as f64 - 1.0));
        let done = 100_000.0 * rate;
        json!({
            "kind": "duet", "suite": "s", "cells": CELLS, "unit": unit + 1, "sharing": "together", "at": 0,
            "outcome": "ok",
            "sides": [side(done, done * 5_000.0 * own), side(100_000.0, 100_000.0 * 5_000.0)],
            "stages": {"measure": nanos(1.0)},
        })
    };
    let run: Run = serde_json::from_value(run).expect("it follows the model");
    let lines = CELLS.map(trial).into_iter().chain(rates.iter().enumerate().map(unit));
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    let journal = read_journal(&run, "journal", lines.join("\n").as_bytes()).unwrap();
    assert!(journal.warnings.is_empty() && journal.unknown == 0, "{:?}", journal.warnings);
    judge(&run, &[journal.units, second].concat()).expect("it compares builds").pairs.remove(0)
}

/// Too noisy to be within a margin of 1 %.
const NOISY: [f64; 12] = [1.03, 0.98, 1.01, 0.97, 1.02, 0.99, 1.03, 0.97, 1.01, 1.0, 0.98, 1.02];
const EVEN: [f64; 12] = [1.001, 0.999, 1.0, 1.001, 0.998, 1.002, 1.0, 0.999, 1.001, 1.0, 0.999, 1.001];
const SLOW: [f64; 12] = [0.951, 0.949, 0.95, 0.951, 0.948, 0.952, 0.95, 0.949, 0.951, 0.95, 0.949, 0.951];

#[test]
fn an_open_rate_leaves_a_pair_open_unless_a_role_was_saturated() {
    let idle = judged(&NOISY, 1.0, [0.5, 0.5]);
    assert_eq!((idle.is_cpu_first, idle.verdict(), idle.is_decided()), (false, Verdict::CannotTell, false));
    let busy = judged(&NOISY, 1.0, [0.5, 0.99]);
    assert_eq!((busy.is_cpu_first, busy.is_decided()), (true, true));
    assert_eq!((rate(&busy).verdict, busy.verdict()), (Verdict::CannotTell, Verdict::WithinMargin));
}

#[test]
fn the_cpu_time_is_that_of_the_subject_alone() {
    // The client's share of the CPU time is different in each unit, and is in neither reading.
    let more = judged(&EVEN, 1.05, [0.5, 0.99]);
    let cpu = more.findings.cpu().unwrap();
    assert!((cpu.ratio - 1.05).abs() < 1e-3, "{cpu:?}");
    let [low, high] = cpu.ci95.unwrap();
    assert!(high - low < 0.004, "{cpu:?}");
}

#[test]
fn a_rate_that_hints_at_a_slowdown_is_not_hidden_by_an_equal_cpu_time() {
    let waits = judged(&SLOW, 1.0, [0.5, 0.99]);
    assert_ne!(waits.verdict(), Verdict::WithinMargin);
    assert!(!waits.is_by_cpu && !waits.is_decided());
}

#[test]
fn an_undecided_reading_has_an_interval_that_contains_no_change() {
    let mut undecided = 0;
    for seed in 0..60_u32 {
        let noise = |unit: u32| f64::from((seed * 7_919 + unit * 104_729) % 101) / 101.0 - 0.5;
        let rates: Vec<f64> = (0..14).map(|unit| 0.985 + 0.06 * noise(unit)).collect();
        let pair = judged(&rates, 1.0, [0.5, 0.5]);
        for found in pair.findings.0.iter().filter(|found| found.second_series.is_none()) {
            let [low, high] = found.ci95.unwrap_or([1.0; 2]);
            let contains_1 = low <= 1.0 && high >= 1.0;
            assert!(contains_1 || found.verdict != Verdict::CannotTell, "{seed}: {found:?}");
            undecided += usize::from(found.verdict == Verdict::CannotTell);
        }
    }
    assert!(undecided > 10, "{undecided}");
}

#[test]
fn equal_rates_show_nothing_where_the_client_was_the_limit() {
    let limited = judged(&EVEN, 1.0, [0.99, 0.5]);
    assert_eq!((limited.client_is_limit, rate(&limited).verdict), (true, Verdict::CannotTell));
    assert_eq!(limited.verdict(), Verdict::WithinMargin, "by the CPU time of the relay");
    let more = judged(&EVEN, 1.05, [0.99, 0.5]);
    assert_ne!(more.verdict(), Verdict::WithinMargin);
    let free = judged(&EVEN, 1.0, [0.5, 0.5]);
    assert_eq!((free.client_is_limit, rate(&free).verdict), (false, Verdict::WithinMargin));
}

fn rate(pair: &JudgedPair) -> &Finding {
    pair.findings.rate().unwrap()
}

fn finding(measure: Measure, verdict: Verdict, decides: bool) -> Finding {
    Finding {
        measure,
        values: None,
        ratio: 1.0,
        ci95: None,
        range: None,
        difference: None,
        verdict,
        second_series: None,
        decides,
        is_decided: verdict != Verdict::CannotTell,
    }
}

/// Open loops with these verdicts on p50, p90 and the CPU time.
fn paced([p50, p90, cpu]: [Verdict; 3], has_to_decide_p90: bool) -> JudgedPair {
    JudgedPair {
        findings: Findings(vec![
            finding(Measure::P50, p50, true),
            finding(Measure::P90, p90, has_to_decide_p90),
            finding(Measure::Cpu, cpu, false),
        ]),
        is_paced: true,
        ..judged(&EVEN, 1.0, [0.5, 0.5])
    }
}

/// Units of an open loop of 5,000 operations per second, in which head has these ratios of the latency of
/// base, and of its CPU time.
fn second_load(latencies: &[f64], cpu: f64) -> Vec<Unit> {
    let unit = |(unit, ratio): (usize, &f64)| {
        let side = |ratio: f64, cpu: f64| SideWindow {
            elapsed: Nanos(400_000_000),
            operations: 2_000,
            cpu: [(Role::Relay, Nanos((2_000.0 * 30_000.0 * cpu) as u64))].into(),
            latency: Some(Histogram::from(Counts {
                pairs: vec![((100_000.0 * ratio) as u64, 1_950), ((900_000.0 * ratio) as u64, 50)],
                min: 1,
                max: 1_000_000,
            })),
            ..SideWindow::default()
        };
        let own = 1.0 + 0.001 * ((unit % 3) as f64 - 1.0);
        let sides = [side(*ratio, cpu * own), side(1.0, 1.0)];
        let second_load = Some(SecondLoadRate { per_second: 5_000, of_capacity: Some([0.5, 1e4]) });
        let windows = vec![sides.clone(), sides.clone()];
        let together =
            Together { second_load, sides: Some(sides), windows, ..Together::new(Sharing::Alternating) };
        Unit { number: unit as u32 + 1, ..Unit::new(Sides::AtRate([0, 1]), together.into()) }
    };
    latencies.iter().enumerate().map(unit).collect()
}

#[test]
fn a_second_load_is_judged_by_itself_and_decides_nothing() {
    let alone = judged(&EVEN, 1.0, [0.5, 1.0]);
    let later: Vec<f64> = EVEN.iter().map(|ratio| ratio * 1.3).collect();
    let both = judged_with(&EVEN, 1.0, [0.5, 1.0], second_load(&later, 1.2));
    assert_eq!((both.verdict(), both.is_decided()), (alone.verdict(), alone.is_decided()));
    assert_eq!((&both.findings, both.tried), (&alone.findings, 12));
    let second = both.second_load.unwrap();
    assert_eq!((second.load.per_second, second.units, second.load.keeps_up), (5_000, 12, [true; 2]));
    // It is half of the baseline's capacity, and as much more of the other's as that is slower.
    let ratio = both.findings.rate().unwrap().ratio;
    assert_eq!(second.load.of_capacities, Some([0.5, 0.5 / ratio]));
    let by = |measure| second.findings.by(measure).unwrap();
    for (measure, ratio, base) in
        [(Measure::P50, 1.3, 100.0), (Measure::P99, 1.3, 900.0), (Measure::Cpu, 1.2, 30.0)]
    {
        let found = by(measure);
        let value = found.values.unwrap()[0];
        assert_eq!(found.verdict, Verdict::Slower, "{found:?}");
        assert!((found.ratio - ratio).abs() < 0.01 && (value / base - 1.0).abs() < 0.01, "{found:?}");
    }
}

#[test]
fn a_large_difference_under_the_second_load_is_found_in_three_units() {
    let second = judged_with(&EVEN[..3], 1.0, [0.5, 1.0], second_load(&[1.3, 1.31, 1.29], 1.0));
    let p50 = *second.second_load.unwrap().findings.by(Measure::P50).unwrap();
    assert_eq!(p50.verdict, Verdict::Slower);
    assert!(p50.ci95.unwrap()[0] > 1.05, "{p50:?}");
}

#[test]
fn at_a_rate_p50_decides_and_the_others_count_where_they_are_certain() {
    use Verdict::{CannotTell, Slower, WithinMargin};
    for (verdicts, has_to_decide_p90, verdict, is_decided) in [
        ([WithinMargin, CannotTell, CannotTell], false, WithinMargin, true),
        ([WithinMargin, CannotTell, CannotTell], true, CannotTell, false),
        ([WithinMargin, WithinMargin, CannotTell], true, WithinMargin, true),
        ([CannotTell, WithinMargin, WithinMargin], false, CannotTell, false),
        ([WithinMargin, Slower, WithinMargin], false, Slower, true),
        ([WithinMargin, WithinMargin, Slower], false, Slower, true),
        ([CannotTell, WithinMargin, Slower], false, Slower, false),
    ] {
        let pair = paced(verdicts, has_to_decide_p90);
        let found = (pair.verdict(), pair.is_decided());
        assert_eq!(found, (verdict, is_decided), "{verdicts:?} {has_to_decide_p90}");
    }
    let mut suspect = paced([WithinMargin, CannotTell, WithinMargin], false);
    suspect.findings.0[1].second_series = Some(Confirmation::Pending);
    assert_eq!(
        (suspect.verdict(), suspect.is_decided()),
        (WithinMargin, false),
        "it has the time that is left"
    );
}

/// The comparison of a table before builds are judged: the base did 1,000 a second alone.
fn fixed(doubted_by: Option<SoloRatio>) -> Comparison {
    let fixed = json!({
        "with": CELLS[1], "with_value": 1000.0, "ratio": 1.2, "ci95": [1.1, 1.3], "n": 3, "verdict": "faster",
        "duet": {"sharing": "together", "cpu_ratio": null, "cpu_ci95": null, "doubted_by": doubted_by},
    });
    serde_json::from_value(fixed).expect("it follows the model")
}

#[test]
fn a_row_of_builds_is_the_bases_value_by_the_ratio_that_was_judged() {
    let pair = judged(&SLOW, 1.05, [0.5, 0.99]);
    let row = pair.in_table(fixed(None)).unwrap();
    let value = row.value(Better::Higher).unwrap();
    assert!((value.value - 1000.0 * rate(&pair).ratio).abs() < 1e-9, "{value:?}");
    // The relay alone, which is the subject: 0.99 s of a second for 1,000 operations.
    assert_eq!(row.duet.as_ref().unwrap().cpu_of, [Role::Relay]);
    let cpu = row.cpu_value().unwrap();
    assert!((cpu.value / 990.0 - 1.05).abs() < 1e-3, "{cpu:?}");
}

#[test]
fn latencies_are_no_rows_of_a_table_of_rates() {
    let row = paced([Verdict::WithinMargin; 3], false).in_table(fixed(None)).unwrap();
    assert_eq!(row.value(Better::Higher), None);
}

#[test]
fn trials_alone_that_deny_the_units_of_builds_are_a_warning_and_change_no_verdict() {
    let alone = SoloRatio { ratio: 1.1, ci95: [1.05, 1.15], n: 3 };
    let pair = judged(&SLOW, 1.0, [0.5, 0.5]);
    let row = pair.in_table(fixed(Some(alone))).unwrap();
    assert_eq!((row.denied_by(), row.is_in_doubt()), (Some(alone), false));
    assert_eq!(row.verdict, rate(&pair).verdict);
    // A trial of each with the same rate, where the units differ by 5 % with a scatter of a per mille.
    let one = pair.alone.unwrap();
    assert_eq!((one.n, one.ratio), (1, 1.0));
    assert_eq!(pair.in_table(fixed(None)).unwrap().denied_by(), Some(one));
    let agreeing = SoloRatio { ratio: 0.96, ci95: [0.9, 1.02], n: 3 };
    assert_eq!(pair.in_table(fixed(Some(agreeing))).unwrap().denied_by(), None);
}

#[test]
fn a_latency_of_head_is_that_of_base_by_the_ratio_and_the_difference_is_theirs() {
    let slower = finding(Measure::P50, Verdict::Slower, true);
    let slower = Finding { ratio: 1.25, ci95: Some([1.0 / 0.85, 1.0 / 0.75]), ..slower };
    let latency = slower.with_base(100.0, |ratio| ratio);
    let difference = latency.difference.unwrap();
    assert_eq!((latency.values, difference.us), (Some([100.0, 125.0]), 25.0));
    assert!((difference.ci95[1] - (100.0 / 0.75 - 100.0)).abs() < 1e-9);
}
