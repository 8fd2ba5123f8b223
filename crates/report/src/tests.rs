//! The report of a scripted run: golden output of what a person reads, and properties of the report of any
//! journal. `tests/report.rs` checks pages and JSON.

use super::fixture::{alone, journal, measurement, measurements, run, trials};
use super::model::{CellReport, Comparison, Disturbance, Flag, Oddity, OutcomeWord, Quantity, Report};
use super::numbers::Ends;
use super::{FORMATS, Style, format, words};
use linerate_analysis::stats::verdict::Verdict;
use linerate_contract::{Bytes, Counts, ErrorKind, Nanos};
use linerate_model::{BestOf, Found, Metric, Outcome, PlannedPair, Run, Stage, Unit};
use proptest::prelude::*;

mod duets;

fn build(run: &Run, units: &[Unit]) -> Report {
    super::build(run, &journal(run, units))
}

fn report() -> Report {
    build(&run(), &trials())
}

fn render(report: &Report, name: &str, style: Style) -> String {
    format(name).expect("it is in the table").render(report, style)
}

fn cell<'a>(report: &'a Report, id: &str) -> &'a CellReport {
    report
        .suites
        .iter()
        .flat_map(|suite| &suite.cells)
        .find(|cell| cell.id == id)
        .expect("it is in the fixture")
}

#[test]
fn golden_terminal() {
    insta::assert_snapshot!(render(&report(), "terminal", Style::default()));
}

const LONG: Style = Style { colour: true, width: Some(100), long: true };

#[test]
fn compact_tables_fit_a_hundred_columns() {
    for width in [None, Some(100), Some(80), Some(200)] {
        let text = render(&report(), "terminal", Style { width, ..Style::default() });
        let most = usize::from(width.unwrap_or(100).min(100));
        let is_table = |line: &&str| line.starts_with(' ') && !line.starts_with("    ");
        let long: Vec<&str> = text.lines().filter(is_table).filter(|l| l.chars().count() > most).collect();
        assert!(long.is_empty(), "{width:?}: {long:#?}");
    }
}

#[test]
fn golden_terminal_long_with_colours() {
    insta::assert_snapshot!(render(&report(), "terminal", Style { width: Some(220), ..LONG }));
}

#[test]
fn golden_markdown() {
    insta::assert_snapshot!(render(&report(), "md", Style::default()));
}

#[test]
fn golden_csv() {
    insta::assert_snapshot!(render(&report(), "csv", Style::default()));
}

#[test]
fn best_of_compares_cells_of_its_table_only() {
    let mut run = run();
    for table in &mut run.suites[0].tables {
        table.best_of = Some(BestOf {
            axis: "server".into(),
            subject: "nginx".into(),
            competitors: vec!["apache".into()],
            metrics: vec![Metric::Seconds],
        });
    }
    let report = build(&run, &trials());
    let results: Vec<_> = report.suites[0].tables.iter().map(|table| &table.best_of).collect();
    assert_eq!(results[0][0].vs_best.with, "apache/direct");
    assert!(results[1].is_empty(), "the second table has no apache: {:?}", results[1]);
}

#[test]
fn a_cell_with_more_than_one_failed_trial_in_ten_has_no_number() {
    let failing = |cell_id: &str, rounds: u32| {
        let mut trials = trials();
        let is_it = |unit: &&Unit| unit.suite == 0 && unit.sides == alone(cell_id) && !unit.warmup;
        let more = trials.iter().filter(is_it).cloned().collect::<Vec<_>>();
        // Fourteen rounds, so that one failure is less than a tenth.
        trials.extend(more.into_iter().map(|unit| Unit { number: unit.number + 7, ..unit }));
        for unit in trials.iter_mut().filter(|unit| is_it(&&**unit) && unit.number <= rounds) {
            let reason = format!("no page in round {}", unit.number);
            unit.outcome = Outcome::Failed { stage: Stage::Verify, reason, log: String::new() };
            unit.found = Found::Alone(None);
        }
        cell(&build(&run(), &trials), cell_id).clone()
    };
    let one = failing("nginx/iptables", 1);
    assert_eq!((one.outcome, one.n, one.values.len()), (OutcomeWord::Ok, 13, 13));
    let detail = "1 of 14 trials failed, the first in round 1 at verify: no page in round 1";
    assert_eq!(one.detail.as_deref(), Some(detail));
    let two = failing("nginx/iptables", 2);
    assert_eq!((two.outcome, two.n), (OutcomeWord::Failed, 12));
    assert_eq!((two.value, two.ci95, two.vs_baseline), (None, None, None));
}

