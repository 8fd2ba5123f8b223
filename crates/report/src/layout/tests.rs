//! Groups, tiers and answers of the fixture's run.

use super::{GroupAnswer, Part, Phrase, Sentence, answers, facts_of, groups, groups_by_what_is_known};
use crate::build;
use crate::fixture::{journal, run, trials};
use crate::model::{
    AgainstTruth, Comparison, DatagramReport, DuetReport, LOAD_AXIS, Quantity, Report, SoloRatio, TableCell,
    TableUnit,
};
use linerate_analysis::judge::Flag;
use linerate_analysis::stats::accuracy::Accuracy;
use linerate_analysis::stats::verdict::Verdict;
use linerate_contract::Role;
use linerate_model::{Metric, PlannedSystem};

fn report() -> Report {
    build(&run(), &journal(&run(), &trials()))
}

fn text(sentence: &Sentence) -> String {
    let part = |phrase: &Phrase| match phrase {
        Phrase::Plain(text) | Phrase::Name(text) => text.clone(),
    };
    sentence.iter().map(part).collect()
}

/// All sentences of the answer for a group of a table.
fn all(report: &Report, suite: usize, table: usize, group: usize) -> Vec<String> {
    let suite = &report.suites[suite];
    let GroupAnswer { lead, rest, .. } = answers(suite, &suite.tables[table]).swap_remove(group);
    std::iter::once(&lead).chain(&rest).map(text).collect()
}

#[test]
fn cells_with_the_same_baseline_are_a_group_with_short_names() {
    let report = report();
    let of = |suite: usize| groups(&report.suites[suite], &report.suites[suite].tables[0]);
    let proxy = of(0);
    assert_eq!(
        proxy.iter().map(|group| group.label.as_str()).collect::<Vec<_>>(),
        ["server nginx", "server apache"]
    );
    let names: Vec<(&str, Part)> =
        proxy[0].members.iter().map(|member| (member.label.as_str(), member.part)).collect();
    // Sorted, with what is no choice below the rule.
    assert_eq!(names[..2], [("iptables", Part::Competitor), ("haproxy-http", Part::Competitor)]);
    assert_eq!(names[4..], [("direct", Part::Baseline), ("limit", Part::Limit)]);
    assert_eq!(proxy[0].choices(), 4);
    let transport: Vec<String> = of(1).into_iter().map(|group| group.label).collect();
    assert_eq!(transport[0], "direction client-reads, size 64");
    assert_eq!(transport.len(), 4);
}

#[test]
fn tiers_are_separated_by_intervals_that_do_not_overlap() {
    let mut report = report();
    let table = &mut report.suites[0].tables[0];
    let interval = |comparison: &mut Comparison, low: f64, high: f64| {
        (comparison.ci95, comparison.ratio) = ([low, high], f64::midpoint(low, high));
    };
    for cell in &mut table.cells {
        let Some(comparison) = &mut cell.vs_baseline else { continue };
        match cell.id.as_str() {
            "nginx/iptables" => interval(comparison, 0.97, 1.05),
            "nginx/haproxy-http" => interval(comparison, 0.5, 0.6),
            _ => interval(comparison, 0.55, 0.57),
        }
    }
    let suite = &report.suites[0];
    let group = &groups(suite, &suite.tables[0])[0];
    let tier = |name: &str| group.members.iter().find(|member| member.label == name).unwrap().tier;
    let tiers = ["direct", "iptables", "haproxy-http", "sslh-select", "sslh-ev", "limit"].map(tier);
    assert_eq!(tiers, [None, Some(1), Some(2), Some(2), None, None]);
    let costs = "iptables costs nothing, sslh-select 44 % of the speed of direct, haproxy-http 45 %.";
    assert_eq!(all(&report, 0, 0, 0)[0], costs);
}

