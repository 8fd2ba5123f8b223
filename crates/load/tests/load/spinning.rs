//! `options.spin` at both ends, as processes on loopback.

use crate::common::{Engine, client, in_some_try, ok, read_request, scripted};
use linerate_contract::{Nanos, Role, Spec};
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

fn spinning(mut spec: Spec, spin: &str) -> Spec {
    spec.options.insert("spin".into(), spin.into());
    spec
}

fn server(layer: &str, workload: &str) -> Spec {
    let mut spec = Spec::new(Role::Server, layer.parse().unwrap(), workload.parse().unwrap());
    (spec.listen, spec.size, spec.threads) = (Some(SocketAddr::from(([127, 0, 0, 1], 0))), 64, 2);
    spec
}

#[test]
fn ends_that_spin_do_the_same_work() {
    for spin in ["50", "always"] {
        for (layer, workload) in [
            ("http", "rr"),
            ("http", "crr"),
            ("tcp", "rr"),
            ("tcp", "crr"),
            ("tcp", "fanout"),
            ("websocket", "rr"),
        ] {
            let (_server, address) = Engine::serving(&spinning(server(layer, workload), spin));
            let mut spec = Spec::new(Role::Client, layer.parse().unwrap(), workload.parse().unwrap());
            (spec.connect, spec.size, spec.operations) = (Some(address), 64, Some(300));
            (spec.connections, spec.threads) = (3, if workload == "fanout" { 1 } else { 2 });
            for rate in [None, Some(2_000.0)] {
                if rate.is_some() && workload == "fanout" {
                    continue;
                }
                let done = Engine::start(&Spec { rate, ..spinning(spec.clone(), spin) }).done();
                let result = (done.operations, done.errors.total());
                assert_eq!(result, (300, 0), "{layer} {workload} {spin} {rate:?}");
            }
        }
    }
}

/// The client's CPU time while it waits for a response for 400 ms.
fn cpu_of_a_wait(spin: &str) -> Nanos {
    let address = scripted(|mut stream| {
        std::thread::sleep(Duration::from_millis(400));
        stream.write_all(&ok(b"")).unwrap();
        read_request(&mut stream);
    });
    let mut spec = spinning(client("rr", address, 0, 1), spin);
    spec.connections = 1;
    let done = Engine::start(&spec).done();
    assert_eq!(done.operations, 1);
    done.cpu_ns
}

#[test]
fn a_bounded_spin_ends_in_sleep_and_always_does_not() {
    // One spin of a millisecond; 400 ms, less what others on the CPU took.
    let mut last = (Nanos::ZERO, Nanos::ZERO);
    let is_bounded = in_some_try(|| {
        last = (cpu_of_a_wait("1000"), cpu_of_a_wait("always"));
        last.0.0 * 3 < last.1.0
    });
    assert!(is_bounded, "{last:?}");
}

#[test]
fn a_wrong_spin_is_refused_by_both_ends() {
    let (_server, address) = Engine::serving(&server("http", "rr"));
    for spin in ["yes", "-1", "1001"] {
        for spec in [client("rr", address, 64, 1), server("http", "rr"), server("kcp", "stream")] {
            let mut engine = Engine::start(&spinning(spec, spin));
            assert_eq!(engine.wait().code(), Some(2), "{spin}");
            assert!(engine.stderr().contains("spin"), "{spin}");
        }
    }
}
