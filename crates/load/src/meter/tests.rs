use super::*;
use crate::layer::Wrong;
use linerate_contract::{Bytes, Layer, Role, Workload};

fn meter(budget: u64) -> Meter {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Crr);
    spec.timeout_ns = Nanos(100);
    Meter::new(&spec, Some(budget)).unwrap()
}

#[test]
fn an_operation_counts_once_as_success_or_failure() {
    let mut m = meter(3);
    m.start(Nanos(10));
    assert!(m.begin() && m.begin() && m.begin() && !m.begin());
    m.succeed(Nanos(10), Nanos(60), 5, true);
    m.succeed(Nanos(10), Nanos(111), 5, true);
    assert!(m.running(Nanos(120)));
    m.fail(ErrorKind::Reset, Nanos(100), Nanos(130));
    assert!(!m.running(Nanos(130)));
    let done = m.done(Nanos(7));
    assert_eq!((done.operations, done.bytes, done.verified, done.errors.total()), (1, Bytes(5), 1, 2));
    assert_eq!(done.errors.0[&ErrorKind::Timeout], 1);
    assert_eq!((done.start_ns, done.end_ns), (Nanos(10), Nanos(130)));
}

/// After the window, too: a peer that ends what it has kept for too long has not ended it in time.
#[test]
fn what_fails_after_its_deadline_is_a_timeout_whatever_the_peer_says_then() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    (spec.timeout_ns, spec.duration_ns) = (Nanos(100), Some(Nanos(150)));
    let mut m = Meter::new(&spec, None).unwrap();
    m.start(Nanos(10));
    assert!((0..4).all(|_| m.begin()));
    m.fail(ErrorKind::Reset, Nanos(10), Nanos(110));
    m.fail(ErrorKind::Reset, Nanos(10), Nanos(111));
    m.fail(ErrorKind::EmptyResponse, Nanos(100), Nanos(201));
    m.fail(ErrorKind::Reset, Nanos(150), Nanos(201));
    let done = m.done(Nanos::ZERO);
    assert_eq!(done.errors.0, [(ErrorKind::Reset, 1), (ErrorKind::Timeout, 2)].into());
    assert_eq!(done.in_flight, 2);
}

#[test]
fn transfers_in_flight_at_the_end_of_the_window_are_finished_and_others_are_left_out() {
    for (workload, finishes, operations) in [(Workload::Stream, true, 1), (Workload::Rr, false, 0)] {
        let mut spec = Spec::new(Role::Client, Layer::Tls, workload);
        spec.duration_ns = Some(Nanos(100));
        let mut m = Meter::new(&spec, None).unwrap();
        m.start(Nanos(10));
        assert!(m.begin_at(Nanos(20), true) && m.running(Nanos(109)));
        assert!(!m.begin_at(Nanos(110), false) && !m.running(Nanos(110)));
        assert_eq!(m.begin_at(Nanos(110), true), finishes, "each connection makes one transfer");
        m.succeed(Nanos(20), Nanos(120), 5, true);
        assert_eq!(m.done(Nanos::ZERO).operations, operations, "{workload}");
    }
}

#[test]
fn latency_in_an_open_loop_counts_from_the_due_time() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    (spec.timeout_ns, spec.rate) = (Nanos(5_000_000), Some(1.0));
    let mut m = Meter::new(&spec, Some(3)).unwrap();
    m.start(Nanos(0));
    m.begin_paced(Nanos(10), Nanos(30));
    m.begin_paced(Nanos(20), Nanos(2_000_020));
    m.succeed_paced(Nanos(10), Nanos(30), Nanos(100), 1, false);
    m.succeed_paced(Nanos(20), Nanos(2_000_020), Nanos(2_000_100), 1, false);
    m.give_up();
    let done = m.done(Nanos::ZERO);
    assert_eq!(done.latency.unwrap().min, 90);
    assert_eq!(done.service.unwrap().pairs, [(70, 1), (80, 1)]);
    let schedule = done.schedule.unwrap();
    assert_eq!((schedule.late, schedule.unsent, schedule.delay.min), (1, 1, 20));
}

#[test]
fn merged_counters_add_up_and_span_both_windows() {
    let (mut a, mut b) = (meter(1), meter(1));
    a.start(Nanos(5));
    b.start(Nanos(3));
    assert!(a.begin() && b.begin());
    a.succeed(Nanos(5), Nanos(8), 1, false);
    b.succeed(Nanos(3), Nanos(7), 2, false);
    a.merge(&b);
    let done = a.done(Nanos::ZERO);
    assert_eq!((done.operations, done.bytes), (2, Bytes(3)));
    assert_eq!((done.start_ns, done.end_ns), (Nanos(3), Nanos(8)));
}

