//! Ratios of duets: where they contradict the solo trials, are disturbed, or are withdrawn.

use super::*;
use crate::fixture::read;
use crate::numbers::Digits;
use linerate_analysis::judge::{self, Comparisons, SortedJournal};
use linerate_analysis::stats::duet::log_ratio;
use linerate_analysis::stats::ratio::RatioEstimate;
use linerate_analysis::stopping::Made;
use linerate_contract::Role;
use linerate_model::{Measurement, Precision};

/// Eight units of a pair in which the first cell has `ratio` of the rate of the second.
fn duets(cells: [&str; 2], ratio: f64) -> Vec<Unit> {
    let side = |operations: f64| {
        serde_json::json!({"elapsed": 500_000_000, "operations": operations as u64, "bytes": 0,
        "cpu": {"server": 100_000_000}})
    };
    let unit = |unit: u32| {
        // Units differ by some per mille.
        let rate = 100_000.0 * ratio + f64::from(unit) * 100.0 - 450.0;
        serde_json::json!({"kind": "duet", "suite": "proxy", "cells": cells, "unit": unit,
            "sharing": "together", "at": 0, "outcome": "ok", "sides": [side(rate), side(100_000.0)],
            "stages": {}})
    };
    let units: Vec<_> = (1..=8).map(unit).collect();
    read(&of_pairs(&[cells]), &units)
}

/// The fixture's run with these pairs.
fn of_pairs(pairs: &[[&str; 2]]) -> Run {
    let mut run = run();
    run.suites[0].pairs = pairs.iter().copied().map(pair).collect();
    run
}

/// The strangers of a unit, mutable.
fn strangers(unit: &mut Unit) -> &mut Option<f64> {
    match &mut unit.found {
        Found::Together(both) => &mut both.strangers,
        Found::Alone(_) => panic!("it is a pair's"),
    }
}

const IPTABLES: [&str; 2] = ["nginx/iptables", "nginx/direct"];
const HAPROXY: [&str; 2] = ["nginx/haproxy-http", "nginx/direct"];
const CONTROL: [&str; 2] = ["nginx/direct", "nginx/direct"];

fn pair(cells: [&str; 2]) -> PlannedPair {
    PlannedPair { cells: cells.map(str::to_owned), no_duet: None }
}

/// The eight units some times, numbered on.
fn series(cells: [&str; 2], ratio: f64, times: u32) -> Vec<Unit> {
    let one = |number: u32| {
        let mut units = duets(cells, ratio);
        units.iter_mut().for_each(|unit| unit.number += 8 * number);
        units
    };
    (0..times).flat_map(one).collect()
}

/// The cells whose pairs need a unit in the first suite.
fn needs(run: &Run, units: &[Unit]) -> Vec<String> {
    let needs = Made { run, units }.needs(0);
    needs.into_iter().map(|need| run.suites[0].cells[need.sides.cell()].id.clone()).collect()
}

/// The fixture's run with these pairs, and the comparison of nginx/iptables.
fn compared(duets: &[Unit]) -> Comparison {
    let report = build(&of_pairs(&[IPTABLES, CONTROL]), &[&trials(), duets].concat());
    cell(&report, "nginx/iptables").vs_baseline.clone().unwrap()
}

#[test]
fn duets_and_solo_trials_that_contradict_each_other_have_no_verdict_and_both_numbers() {
    let alone = compared(&[]);
    assert_eq!(alone.duet, None);
    let agreeing = compared(&duets(IPTABLES, alone.ratio));
    assert_eq!((agreeing.n, agreeing.duet.clone().map(|duet| duet.contradicted_by)), (8, Some(None)));
    assert!(agreeing.ci95[1] - agreeing.ci95[0] < alone.ci95[1] - alone.ci95[0], "{agreeing:?} {alone:?}");
    let contradicting = compared(&duets(IPTABLES, alone.ratio * 3.0));
    assert_eq!(contradicting.verdict, Verdict::CannotTell);
    assert!((contradicting.ratio / alone.ratio / 3.0 - 1.0).abs() < 0.05, "{contradicting:?}");
    let duet = contradicting.duet.unwrap();
    let solo = duet.contradicted_by.unwrap();
    assert_eq!((solo.ratio, solo.ci95, solo.n), (alone.ratio, alone.ci95, alone.n));
    assert!(duet.cpu_ratio.is_some());
}

#[test]
fn two_cells_without_a_duet_are_compared_the_other_way_round_or_through_a_third() {
    let run = of_pairs(&[IPTABLES, HAPROXY]);
    let units = [trials(), duets(IPTABLES, 0.8), duets(HAPROXY, 0.4)].concat();
    let journal = SortedJournal::sort(&run, &units);
    let cells = judge::suite(&run, 0, &journal, None).cells;
    let comparisons = Comparisons { suite: 0, journal: &journal, judgement: None };
    let compare = |ids: [&str; 2]| {
        let [one, other] = ids.map(|id| cells.iter().find(|cell| cell.planned.id == id).unwrap());
        comparisons.compare_any(one, other, Metric::Seconds, &cells).unwrap()
    };
    let reversed = compare(["nginx/direct", "nginx/iptables"]);
    assert!((reversed.ratio - 1.25).abs() < 0.01 && reversed.n == 8, "{reversed:?}");
    assert_eq!(reversed.duet.unwrap().through, None);
    let through = compare(["nginx/iptables", "nginx/haproxy-http"]);
    assert!((through.ratio - 2.0).abs() < 0.02 && through.n == 8, "{through:?}");
    assert_eq!(through.duet.unwrap().through.as_deref(), Some("nginx/direct"));
    let solo = compare(["nginx/iptables", "apache/direct"]);
    assert_eq!(solo.duet, None);
}