#[test]
fn an_interval_without_a_verdict_begins_no_tier() {
    let mut report = report();
    let table = &mut report.suites[0].tables[0];
    for cell in &mut table.cells {
        let Some(comparison) = &mut cell.vs_baseline else { continue };
        (comparison.ci95, comparison.ratio, comparison.verdict) = match cell.id.as_str() {
            "nginx/iptables" => ([0.9, 1.2], 1.05, Verdict::CannotTell),
            "nginx/haproxy-http" => ([0.94, 0.96], 0.95, Verdict::Slower),
            _ => ([0.97, 1.01], 0.99, Verdict::CannotTell),
        };
    }
    let suite = &report.suites[0];
    let group = &groups(suite, &suite.tables[0])[0];
    let tier = |name: &str| group.members.iter().find(|member| member.label == name).unwrap().tier;
    assert_eq!(["direct", "sslh-select", "haproxy-http"].map(tier), [None, None, Some(1)]);
    let answer = all(&report, 0, 0, 0);
    assert_eq!(answer[0], "haproxy-http costs 5 % of the speed of direct.");
    assert!(answer[2].starts_with("Undecided: iptables and sslh-select against direct"), "{answer:#?}");
}

#[test]
fn a_group_without_a_number_is_last_and_one_without_a_comparison_before_it() {
    let mut report = report();
    let suite = &mut report.suites[0];
    for cell in &mut suite.tables[0].cells {
        if cell.id.starts_with("nginx/") {
            (cell.value, cell.vs_baseline) = (None, None);
        } else {
            cell.vs_baseline = None;
        }
    }
    let suite = &report.suites[0];
    let labels: Vec<String> =
        groups_by_what_is_known(suite).into_iter().map(|(_, group)| group.label).collect();
    assert_eq!(labels, ["", "server apache", "server nginx"]);
}

#[test]
fn the_answer_says_what_each_costs_and_leaves_the_rest_to_the_rows() {
    let answer = all(&report(), 0, 0, 0);
    assert!(answer[0].starts_with("iptables costs 1"), "{answer:#?}");
    assert!(answer[1].starts_with("direct alone: 14,630 (14,450 to 14,780) operations/s"), "{answer:#?}");
    assert_eq!(answer.len(), 2, "{answer:#?}");
}

#[test]
fn a_part_of_linerate_itself_is_apart_and_never_ahead() {
    let mut report = report();
    let own = |name: &str| PlannedSystem {
        role: Role::Relay,
        name: name.to_owned(),
        own: Some("a test".to_owned()),
        ..PlannedSystem::default()
    };
    for cell in &mut report.suites[0].cells {
        let of_cell = ["direct", "iptables"].into_iter().filter(|name| cell.id.ends_with(name));
        cell.systems.extend(of_cell.chain(["all rows have it"]).map(own));
    }
    let suite = &report.suites[0];
    let group = &groups(suite, &suite.tables[0])[0];
    let own = group.members.iter().find(|member| member.label == "iptables").unwrap();
    assert!(own.is_apart && own.tier.is_none() && own.mark() == "linerate's own", "{own:#?}");
    assert!(
        all(&report, 0, 0, 0)[0].starts_with("haproxy-http is fastest: "),
        "{:#?}",
        all(&report, 0, 0, 0)
    );
}

#[test]
fn linerates_own_is_not_among_those_whose_reports_are_right() {
    let mut report = report();
    let suite = &mut report.suites[0];
    for (cell, entry) in suite.cells.iter_mut().zip(&mut suite.tables[0].cells) {
        let own = cell.id.ends_with("/iptables").then(|| "a test".to_owned());
        let name = cell.id.clone();
        cell.systems = vec![PlannedSystem { role: Role::Client, name, own, ..PlannedSystem::default() }];
        let accuracy = if cell.id.ends_with("/direct") { Accuracy::Wrong } else { Accuracy::Right };
        let truth = AgainstTruth { truth: 1.0, ratio: 1.0, ci95: [0.9, 1.1], n: 6, accuracy };
        (entry.vs_baseline, entry.vs_truth) = (None, Some(truth));
    }
    suite.tables[0].truth_tolerance = Some(0.1);
    let answer = all(&report, 0, 0, 0);
    assert!(
        answer[0].starts_with("Reports that are right: ") && !answer[0].contains("iptables"),
        "{answer:?}"
    );
    assert!(answer[1..].contains(&"Reports that are wrong: direct.".to_owned()), "{answer:?}");
    assert!(answer[1..].contains(&"linerate's own, right: iptables.".to_owned()), "{answer:?}");
}

