//! Open loop.

use crate::common::{Engine, LONG, client, local, server};
use linerate_contract::{Arrival, Event, Layer, Nanos, Spec, Workload};
use nix::sys::signal::Signal;
use std::net::SocketAddr;

const SIZE: usize = 128;

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
fn a_rate_below_one_in_a_second_has_its_operations() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let duration_ns = Some(Nanos(2_500_000_000));
    let spec = Spec { rate: Some(0.8), connections: 1, duration_ns, ..paced("rr", address) };
    let done = Engine::start(&spec).done();
    assert_eq!((done.operations, done.schedule.unwrap().unsent, done.errors.total()), (2, 0, 0));
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
fn signals_end_an_open_loop_with_its_account() {
    let (_server, address) = Engine::serving(&server(SIZE));
    let sample_ns = Some(Nanos(50_000_000));
    let spec = Spec { duration_ns: Some(LONG), sample_ns, ..paced("rr", address) };
    let mut client = Engine::start(&spec);
    client.under_way();
    client.signal(Signal::SIGINT);
    let done = client.done();
    let elapsed = done.end_ns.since(done.start_ns);
    assert!(done.operations > 0 && elapsed < LONG);
    // What was due after the signal is not.
    let due = done.operations + done.in_flight + done.schedule.unwrap().unsent;
    assert!(due <= 400 * (elapsed.0 / 1_000_000_000 + 1), "{due} in {elapsed:?}");
}

#[test]
fn progress_is_told_when_asked_for() {
    let (_server, address) = Engine::serving(&server(SIZE));
    for rate in [None, Some(400.0)] {
        let sample_ns = Some(Nanos(50_000_000));
        let spec = Spec { rate, threads: 2, sample_ns, ..paced("rr", address) };
        let mut engine = Engine::start(&spec);
        let mut told = 0;
        let done = loop {
            match engine.event().unwrap() {
                Event::Sample(sample) => {
                    told += sample.operations;
                    assert_eq!(sample.latency.map_or(0, |latency| latency.total()), told);
                }
                Event::Done(done) => break done,
                other => panic!("{other:?}"),
            }
        };
        assert!((1..=done.operations).contains(&told), "{told} of {}", done.operations);
    }
}

#[test]
fn rates_of_other_workloads_and_impossible_ones_are_refused() {
    let address = local();
    for (change, status, sentence) in [
        (
            (&|s: &mut Spec| (s.layer, s.workload) = (Layer::Tcp, Workload::Stream)) as &dyn Fn(&mut Spec),
            127,
            "\"rate\"",
        ),
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