#[test]
fn units_beside_other_processes_are_left_out_and_decide_nothing_where_too_few_are_left() {
    let quiet = duets(IPTABLES, 0.8);
    let busy = |from: usize| {
        let mut units = quiet.clone();
        units[from..].iter_mut().for_each(|unit| *strangers(unit) = Some(0.3));
        compared(&units)
    };
    assert_eq!((busy(8).n, busy(7).n, busy(6).n), (8, 7, 6));
    let withheld = busy(5);
    assert_eq!((withheld.n, withheld.verdict), (8, Verdict::CannotTell));
    let strangers = withheld.duet.unwrap().strangers.unwrap();
    assert!((strangers - 0.3).abs() < 1e-9, "{strangers}");
}

#[test]
fn a_baseline_that_differs_from_itself_withdraws_the_verdicts_of_duets() {
    let of_pair = duets(IPTABLES, compared(&[]).ratio);
    let with_control = |ratio: f64| compared(&[of_pair.clone(), duets(CONTROL, ratio)].concat()).verdict;
    assert_eq!(with_control(1.0), Verdict::Slower);
    assert_eq!(with_control(1.05), Verdict::CannotTell);
}

#[test]
fn a_table_of_the_baseline_alone_shows_its_control() {
    let mut run = of_pairs(&[CONTROL]);
    run.suites[0].tables.truncate(1);
    run.suites[0].tables[0].cells = vec![CONTROL[0].into()];
    let report = build(&run, &[trials(), duets(CONTROL, 1.0)].concat());
    let control = report.suites[0].tables[0].aa.as_ref().unwrap();
    assert_eq!((control.n, control.with.as_str()), (8, CONTROL[0]));
}

#[test]
fn q_values_are_over_a_table_and_never_below_p() {
    let report = build(&run(), &trials());
    for table in report.suites.iter().flat_map(|suite| &suite.tables) {
        let compared = table.cells.iter().filter_map(|cell| cell.vs_baseline.as_ref());
        assert!(compared.clone().count() > 0);
        assert!(compared.clone().all(|c| c.q >= c.p), "{:?}", table.name);
    }
}

#[test]
fn a_pair_beside_other_processes_lacks_the_quiet_units_of_a_verdict_however_many_units_it_has() {
    let mut run = of_pairs(&[IPTABLES, HAPROXY]);
    let wide = duets(HAPROXY, 1.0);
    let logs = wide.iter().filter_map(|unit| log_ratio(unit, Metric::Seconds));
    // It lacks three units beside its eight: 8 * (11 / 8 - 1).
    let half_width = RatioEstimate::from_logs(logs).unwrap().half_width().unwrap() / (11.0_f64 / 8.0).sqrt();
    run.suites[0].precision = Some(Precision { half_width, time: Nanos(u64::MAX) });
    let needed = |quiet: usize| {
        let mut busy = series(IPTABLES, 0.8, 2);
        busy[quiet..].iter_mut().for_each(|unit| *strangers(unit) = Some(0.3));
        needs(&run, &[busy, wide.clone()].concat())
    };
    assert_eq!(needed(5), [IPTABLES[0]], "it lacks one quiet unit");
    assert_eq!(needed(1), [HAPROXY[0]], "it lacks five");
}

#[test]
fn a_wide_pair_gets_its_share_of_further_units_and_a_control_no_more_than_a_fifth() {
    let mut run = of_pairs(&[IPTABLES, HAPROXY, CONTROL]);
    run.suites[0].precision = Some(Precision { half_width: 1e-6, time: Nanos(u64::MAX) });
    // A ratio of a tenth has more noise, and lacks more units.
    let needed = |times: [u32; 3]| {
        let [iptables, haproxy, control] = times;
        let control = series(CONTROL, 1.0, control);
        let all = [series(IPTABLES, 0.8, iptables), series(HAPROXY, 0.1, haproxy), control];
        needs(&run, &all.concat())
    };
    assert_eq!(needed([1, 1, 2]), [IPTABLES[0]], "the control has half of all units");
    assert_eq!(needed([2, 1, 2]), [IPTABLES[0]], "of 16 and 8 half of the mean is 6");
    assert_eq!(needed([4, 1, 2]), [HAPROXY[0]], "of 32 and 8 half of the mean is 10");
    assert_eq!(needed([4, 4, 2]), [IPTABLES[0]], "the control has a fifth");
    assert_eq!(needed([5, 4, 2]), [CONTROL[0], IPTABLES[0]], "it has less");
}