#[test]
fn a_row_above_its_limit_is_flagged_and_a_row_above_its_reference_is_not() {
    let flags = |id: &str, nanos: u64| {
        let mut trials = trials();
        measurements(&mut trials, "nginx/direct").for_each(|m| m.elapsed = Nanos(nanos));
        words::flags(&cell(&build(&run(), &trials), id).flags)
    };
    // The limit takes 0.12 s.
    assert!(flags("nginx/direct", 60_000_000).contains("above-limit (2.0"));
    assert!(!flags("nginx/direct", 120_000_000).contains("above-limit"), "it is within the noise");
    let report = report();
    let exceeded = cell(&report, "nginx/direct").vs_reference.clone().unwrap();
    assert!(exceeded.with == "nginx/iptables" && exceeded.ci95[0] > 1.0, "{exceeded:?}");
    assert!(!words::flags(&cell(&report, "nginx/direct").flags).contains("above"));
    let limit = cell(&report, "nginx/limit");
    assert_eq!((&limit.vs_baseline, &limit.vs_limit, &limit.vs_reference), (&None, &None, &None));
}

#[test]
fn a_closed_loop_has_an_operation_under_way_on_each_stream_of_a_connection() {
    let flags = |connections: u64, streams: &str| {
        let mut run = run();
        let of_direct = run.suites[0].cells.iter_mut().find(|cell| cell.id == "nginx/direct").unwrap();
        of_direct.parameters.connections = Some(connections);
        of_direct.options.insert("streams".to_owned(), streams.to_owned());
        words::flags(&cell(&build(&run, &trials()), "nginx/direct").flags)
    };
    assert!(!flags(1, "5").contains("littles-law"), "{}", flags(1, "5"));
    let found = flags(5, "10");
    assert!(found.contains("littles-law (4.") && found.contains(" of 50 operations in flight)"), "{found}");
}

#[test]
fn a_small_rate_of_bits_has_a_unit_of_its_own() {
    let of = |metric| Some(Quantity { metric, operations: None });
    let shown = |metric, rate: f64| {
        let ends = Ends::Interval([rate * 0.99, rate * 1.01]);
        words::value(of(metric), rate, ends)
    };
    assert_eq!(shown(Metric::GbitPerSecond, 0.00933), "9.330 (9.237 to 9.423) Mbit/s");
    assert_eq!(shown(Metric::GbitPerSecond, 9.33), "9.330 (9.237 to 9.423)");
    assert_eq!(shown(Metric::Seconds, 0.05), "0.05000 (0.04950 to 0.05050)");
}

#[test]
fn an_empty_measurement_is_a_failure() {
    let mut trials = trials();
    measurements(&mut trials, "nginx/iptables").for_each(|m| m.operations = 0);
    let report = build(&run(), &trials);
    let empty = cell(&report, "nginx/iptables");
    assert_eq!((empty.outcome, empty.n, empty.value), (OutcomeWord::Failed, 0, None));
    assert!(
        empty.detail.as_ref().is_some_and(|d| d.contains("at measure: the measurement is empty")),
        "{empty:?}"
    );
}

#[test]
fn failed_operations_are_counted_by_kind() {
    let dropped = cell(&report(), "nginx/sslh-select").clone();
    assert_eq!(dropped.errors.0.get(&ErrorKind::EmptyResponse), Some(&(1..=7).map(|round| 3 + round).sum()));
    assert_eq!(dropped.operations, 7 * 2000);
}

#[test]
fn a_cell_without_trials_is_not_measured_and_names_its_failed_warmup() {
    let report = report();
    let never = cell(&report, "apache/limit");
    assert_eq!((never.outcome, never.n), (OutcomeWord::Failed, 0));
    assert!(never.detail.as_ref().is_some_and(|detail| detail.starts_with("not measured: the run ended")));
    assert_eq!(never.flags, [Flag::NotMeasured]);
    assert!(!report.run.complete);
    let only_warmups: Vec<Unit> = trials().into_iter().filter(|t| t.warmup).collect();
    let cut = build(&run(), &only_warmups);
    let failed = cell(&cut, "apache/sslh-select").detail.clone().unwrap_or_default();
    assert!(failed.contains("its warm-up failed at start: not ready after 5 s"), "{failed}");
}

