//! Limit rows and the loops without sockets: all of the work is done, and counted exactly.

use crate::common::{Engine, in_some_try, local, tcp_client as client, with};
use linerate_contract::{Bytes, Done, Layer, Nanos, Role, Spec, Workload};
use nix::sys::signal::Signal;
use std::io::Write;
use std::net::TcpStream;

/// The result of a client of this limit.
fn limited(limit: &str, mut spec: Spec) -> Done {
    spec = with(spec, "limit", limit);
    Engine::start(&spec).done()
}

#[test]
fn blocking_sockets_count_as_exactly_as_an_event_loop() {
    let server = Spec { listen: Some(local()), ..Spec::new(Role::Server, Layer::Tcp, Workload::Rr) };
    let (mut server, address) = Engine::serving(&with(server, "limit", "blocking"));
    for (connections, size) in [(1, 1), (4, 64), (16, 1024), (2, 65_536)] {
        let mut spec = client("rr", address, size, 301);
        spec.connections = connections;
        let done = limited("blocking", spec);
        assert_eq!((done.operations, done.errors.total(), done.verified), (301, 0, 301));
        assert_eq!(done.bytes, Bytes(301 * size));
        assert_eq!(done.latency.unwrap().total(), 301);
    }
    // One that asks for nonsense and is gone.
    TcpStream::connect(address).unwrap().write_all(&[0xff; 16]).unwrap();
    assert_eq!(limited("blocking", client("rr", address, 64, 10)).operations, 10);
    server.signal(Signal::SIGTERM);
    assert!(server.wait().success());
}

#[test]
fn limits_without_a_server_do_all_of_the_work() {
    for shape in ["single", "threads", "run", "interleaved", "concurrent"] {
        let mut spec = with(Spec::new(Role::Client, Layer::None, Workload::Dispatch), "shape", shape);
        (spec.operations, spec.threads) = (Some(10_007), 3);
        let done = limited("loop", spec);
        assert_eq!((done.operations, done.verified), (10_007, 10_007), "{shape}");
    }
    for direction in ["client-writes", "client-reads", "both"] {
        let mut spec = with(client("stream", local(), 1000, 0), "direction", direction);
        spec.bytes = Some(1_000_001);
        let done = limited("copies", spec.clone());
        let all = if direction == "both" { 2_000_002 } else { 1_000_001 };
        assert_eq!((done.bytes, done.errors.total()), (Bytes(all), 0));
        for limit in ["copies", "calls"] {
            spec.duration_ns = Some(Nanos(100_000_000));
            let has_several = in_some_try(|| {
                let done = limited(limit, spec.clone());
                assert!(done.bytes.0.is_multiple_of(all), "{limit} {direction}");
                assert!(done.end_ns >= done.start_ns + Nanos(100_000_000), "{limit} {direction}");
                done.bytes.0 > all
            });
            assert!(has_several, "{limit} {direction}");
        }
    }
}

#[test]
fn a_loop_without_sockets_needs_a_number_and_has_neither_a_rate_nor_a_server() {
    let spec = Spec::new(Role::Client, Layer::None, Workload::Dispatch);
    assert_eq!(Engine::start(&spec).wait().code(), Some(2));
    let paced = Spec { rate: Some(10.0), operations: Some(1), ..spec };
    assert_eq!(Engine::start(&paced).wait().code(), Some(127));
    let server = Spec { role: Role::Server, rate: None, ..paced };
    assert_eq!(Engine::start(&server).wait().code(), Some(127));
}

#[test]
fn a_client_with_blocking_calls_keeps_its_window_and_its_connections_while_it_is_stopped_for_turns() {
    let server = Spec { listen: Some(local()), ..Spec::new(Role::Server, Layer::Tcp, Workload::Rr) };
    let (_server, address) = Engine::serving(&with(server, "limit", "blocking"));
    let window = Nanos(600_000_000);
    let spec = Spec { operations: None, duration_ns: Some(window), ..client("rr", address, 64, 0) };
    let engine = Engine::start(&with(spec, "limit", "blocking"));
    // The last of these stops goes on until after the end of the window.
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(25));
        engine.signal(Signal::SIGSTOP);
        std::thread::sleep(std::time::Duration::from_millis(10));
        engine.signal(Signal::SIGCONT);
    }
    let done = engine.done();
    assert!(done.operations > 0 && done.errors.total() == 0, "{:?}", done.errors);
    assert_eq!(done.end_ns.since(done.start_ns), window);
    assert!(done.stall_ns.is_some());
}
