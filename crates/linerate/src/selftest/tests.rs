//! Each case accepts the truth and refuses what differs from it.

use super::*;
use linerate_analysis::selftest::RowState;
use linerate_contract::Datagrams;

const WAY: Way = Way { least: 6_000.0, p50: 8_000.0, p99: 12_000.0 };

fn named(name: &str) -> Case {
    cases(Nanos(1), 1, WAY).into_iter().find(|case| case.name == name).unwrap()
}

fn done(values: &[u64]) -> Done {
    let pairs = values.iter().map(|v| (*v, 1)).collect();
    let latency = Some(Counts { pairs, min: values[0], max: values[values.len() - 1] });
    Done { operations: values.len() as u64, latency, ..Done::default() }
}

#[test]
fn a_percentile_is_within_bound_at_one_percent_and_not_at_two() {
    let case = named("fixed");
    let truth = done(&[50_000_000; 10]);
    assert!(case.judge(&truth, &done(&[50_490_000; 10])).iter().all(Row::is_within_bound));
    assert!(!case.judge(&truth, &done(&[51_000_000; 10])).iter().all(Row::is_within_bound));
    assert!(!case.judge(&truth, &done(&[49_000_000; 10])).iter().all(Row::is_within_bound));
    assert!(!case.judge(&truth, &done(&[50_000_000; 9])).iter().all(Row::is_within_bound));
}

#[test]
fn a_short_delay_is_judged_by_microseconds_beyond_the_way_through_the_loopback() {
    let case = named("fixed, 100 µs");
    let truth = done(&[100_000; 100]);
    let states = |case: &Case, measured: u64| {
        let rows = case.judge(&truth, &done(&[measured; 100]));
        [1, 3].map(|at| (rows[at].what.clone(), rows[at].is_within_bound(), rows[at].bound))
    };
    let judged = |is_within| {
        [("p50", SHORT_P50), ("p99", SHORT_P99)]
            .map(|(what, bound)| (what.to_owned(), is_within, Bound::Within(bound)))
    };
    assert_eq!(states(&case, 111_000), judged(true));
    assert_eq!(states(&case, 119_000), judged(false));
    assert_eq!(states(&case, 97_000), judged(false));
    // The loopback varies by more than the bound, so p99 says nothing about the engine.
    let varies = Case { way: Way { p99: 40_000.0, ..WAY }, ..case };
    let [p50, p99] = states(&varies, 119_000);
    assert_eq!((p50.1, p99.1, p99.2), (false, true, Bound::Unknown(SHORT_P99)));
}

#[test]
fn rows_that_lost_cpu_time_could_put_out_of_bounds_are_not_judged() {
    let case = named("fixed");
    let rows = case.judge(&done(&[20_000_000; 10]), &done(&[30_000_000; 10]));
    let judged = |lost| rows.iter().map(|row| row.state(lost)).collect::<Vec<_>>();
    assert_eq!(judged(0.0)[1..6], [RowState::Off; 5]);
    // 1 % of lost time may explain p99 and above, but neither the median nor a count.
    let [count, p50, p90, p99, .., last] = judged(0.01)[..] else { panic!("{rows:?}") };
    assert_eq!([count, p50, p90], [RowState::Within, RowState::Off, RowState::Off]);
    assert_eq!([p99, last], [RowState::Disturbed; 2]);
}

#[test]
fn a_client_that_omits_the_stall_fails() {
    let case = named("stall");
    let server = done(&[1; 1000]);
    let honest: Vec<u64> =
        (0..1000).map(|n| 100_000_000_u64.saturating_sub(n * 1_000_000).max(20_000)).rev().collect();
    assert!(case.judge(&server, &done(&honest)).iter().all(Row::is_within_bound));
    let mut omitting = vec![20_000; 999];
    omitting.push(100_000_000);
    assert!(!case.judge(&server, &done(&omitting)).iter().all(Row::is_within_bound));
}

#[test]
fn a_wrong_rate_and_wrong_counts_fail() {
    let cap = named("cap");
    let did = |operations| Done { operations, end_ns: Nanos(2_000_000_000), ..Done::default() };
    assert!(cap.judge(&did(10_001), &did(10_005)).iter().all(Row::is_within_bound));
    assert!(!cap.judge(&did(10_001), &did(9_900)).iter().all(Row::is_within_bound));
    let errors = named("errors");
    let mut server = Done::default();
    server.errors.add(linerate_contract::ErrorKind::Reset, 3);
    assert!(!errors.judge(&server, &Done::default()).iter().all(Row::is_within_bound));
    assert!(errors.judge(&server, &server.clone()).iter().all(Row::is_within_bound));
}

#[test]
fn loss_must_be_exact_and_losses_of_the_kernel_have_a_row_of_their_own() {
    let case = named("loss");
    let of = |sent, received, lost| Done {
        datagrams: Some(Datagrams { sent, received, lost, ..Datagrams::default() }),
        ..Done::default()
    };
    let rows = case.judge(&of(1_000, 970, 30), &of(1_000, 970, 30));
    assert!(rows.iter().all(Row::is_within_bound) && rows.len() == 4, "{rows:?}");
    assert!(!case.judge(&of(1_000, 970, 30), &of(1_000, 971, 29)).iter().all(Row::is_within_bound));
    let rows = case.judge(&of(1_000, 965, 30), &of(1_000, 965, 35));
    assert!(rows.iter().all(Row::is_within_bound), "{rows:?}");
    assert_eq!((rows[4].what.as_str(), rows[4].truth), ("lost by the kernel", 5.0));
}