#[test]
fn a_run_without_gaps_is_complete() {
    let mut run = run();
    run.suites.truncate(1);
    let ran = |id: &str| measurements(&mut trials(), id).count() == 7;
    run.suites[0].cells.retain(|cell| cell.absent.is_some() || ran(&cell.id));
    let report = build(&run, &trials());
    assert_eq!((report.run.complete, report.run.rounds), (true, 7));
    run.suites[0].warmup_rounds = 2;
    assert!(!build(&run, &trials()).run.complete);
    run.suites[0].warmup_rounds = 1;
    run.suites[0].rounds = 1_000;
    assert!(!build(&run, &trials()).run.complete);
    run.budget = Some(Nanos(60_000_000_000));
    let spent = build(&run, &trials());
    assert_eq!((spent.run.complete, spent.run.rounds, spent.run.planned_rounds), (true, 7, 7));
}

#[test]
fn measuring_and_overhead_add_up_to_the_wall_time() {
    let (report, trials) = (report(), trials());
    let spent: u64 = trials.iter().flat_map(|t| t.stages.values()).map(|time| time.0).sum();
    assert!((report.run.wall_seconds - Nanos(spent).as_secs_f64()).abs() < 1e-9);
    let parts = report.run.measuring_seconds + report.run.stage_seconds.values().sum::<f64>();
    assert!((report.run.wall_seconds - parts).abs() < 1e-9);
    let windows: u64 =
        trials.iter().filter(|t| !t.warmup).filter_map(|t| Some(t.measurement()?.elapsed.0)).sum();
    assert!((report.run.measuring_seconds - Nanos(windows).as_secs_f64()).abs() < 1e-9);
}

#[test]
fn warmups_change_no_number() {
    let without: Vec<Unit> = trials().into_iter().filter(|t| !t.warmup).collect();
    assert_eq!(build(&run(), &without).suites, report().suites);
}

#[test]
fn the_order_of_the_journal_does_not_matter() {
    let mut backwards = trials();
    backwards.reverse();
    assert_eq!(build(&run(), &backwards), report());
}

#[test]
fn the_last_line_of_a_trial_counts_and_unknown_cells_are_flagged() {
    let mut trials = trials();
    let of_direct = |unit: &&Unit| unit.suite == 0 && unit.sides == alone("nginx/direct") && !unit.warmup;
    let mut wrong = trials.iter().find(of_direct).expect("it is there").clone();
    measurement(&mut wrong).expect("it succeeded").elapsed = Nanos(1);
    trials.insert(0, wrong);
    let mut journal = journal(&run(), &trials);
    journal.unknown = 2;
    let odd = super::build(&run(), &journal);
    assert_eq!(odd.suites, report().suites);
    assert_eq!(odd.run.flags, [Oddity::NotInPlan(2), Oddity::Replaced(1)]);
}

#[test]
fn external_text_is_escaped_in_markup() {
    let html = render(&report(), "html", Style::default());
    assert!(
        html.contains("&lt;Example&gt;")
            && !html.contains("<Example>")
            && html.matches("<script").count() == 1
    );
    let outside = html.split('"').filter(|text| text.starts_with("http") || text.starts_with("//")).count();
    assert_eq!(outside, 0, "the file refers to other files");
    let md = render(&report(), "md", Style::default());
    assert!(md.contains("on \\| spectre_v2"));
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<&str> =
        md.lines().skip_while(|l| !l.starts_with("| cell | outcome")).take_while(|l| !l.is_empty()).collect();
    assert!(table.iter().all(|line| columns(line) == 4), "{table:#?}");
}

#[test]
fn colours_appear_only_if_the_style_has_them() {
    assert!(!render(&report(), "terminal", Style { colour: false, ..LONG }).contains('\u{1b}'));
    assert!(render(&report(), "terminal", Style { width: None, ..LONG }).contains('\u{1b}'));
}

#[test]
fn each_format_is_found_by_its_name() {
    for each in FORMATS {
        assert_eq!(format(each.name).map(|found| found.name), Ok(each.name));
    }
    assert!(format("pdf").unwrap_err().contains("terminal, md, html, json, csv"));
}