/// Two threads whose first responses had other statuses.
#[test]
fn response_times_by_status_are_those_of_all_threads() {
    let (mut a, mut b) = (meter(8), meter(8));
    let answer = |m: &mut Meter, status: u16, took: u64| {
        assert!(m.begin());
        let counts = m.succeed(Nanos(0), Nanos(took), 1, false);
        if !m.is_usual(status) {
            m.unusual(counts, status, Nanos(0), Nanos(took));
        }
    };
    [(200, 10), (304, 20), (200, 30)].into_iter().for_each(|(status, took)| answer(&mut a, status, took));
    [(304, 40), (200, 50), (304, 60)].into_iter().for_each(|(status, took)| answer(&mut b, status, took));
    assert!(b.begin());
    let wrong = Wrong { kind: ErrorKind::WrongStatus, reusable: true, status: 500 };
    b.fail_by(None, wrong, Nanos(0), Nanos(0), Nanos(70));
    a.merge(&b);
    let pairs = |times: &[u64]| times.iter().map(|time| (*time, 1)).collect::<Vec<_>>();
    let done = a.done(Nanos::ZERO);
    assert_eq!(done.by_status["200"].pairs, pairs(&[10, 30, 50]));
    assert_eq!(done.by_status["304"].pairs, pairs(&[20, 40, 60]));
    assert_eq!(done.by_status["500"].pairs, pairs(&[70]));
    let mut one = meter(1);
    answer(&mut one, 200, 10);
    assert!(one.done(Nanos::ZERO).by_status.is_empty(), "there is nothing to tell apart");
}

#[test]
fn a_server_with_many_statuses_fills_no_memory() {
    let mut m = meter(600);
    for status in 100..600 {
        assert!(m.begin());
        let counts = m.succeed(Nanos(0), Nanos(1), 1, false);
        if !m.is_usual(status) {
            m.unusual(counts, status, Nanos(0), Nanos(1));
        }
    }
    let by_status = m.done(Nanos::ZERO).by_status;
    assert_eq!((by_status.len(), by_status["other"].total()), (18, 500 - 17));
}

#[test]
fn a_closed_loop_in_turns_begins_and_counts_in_its_own_turns() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    spec.duration_ns = Some(Nanos(1_000));
    let alternation = Alternation { length_ns: Nanos(100), guard_ns: Nanos(20), seed: 1, second: false };
    spec.alternation = Some(alternation);
    let mut m = Meter::new(&spec, None).unwrap();
    m.start(Nanos(0));
    let mut begun = Vec::new();
    let mut counted = 0;
    for now in (0..1_010).map(Nanos) {
        if now >= m.next_turn() {
            m.take_turn(now);
        }
        if m.begin_at(now, false) {
            begun.push(now);
            let end = now + Nanos(1);
            m.succeed(now, end, 1, true);
            let turn = alternation.own(end);
            counted += u64::from(turn.counts_from <= end && end < Nanos(1_000));
        }
    }
    let own = |now: &Nanos| alternation.own(*now).begin <= *now && *now < Nanos(1_000);
    assert!(begun.iter().all(own) && begun.len() == 500, "{} {begun:?}", begun.len());
    m.close(Nanos(1_010));
    let done = m.done(Nanos::ZERO);
    assert_eq!((done.operations, done.counted_ns), (counted, Some(Nanos(400))));
    assert_eq!(done.operations + done.uncounted + done.in_flight, 500);
    assert!(done.operations.abs_diff(400) <= 5, "{}", done.operations);
    assert_eq!(done.end_ns, Nanos(1_000));
}

#[test]
fn the_turns_of_another_client_are_no_stall() {
    let mut spec = Spec::new(Role::Client, Layer::Http, Workload::Rr);
    let turn = Nanos(2 * LOOK.0);
    spec.duration_ns = Some(Nanos(40 * turn.0));
    let guard_ns = Nanos(turn.0 / 5);
    let alternation = Alternation { length_ns: turn, guard_ns, seed: 1, second: false };
    spec.alternation = Some(alternation);
    let stall = |works: fn(u64) -> bool| {
        let mut m = Meter::new(&spec, None).unwrap();
        m.start(Nanos(0));
        for step in 0..=4_000 {
            let now = Nanos(step * turn.0 / 100);
            if now >= m.next_turn() {
                m.take_turn(now);
            }
            if works(step) && m.begin_at(now, false) {
                m.succeed(now, now + Nanos(1), 1, true);
            }
            m.look(now);
        }
        m.close(spec.duration_ns.unwrap());
        m.done(Nanos::ZERO).stall_ns.unwrap()
    };
    assert!(stall(|_| true) < LOOK, "each turn has progress");
    let hung = stall(|step| step < 2_000);
    let (half, counted) = (Nanos(20 * turn.0), Nanos(40 * turn.0));
    let expected = alternation.counted(half, counted);
    assert!(hung.0.abs_diff(expected.0) <= turn.0, "{hung:?} of {expected:?}");
}

#[test]
fn without_turns_none_begins() {
    let mut m = meter(1);
    m.start(Nanos(10));
    m.take_turn(Nanos(10));
    assert_eq!(m.next_turn(), Nanos(u64::MAX));
    assert!(m.begin_at(Nanos(20), false));
}