#[test]
fn a_pair_that_is_undecided_is_not_said_to_be_tied_and_is_named_once() {
    let mut report = report();
    for cell in &mut report.suites[0].cells {
        let names = cell.axes.0.iter_mut().filter(|(_, value)| value == "direct");
        names.for_each(|(_, value)| *value = "plain".into());
    }
    for cell in &mut report.suites[0].tables[0].cells {
        let Some(found) = &mut cell.vs_baseline else { continue };
        found.smallest_detectable = Some(0.05);
        (found.ci95, found.ratio, found.verdict) = match cell.id.as_str() {
            "nginx/iptables" => ([0.97, 1.05], 1.01, Verdict::CannotTell),
            _ => ([0.5, 0.6], 0.55, Verdict::Slower),
        };
    }
    let answer = all(&report, 0, 0, 0);
    assert_eq!(answer[0], "First, their order is undecided: iptables and plain.");
    assert_eq!(answer.last().unwrap(), "Only differences above 5.00 % can be seen.", "{answer:?}");
    assert!(!answer.concat().contains("Undecided: "), "{answer:?}");
    // Beside a third that is equal the lead says "tied", so the undecided one is named.
    let mut cells = report.suites[0].tables[0].cells.iter_mut();
    let equal = cells.find(|cell| cell.id == "nginx/haproxy-http").and_then(|cell| cell.vs_baseline.as_mut());
    let equal = equal.unwrap();
    (equal.ci95, equal.ratio, equal.verdict) = ([0.99, 1.02], 1.0, Verdict::WithinMargin);
    let answer = all(&report, 0, 0, 0);
    assert!(answer[0].starts_with("Tied for first: "), "{answer:?}");
    assert!(answer.last().unwrap().starts_with("Undecided: iptables against plain; only "), "{answer:?}");
}

#[test]
fn what_lost_more_than_a_hundredth_is_ahead_of_nothing() {
    let mut report = report();
    let lost = |percent| {
        let [sent, received, lost] = [1_000, 995, 5];
        Some(DatagramReport { sent, received, lost, lost_percent: percent, reordered: 0, duplicates: 0 })
    };
    for cell in &mut report.suites[0].cells {
        cell.datagrams = lost(if cell.id == "nginx/iptables" { 1.5 } else { 0.5 });
    }
    let answer = all(&report, 0, 0, 0).join("\n");
    assert!(answer.contains("Without a place, since more than 1 % was lost: iptables."), "{answer}");
    assert!(!answer.contains("iptables costs"), "{answer}");
    for cell in &mut report.suites[0].cells {
        cell.datagrams = lost(if cell.id == "nginx/haproxy-http" { 0.5 } else { 50.0 });
    }
    let only = all(&report, 0, 0, 0);
    assert!(only[0].starts_with("haproxy-http costs "), "{only:?}");
    report.suites[0].cells.iter_mut().for_each(|cell| cell.datagrams = lost(50.0));
    let answer = all(&report, 0, 0, 0);
    assert!(answer[0].starts_with("Without a place, since more than 1 % was lost: iptables, "), "{answer:?}");
}