/// Any number that a damaged journal could contain.
fn odd() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..10_000_000_000_u64, Just(u64::MAX), any::<u64>()]
}

/// Fields that may be `null`.
const OPTIONAL: [&str; 10] = [
    "value",
    "ci95",
    "vs_baseline",
    "vs_limit",
    "bound_by",
    "latency_us",
    "connect_us",
    "version",
    "ci90",
    "smallest_detectable",
];

/// A line of pretty JSON.
fn has_no_hole(line: &str) -> bool {
    let field = line.trim().trim_end_matches(',').strip_suffix("null");
    field.is_none_or(|field| OPTIONAL.iter().any(|name| field == format!("\"{name}\": ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_journal_causes_a_panic(
        keep in prop::collection::vec(any::<bool>(), 1..40),
        numbers in prop::collection::vec(odd(), 1..60),
        renamed in prop::collection::vec("[a-z|<&\\\\\n/~é]{0,6}", 0..6),
        width in prop::option::of(0..200_u16),
    ) {
        let mut trials = trials();
        let mut keep = keep.iter().cycle();
        trials.retain(|_| *keep.next().expect("it is a cycle"));
        let mut numbers = numbers.iter().copied().cycle();
        let mut number = || numbers.next().expect("it is a cycle");
        for trial in &mut trials {
            trial.number = (number() % 5) as u32;
            trial.warmup = number() % 7 == 0;
            trial.at = Nanos(number());
            trial.stages.values_mut().for_each(|time| *time = Nanos(number()));
            let Some(m) = measurement(trial) else { continue };
            (m.elapsed, m.operations, m.bytes, m.verified) =
                (Nanos(number()), number(), Bytes(number()), number());
            m.errors.0.insert(ErrorKind::Reset, number());
            let pairs = vec![(number(), number()), (number(), number())];
            m.latency = Some(Counts { pairs, min: number(), max: number() }.into());
            m.connect.clone_from(&m.latency);
            m.cpu.values_mut().for_each(|time| *time = Nanos(number()));
            for cpu in &mut m.cpus {
                (cpu.total, cpu.busy, cpu.interrupts, cpu.steal) =
                    (Nanos(number()), Nanos(number()), Nanos(number()), Nanos(number()));
            }
        }
        let mut run = run();
        for (cell, name) in run.suites[0].cells.iter_mut().zip(&renamed) {
            cell.axes.0.iter_mut().for_each(|(axis, value)| { axis.push_str(name); value.clone_from(name); });
            cell.id.clone_from(name);
        }
        let report = build(&run, &trials);
        for format in FORMATS {
            let _ = format.render(&report, Style { width, ..LONG });
        }
        let json = render(&report, "json", Style::default());
        prop_assert!(json.lines().all(has_no_hole), "a number that is not finite became null");
    }
}

#[test]
fn empty_runs_have_reports() {
    let mut run = run();
    let is_written =
        |report: &Report| FORMATS.iter().all(|f| f.render(report, Style::default()).ends_with('\n'));
    let nothing = build(&run, &[]);
    assert_eq!((nothing.run.rounds, nothing.run.wall_seconds), (0, 0.0));
    assert!(is_written(&nothing));
    run.suites.iter_mut().for_each(|suite| (suite.cells, suite.tables) = (vec![], vec![]));
    assert!(is_written(&build(&run, &[])));
    run.suites.clear();
    assert!(is_written(&build(&run, &[])));
}

#[test]
fn a_disturbed_run_has_one_count_of_one_thing() {
    let mut report = build(&run(), &trials());
    assert!(report.suites[0].cells.iter().any(|cell| cell.flags.iter().any(|f| matches!(f, Flag::Steal(_)))));
    let disturbance = Disturbance { strangers: 0.0, stolen: 0.07, disturbed: 2, of: 10, is_of_cells: true };
    report.run.disturbance = Some(disturbance);
    let page = render(&report, "html", Style::default());
    let (top, _) = page.split_once("class=\"replay\"").unwrap();
    let told = "2 of 10 cells: other guests of the hypervisor 7 % of the CPU time";
    assert_eq!(top.matches(told).count(), 2, "the warning and the strip");
    assert!(!top.contains(" cells lost CPU time"));
}
