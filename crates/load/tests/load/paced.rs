//! Open loop, and the server whose slowness is known.

use crate::common::{Engine, client, dead_port, local, server};
use linerate_contract::{Arrival, Done, ErrorKind, Event, Nanos, Role, Spec};
use nix::sys::signal::Signal;
use std::net::SocketAddr;

const SIZE: usize = 128;

fn truth(options: &[(&str, &str)]) -> (Engine, SocketAddr) {
    let mut spec = Spec::new(Role::Server, "http", "rr");
    (spec.listen, spec.size, spec.seed) = (Some(local()), SIZE as u64, 3);
    spec.options = options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    Engine::serving(&spec)
}

fn injected(mut server: Engine) -> Done {
    server.signal(Signal::SIGTERM);
    let event = server.event();
    assert!(server.wait().success());
    let Some(Event::Done(done)) = event else { panic!("{event:?}") };
    *done
}

/// Half a second at 400 a second.
fn paced(workload: &str, address: SocketAddr) -> Spec {
    let mut spec = client(workload, address, SIZE, 0);
    (spec.operations, spec.duration_ns, spec.rate) = (None, Some(Nanos(500_000_000)), Some(400.0));
    spec
}

#[test]
fn every_operation_of_the_schedule_is_done_once() {
    let (_server, address) = Engine::serving(&server(SIZE));
    for (workload, threads) in [("rr", 1), ("rr", 2), ("crr", 2)] {
        let done = Engine::start(&Spec { threads, ..paced(workload, address) }).done();
        let schedule = done.schedule.unwrap();
        assert_eq!((done.operations, schedule.unsent, done.errors.total()), (200, 0, 0), "{workload}");
        assert_eq!(done.verified, 200);
        for counts in [done.latency.unwrap(), done.service.unwrap(), schedule.delay] {
            assert_eq!(counts.total(), 200);
        }
    }
}

#[test]
fn random_and_rising_schedules_are_kept() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let ramp = Engine::start(&Spec { arrival: Arrival::Ramp, ..paced("rr", address) }).done();
    assert_eq!(ramp.operations, 100);
    let random = Spec { arrival: Arrival::Poisson, seed: 5, ..paced("rr", address) };
    let counts = [(); 2].map(|()| Engine::start(&random).done().operations);
    assert_eq!(counts[0], counts[1]);
    // Five standard deviations.
    assert!((130..270).contains(&counts[0]), "{counts:?}");
}

#[test]
fn a_number_of_operations_ends_an_open_loop() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let spec = Spec { operations: Some(50), duration_ns: None, threads: 3, ..paced("rr", address) };
    assert_eq!(Engine::start(&spec).done().operations, 50);
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
    assert!(done.schedule.unwrap().late >= 70);
    assert_eq!(injected(server).operations, 200);
}

#[test]
fn injected_delays_and_faults_are_reported_exactly() {
    let (server, address) = truth(&[("delay", "uniform 1000 3000"), ("errors", "0.1")]);
    let done = Engine::start(&client("rr", address, SIZE, 500)).done();
    let truth = injected(server);
    assert_eq!(truth.operations, done.operations);
    assert_eq!(truth.errors, done.errors);
    assert_eq!(truth.errors.0.len(), 5);
    let (least, latency) = (truth.latency.as_ref().unwrap().min, done.latency.unwrap());
    assert!(least >= 1_000_000);
    // No answer is faster than the delay before it, but for the histogram's three digits.
    assert!(latency.percentile(50.0) >= truth.latency.unwrap().percentile(50.0).map(|v| v - v / 1000));
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
    // An answer that takes longer than window and grace: one connection can send one request.
    let (_server, address) = truth(&[("delay", "fixed 1700000")]);
    let spec = Spec { connections: 1, ..paced("rr", address) };
    let slow = Engine::start(&spec).done();
    assert_eq!((slow.operations, slow.schedule.unwrap().unsent), (1, 199));
}

#[test]
fn an_answer_that_never_comes_is_a_timeout_of_its_own() {
    let (_server, address) = truth(&[("delay", "fixed 60000000")]);
    let spec = Spec { timeout_ns: Nanos(100_000_000), connections: 300, ..paced("rr", address) };
    let done = Engine::start(&spec).done();
    assert_eq!(done.errors.0[&ErrorKind::Timeout] + done.schedule.unwrap().unsent, 200);
}

#[test]
fn signals_end_an_open_loop_with_its_account() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let client = Engine::start(&Spec { duration_ns: Some(Nanos(3_600_000_000_000)), ..paced("rr", address) });
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.signal(Signal::SIGINT);
    let done = client.done();
    assert!(done.operations > 0);
    assert!(done.schedule.unwrap().unsent < 200);
}

#[test]
fn progress_is_told_when_asked_for() {
    let (_server, address) = Engine::serving(&server(SIZE));
    for rate in [None, Some(400.0)] {
        let spec = Spec { rate, threads: 2, sample_ns: Some(Nanos(100_000_000)), ..paced("rr", address) };
        let mut engine = Engine::start(&spec);
        let Some(Event::Sample(sample)) = engine.event() else { panic!("no sample") };
        assert!(sample.operations > 0 && sample.latency.unwrap().total() > 0);
        while !matches!(engine.event(), Some(Event::Done(_))) {}
    }
}

#[test]
fn rates_of_other_workloads_and_impossible_ones_are_refused() {
    let address = local();
    for (change, status, sentence) in [
        ((&|s: &mut Spec| s.layer = "none".into()) as &dyn Fn(&mut Spec), 127, "rate"),
        (&|s| s.rate = Some(0.0), 2, "\"rate\""),
        (&|s| (s.arrival, s.duration_ns, s.operations) = (Arrival::Ramp, None, Some(1)), 2, "\"arrival\""),
        (&|s| s.sample_ns = Some(Nanos(0)), 2, "\"sample_ns\""),
    ] {
        let mut spec = paced("rr", address);
        change(&mut spec);
        let mut engine = Engine::start(&spec);
        assert_eq!(engine.wait().code(), Some(status), "{sentence}");
        assert!(engine.stderr().contains(sentence), "{sentence}");
    }
}