#[test]
fn without_rounds_or_with_a_failed_control_there_is_no_order() {
    let mut report = report();
    let few = all(&report, 1, 0, 0);
    assert_eq!(few[0], "Too few rounds for a verdict (fewer than 6).");
    let disturbed = Some(DuetReport { strangers: Some(0.54), ..Default::default() });
    let cells = report.suites[1].tables[0].cells.iter_mut();
    cells.filter_map(|cell| cell.vs_baseline.as_mut()).for_each(|found| found.duet = disturbed.clone());
    let strangers = "No verdict: other processes used 54 % of the CPU time in too many pairs.";
    assert!(all(&report, 1, 0, 0)[0].starts_with(strangers), "{:?}", all(&report, 1, 0, 0));
    for cell in report.suites[1].tables[0].cells.iter_mut().filter_map(|cell| cell.vs_baseline.as_mut()) {
        let alone = SoloRatio { ratio: 1.4, ci95: [1.2, 1.6], n: 3 };
        cell.duet = Some(DuetReport { contradicted_by: Some(alone), ..Default::default() });
    }
    let denied = all(&report, 1, 0, 0);
    assert!(denied[0].starts_with("Without a verdict (see the warnings below the table): "), "{denied:?}");
    let table = &mut report.suites[0].tables[0];
    let mut control = table.cells.iter().find_map(|cell| cell.vs_baseline.clone()).unwrap();
    (control.ratio, control.ci95, control.n) = (1.1, [1.05, 1.15], 8);
    table.aa = Some(control);
    for comparison in table.cells.iter_mut().filter_map(|cell| cell.vs_baseline.as_mut()) {
        comparison.duet = Some(DuetReport::default());
        comparison.verdict = Verdict::CannotTell;
    }
    let withdrawn = all(&report, 0, 0, 0);
    assert!(
        withdrawn[0].starts_with("The A/A check failed, so this table has no verdicts."),
        "{withdrawn:?}"
    );
}

#[test]
fn a_table_whose_every_row_the_load_generator_limits_says_nothing() {
    let mut report = report();
    report.suites[0].cells.iter_mut().for_each(|cell| cell.flags = vec![Flag::BoundByGenerator]);
    assert!(all(&report, 0, 0, 0)[0].starts_with("Says nothing about the servers: the load generator"));
    let one = report.suites[0].cells.iter_mut().find(|cell| cell.id == "nginx/direct").unwrap();
    one.flags.clear();
    assert!(!all(&report, 0, 0, 0)[0].starts_with("Says nothing"));
}

#[test]
fn what_the_run_cannot_tell_is_said_with_what_it_would_find() {
    let mut report = report();
    for cell in &mut report.suites[0].tables[0].cells {
        let Some(comparison) = &mut cell.vs_baseline else { continue };
        (comparison.verdict, comparison.smallest_detectable) = (Verdict::CannotTell, Some(0.05));
    }
    let answer = all(&report, 0, 0, 0).join("\n");
    let expected = "Undecided: iptables, haproxy-http and sslh-select against direct; only differences above \
                    5.00 % can be seen.";
    assert!(answer.contains(expected), "{answer}");
}

#[test]
fn all_numbers_of_a_cell_are_listed_with_their_names() {
    let report = report();
    let cell = report.suites[0].cells.iter().find(|cell| cell.id == "nginx/haproxy-http").unwrap();
    let names: Vec<String> = facts_of(cell).into_iter().map(|(name, _)| name).collect();
    for name in ["n", "of limit", "relay CPU µs/op", "p99.9 µs", "bound by", "flags"] {
        assert!(names.iter().any(|other| other == name), "{name}: {names:?}");
    }
}

#[test]
fn a_baseline_with_nothing_in_place_of_what_is_compared_is_no_choice() {
    let mut report = report();
    // The baseline has the name of a system, as that of tunnels has.
    for cell in &mut report.suites[0].cells {
        cell.axes
            .0
            .iter_mut()
            .filter(|(_, value)| value == "direct")
            .for_each(|(_, value)| *value = "plain".into());
    }
    assert!(!all(&report, 0, 0, 0)[0].contains(" costs "), "{:?}", all(&report, 0, 0, 0));
    report.suites[0].tables[0].no_choice = ["plain", "iptables"].map(str::to_owned).into();
    let answer = all(&report, 0, 0, 0);
    assert!(answer[0].starts_with("haproxy-http costs 38 % of the speed of plain, sslh"), "{answer:?}");
    assert!(!answer.concat().contains("iptables"), "{answer:?}");
}