fn is_of(unit: &Unit, cell: &str) -> bool {
    unit.suite == 0 && unit.sides == alone(cell)
}

fn saturate_client(measurement: &mut Measurement) {
    measurement.cpu.insert(Role::Client, measurement.elapsed);
    measurement.cpus[0].busy = measurement.cpus[0].total;
}

#[test]
fn a_late_client_makes_no_system_slow() {
    let haproxy = |rate: Option<u64>| {
        let (mut run, mut trials) = (run(), trials());
        run.suites[0].cells.iter_mut().for_each(|cell| cell.parameters.rate = rate);
        let of_haproxy = trials.iter_mut().filter(|unit| is_of(unit, HAPROXY[0]));
        of_haproxy.filter_map(measurement).for_each(saturate_client);
        cell(&build(&run, &trials), HAPROXY[0]).vs_baseline.clone().unwrap()
    };
    let (closed, open) = (haproxy(None), haproxy(Some(10_000)));
    assert_eq!((closed.verdict, closed.client_is_limit), (Verdict::Slower, false), "{closed:?}");
    assert_eq!((open.verdict, open.client_is_limit), (Verdict::CannotTell, true), "{open:?}");
}

#[test]
fn equal_rates_have_no_verdict_where_the_client_was_the_limit() {
    let compared = |is_limit: bool| {
        let mut trials = trials();
        let of_direct: Vec<Unit> = trials.iter().filter(|unit| is_of(unit, CONTROL[0])).cloned().collect();
        for unit in trials.iter_mut().filter(|unit| is_of(unit, IPTABLES[0])) {
            let is_it = |other: &&Unit| (other.number, other.warmup) == (unit.number, unit.warmup);
            unit.found = of_direct.iter().find(is_it).map(|other| other.found.clone()).unwrap();
            measurement(unit).into_iter().filter(|_| is_limit).for_each(saturate_client);
        }
        let report = build(&run(), &trials);
        let answer = render(&report, "terminal", Style::default());
        (cell(&report, IPTABLES[0]).vs_baseline.clone().unwrap(), answer)
    };
    let (free, _) = compared(false);
    assert_eq!((free.verdict, free.client_is_limit), (Verdict::WithinMargin, false));
    let (limited, answer) = compared(true);
    assert_eq!((limited.verdict, limited.client_is_limit), (Verdict::CannotTell, true));
    let answer = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        answer.contains("Undecided: iptables against direct, because the client was the limit"),
        "{answer}"
    );
}

#[test]
fn a_row_is_the_baselines_value_by_the_ratio_in_each_format_and_a_warning_has_what_its_trials_say() {
    let mut run = of_pairs(&[IPTABLES, CONTROL]);
    run.suites[0].tables.truncate(1);
    run.suites[0].tables[0].cells.truncate(2);
    // Alone it has 12,260 operations/s, less than the 14,630 of the baseline; beside it, it is faster.
    let duets = duets(IPTABLES, 1.25);
    let of_rounds = |rounds: &[u32]| {
        let those = trials().into_iter().filter(|unit| rounds.contains(&unit.number));
        build(&run, &those.chain(duets.clone()).collect::<Vec<_>>())
    };
    let number = |value: f64| Digits::OF_VALUES.text(value, Ends::Unknown);
    // In round 3 is an outlier, which hides all else among three.
    for (rounds, end) in [(&[1, 2, 3, 4, 5, 6, 7][..], "no verdict"), (&[1, 2, 4], "rows show the pairs")] {
        let (report, rounds) = (of_rounds(rounds), rounds.len());
        let entry = &report.suites[0].tables[0].cells[1];
        let (value, alone) = (entry.value.unwrap(), entry.alone.unwrap().value);
        let (found, direct) = (entry.vs_baseline.as_ref().unwrap(), cell(&report, "nginx/direct"));
        assert!(
            alone < 13_000.0 && (value / found.ratio / direct.value.unwrap() - 1.0).abs() < 1e-12,
            "{entry:?}"
        );
        assert_eq!(cell(&report, "nginx/iptables").value, Some(value));
        let (text, shown) = (render(&report, "terminal", Style::default()), number(value));
        let row = |name: &str| text.lines().find(|line| line.starts_with(&format!(" {name} "))).unwrap();
        let bar = |name: &str| row(name).chars().filter(|c| ('█'..='▏').contains(c)).count();
        assert!(row("iptables").contains(&shown) && !text.contains(&number(alone)), "{text}");
        assert!(bar("iptables") > bar("direct"), "{text}");
        for name in ["terminal", "md", "html"] {
            let text =
                render(&report, name, Style::default()).split_whitespace().collect::<Vec<_>>().join(" ");
            let trials = format!("warning: in {rounds} trials alone the ratio to nginx/direct differs");
            let (_, warning) = text.split_once(&trials).unwrap_or_else(|| panic!("{name}: no warning"));
            let warning: String = warning.chars().take(140).collect();
            let row = format!(" from that in pairs ({end}): iptables 8");
            assert!(warning.starts_with(&row) && warning.contains(", not 125"), "{name}: {warning}");
            assert!(text.contains(&shown), "{name}");
        }
    }
}
