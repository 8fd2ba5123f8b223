//! Two clients whose load alternates.

use crate::common::{Engine, client, server};
use linerate_contract::{Alternation, Done, Layer, Nanos, Workload};

const TURN: Nanos = Nanos(50_000_000);

/// The results of two clients at the same time, each with a server of its own.
fn alternating(rate: Option<f64>) -> [Done; 2] {
    let servers = [Engine::serving(&server(64)), Engine::serving(&server(64))];
    let clients = [false, true].map(|second| {
        let mut spec = client("rr", servers[usize::from(second)].1, 64, 0);
        (spec.operations, spec.duration_ns, spec.rate) = (None, Some(Nanos(600_000_000)), rate);
        let guard_ns = Nanos(10_000_000);
        spec.alternation = Some(Alternation { length_ns: TURN, guard_ns, seed: 5, second });
        Engine::start(&spec)
    });
    clients.map(Engine::done)
}

#[test]
fn a_closed_loop_counts_in_its_own_turns() {
    for done in alternating(None) {
        assert!(done.operations > 0 && done.uncounted > 0 && done.errors.total() == 0, "{done:?}");
        // Half of the window without the guards, give or take a turn.
        let counted = done.counted_ns.unwrap();
        assert!(counted >= Nanos(200_000_000) && counted <= Nanos(280_000_000), "{counted:?}");
    }
}

#[test]
fn an_open_loop_leaves_out_what_is_due_in_the_turns_of_the_other() {
    let [one, two] = alternating(Some(1_000.0));
    let schedules = [&one, &two].map(|done| done.schedule.clone().unwrap());
    let sent = one.operations + two.operations + schedules.iter().map(|s| s.unsent).sum::<u64>();
    // 600 are due in the window of each; in each turn of 50 those of the guard, 10, belong to neither.
    assert!((400..=560).contains(&sent), "{sent}");
    assert!(one.operations > 0 && two.operations > 0);
}

#[test]
fn a_workload_without_turns_refuses_them() {
    let mut spec = client("fanout", "127.0.0.1:9".parse().unwrap(), 64, 1);
    spec.layer = Layer::Tcp;
    (spec.workload, spec.expect) = (Workload::Stream, None);
    let guard_ns = TURN;
    spec.alternation = Some(Alternation { length_ns: TURN, guard_ns, seed: 5, second: false });
    let mut engine = Engine::start(&spec);
    assert!(!engine.wait().success(), "{}", engine.stderr());
}