#[test]
fn values_of_a_parameter_are_no_competitors() {
    let mut report = report();
    let renamed = |value: &mut String| {
        let loss = [("direct", "0"), ("iptables", "1%"), ("haproxy-http", "2%"), ("sslh-select", "5%")];
        let loss = loss.into_iter().chain([("sslh-ev", "8%")]).collect::<Vec<_>>();
        *value = loss.iter().find(|(old, _)| old == value).map_or("9%", |(_, new)| new).to_owned();
    };
    for cell in &mut report.suites[0].cells {
        cell.axes.0.iter_mut().filter(|(axis, _)| axis == "path").for_each(|(_, value)| renamed(value));
    }
    let latency = all(&report, 0, 1, 0);
    let lead = "path 0 has 334.8 µs mean latency; beside it path 2% +62 %, path 5% +76 %.";
    assert_eq!(latency[0], lead, "{latency:?}");
}

#[test]
fn rows_under_loads_of_their_own_are_told_with_their_rates() {
    let mut report = report();
    let table = &mut report.suites[0].tables[0];
    let quantity = |metric| Quantity { metric, operations: None };
    let rates: Vec<TableCell> = table.cells.clone();
    for (cell, metric) in table.cells.iter_mut().zip(std::iter::repeat(Metric::P99Latency)) {
        (cell.metric, cell.value) = (Some(quantity(metric)), cell.value.map(|rate| 1e6 / rate));
        (cell.ci95, cell.alone) = (None, None);
    }
    let rates = rates.into_iter();
    table
        .cells
        .extend(rates.map(|cell| TableCell { metric: Some(quantity(Metric::OperationsPerSecond)), ..cell }));
    (table.unit, table.rows) = (TableUnit::OfRow, LOAD_AXIS.to_owned());
    let answer = all(&report, 0, 0, 0);
    assert!(
        answer[0].starts_with("p99 latency: iptables ")
            && answer[0].ends_with("direct 68.33 µs at 14,630/s.")
    );
    assert!(answer[1].starts_with("Not ranked: each row has a load of its own"), "{answer:?}");
}

#[test]
fn linerates_own_systems_are_behind_the_others_and_beside_a_competitor_that_is_alone() {
    let mut report = report();
    let own = || PlannedSystem { own: Some("a test".to_owned()), ..PlannedSystem::default() };
    for cell in report.suites[0].cells.iter_mut().filter(|cell| cell.id.starts_with("nginx/")) {
        cell.systems = vec![own()];
    }
    let of = groups(&report.suites[0], &report.suites[0].tables[0]);
    assert_eq!(of[0].label, "server apache");
    for cell in &mut report.suites[0].cells {
        let name = if cell.id.ends_with("/direct") { "ab" } else { "native" };
        let own = (name == "native").then(|| "a test".to_owned());
        let name = name.to_owned();
        cell.systems = vec![PlannedSystem { role: Role::Client, name, own, ..PlannedSystem::default() }];
        cell.axes
            .0
            .iter_mut()
            .filter(|(_, value)| value == "direct")
            .for_each(|(_, value)| *value = "ab".into());
    }
    let answer = all(&report, 0, 0, 0);
    assert!(
        answer[0].starts_with("ab has 14,630 operations/s; linerate's own iptables 83.2 % of it."),
        "{answer:?}"
    );
}

#[test]
fn competitors_in_columns_become_rows_that_are_sorted() {
    let mut report = report();
    let table = &mut report.suites[0].tables[0];
    std::mem::swap(&mut table.rows, &mut table.columns);
    std::mem::swap(&mut table.row_values, &mut table.column_values);
    let grid = super::grid(&report.suites[0], &report.suites[0].tables[0]);
    assert_eq!((grid.corner.as_str(), grid.columns.len()), ("path \\ server", 2));
    assert_eq!((grid.rows[0].label.as_str(), grid.rows[4].label.as_str()), ("iptables", "direct"));
}
