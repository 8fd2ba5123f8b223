//! Numbers of a client of the load engine, against those that a fault injector reports.

use crate::common::{Engine, client, dead_port, local};
use linerate_contract::{Done, ErrorKind, Event, Layer, Nanos, Role, Spec, Workload};
use nix::sys::signal::Signal;
use std::net::SocketAddr;

const SIZE: usize = 128;

/// Half a second at 400 a second.
fn paced(workload: &str, address: SocketAddr) -> Spec {
    let mut spec = client(workload, address, SIZE, 0);
    (spec.operations, spec.duration_ns, spec.rate) = (None, Some(Nanos(500_000_000)), Some(400.0));
    spec
}

fn injected(mut server: Engine) -> Done {
    server.signal(Signal::SIGTERM);
    let event = server.event();
    assert!(server.wait().success());
    let Some(Event::Done(done)) = event else { panic!("{event:?}") };
    *done
}

fn truth(options: &[(&str, &str)]) -> (Engine, SocketAddr) {
    let mut spec = Spec::new(Role::Server, Layer::Http, Workload::Rr);
    (spec.listen, spec.size, spec.seed) = (Some(local()), SIZE as u64, 3);
    spec.options = options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Engine::serving(&spec)
}

#[test]
fn a_stall_counts_for_everyone_who_would_have_come() {
    let (server, address) = truth(&[("stall", "200000 1000000")]);
    // One connection: a closed loop would have stalled once.
    let done = Engine::start(&Spec { connections: 1, ..paced("rr", address) }).done();
    let (response, service) = (done.latency.unwrap(), done.service.unwrap());
    // 80 of 200 operations were due within the stall; the half of them waited for 100 ms or more.
    assert!(response.percentile(75.0).unwrap() > 50_000_000, "{:?}", response.percentile(75.0));
    assert!(service.percentile(90.0).unwrap() < 100_000_000);
    let schedule = done.schedule.unwrap();
    assert!(schedule.late >= 70);
    // A machine that stands still at the end leaves the last ones unsent.
    assert_eq!(injected(server).operations + schedule.unsent, 200);
}

#[test]
fn injected_delays_and_faults_are_reported_exactly() {
    let (server, address) = truth(&[("delay", "uniform 1000 3000"), ("errors", "0.1")]);
    let done = Engine::start(&client("crr", address, SIZE, 500)).done();
    let truth = injected(server);
    assert_eq!(truth.operations, done.operations);
    assert_eq!(truth.errors, done.errors);
    assert_eq!(truth.errors.0.len(), 5);
    let (least, latency) = (truth.latency.as_ref().unwrap().min, done.latency.unwrap());
    assert!(least >= 1_000_000);
    // No response is faster than the delay before it, but for the histogram's three digits.
    assert!(latency.percentile(50.0) >= truth.latency.unwrap().percentile(50.0).map(|v| v - v / 1000));
}

#[test]
fn requests_that_lose_a_connection_that_stays_are_sent_again_and_all_are_counted() {
    let (server, address) = truth(&[("errors", "0.1")]);
    let done = Engine::start(&client("rr", address, SIZE, 500)).done();
    let truth = injected(server);
    let unanswered = |done: &Done| {
        let kinds = [ErrorKind::Reset, ErrorKind::EmptyResponse];
        kinds.iter().filter_map(|kind| done.errors.0.get(kind)).sum::<u64>() + done.closed_idle
    };
    assert_eq!((truth.operations, unanswered(&truth)), (done.operations, unanswered(&done)));
    assert!(done.closed_idle > 0);
    for kind in [ErrorKind::Truncated, ErrorKind::Malformed, ErrorKind::WrongStatus] {
        assert_eq!(truth.errors.0[&kind], done.errors.0[&kind], "{kind:?}");
    }
}

#[test]
fn a_cap_is_kept() {
    let (_server, address) = truth(&[("cap", "1000")]);
    let done = Engine::start(&client("rr", address, SIZE, 300)).done();
    assert!(done.end_ns.since(done.start_ns) >= Nanos(299_000_000));
}

#[test]
fn what_cannot_be_sent_is_counted() {
    let dead = Engine::start(&paced("rr", dead_port())).done();
    let refused = dead.errors.0[&ErrorKind::ConnectRefused];
    assert!(refused > 0);
    assert_eq!(refused + dead.schedule.unwrap().unsent, 200);
    // A response that takes longer than window and grace: one connection can send one request.
    let (_server, address) = truth(&[("delay", "fixed 1700000")]);
    let spec = Spec { connections: 1, ..paced("rr", address) };
    let slow = Engine::start(&spec).done();
    assert_eq!((slow.operations, slow.schedule.unwrap().unsent), (1, 199));
}

#[test]
fn a_response_that_never_comes_is_a_timeout_of_its_own() {
    let (_server, address) = truth(&[("delay", "fixed 60000000")]);
    let spec = Spec { timeout_ns: Nanos(1_000_000_000), connections: 300, ..paced("rr", address) };
    let done = Engine::start(&spec).done();
    assert!(done.errors.0.contains_key(&ErrorKind::Timeout), "{:?}", done.errors);
    assert_eq!((done.operations, done.errors.total() + done.schedule.unwrap().unsent), (0, 200));
}

#[test]
fn loss_that_was_injected_is_found_exactly() {
    for mode in ["single", "batch", "gso"] {
        let faults = [("loss", "0.05"), ("duplicate", "0.02"), ("reorder", "0.02")];
        let mut spec =
            Spec { listen: Some(local()), seed: 7, ..Spec::new(Role::Server, Layer::Udp, Workload::Stream) };
        spec.size = SIZE as u64;
        spec.set_option("mode", mode);
        let mut faulty = spec.clone();
        faults.iter().for_each(|(fault, share)| faulty.set_option(fault, share));
        let (server, address) = Engine::serving(&faulty);
        (spec.role, spec.connect, spec.listen) = (Role::Client, Some(address), None);
        (spec.connections, spec.rate, spec.duration_ns) = (2, Some(5_000.0), Some(Nanos(400_000_000)));
        let found = Engine::start(&spec).done().datagrams.unwrap();
        server.signal(Signal::SIGTERM);
        let injected = server.done().datagrams.unwrap();
        // What the kernel dropped is among those that it says were sent, also the ends of flows.
        let passed = injected.received + injected.lost;
        let is_right = injected.sent == found.sent || (injected.sent > passed && injected.sent > found.sent);
        assert!(is_right, "{mode}: {found:?} {injected:?}");
        assert_eq!(found.received, injected.received, "{mode}");
        assert_eq!((found.reordered, found.duplicates), (injected.reordered, injected.duplicates), "{mode}");
        // Half of their shares: a machine that stands still sends fewer than 2,000.
        let faults = [(injected.lost, 40), (injected.duplicates, 100), (injected.reordered, 100)];
        assert!(faults.iter().all(|(count, least)| count * least >= passed), "{injected:?}");
        assert!(passed > 0, "{injected:?}");
        assert!(found.lost >= injected.lost, "{mode}");
    }
}

#[test]
fn a_share_that_is_none_is_refused() {
    let mut spec =
        Spec { listen: Some(local()), size: 64, ..Spec::new(Role::Server, Layer::Udp, Workload::Stream) };
    spec.set_option("loss", 2);
    assert_eq!(Engine::start(&spec).wait().code(), Some(2));
}
