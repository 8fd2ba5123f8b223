//! The program itself, on any layer: signals, exit statuses, and its description.

use crate::common::{Engine, LONG, client, server};
use linerate_contract::{Event, Layer, Nanos, Role, Spec, Workload};
use nix::sys::signal::Signal;

const SIZE: usize = 4096;

#[test]
fn signals_end_a_client_with_its_account_and_a_server_without_ado() {
    let (mut server, address) = Engine::serving(&server(SIZE));
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut spec = client("crr", address, SIZE, 0);
        (spec.operations, spec.duration_ns, spec.threads) = (None, Some(LONG), 2);
        spec.sample_ns = Some(Nanos(50_000_000));
        let mut client = Engine::start(&spec);
        client.under_way();
        client.signal(signal);
        let done = client.done();
        assert!(done.operations > 0 && done.end_ns.since(done.start_ns) < LONG);
    }
    server.signal(Signal::SIGTERM);
    assert!(server.wait().success());
}

#[test]
fn what_is_not_supported_exits_127_and_a_bad_spec_2_with_a_sentence() {
    let address = "127.0.0.1:9".parse().unwrap();
    let with = |change: &dyn Fn(&mut Spec)| {
        let mut spec = client("crr", address, SIZE, 1);
        change(&mut spec);
        spec.to_json()
    };
    let mut server = Spec::new(Role::Server, Layer::Kcp, Workload::Rr);
    server.listen = Some(crate::common::local());
    for (json, status, sentence) in [
        (with(&|_| {}).replace("\"http\"", "\"smoke\""), 127, "smoke"),
        (with(&|s| s.workload = Workload::Stream), 127, "stream"),
        (Spec::new(Role::Relay, Layer::Tcp, Workload::Relay).to_json(), 127, "linerate-natives"),
        (server.to_json(), 127, "kcp"),
        ("{".into(), 2, "not valid"),
        (with(&|s| s.contract = 9), 2, "contract 9"),
        (with(&|s| s.connect = None), 2, "\"connect\""),
        (with(&|s| s.operations = None), 2, "\"operations\""),
        (with(&|s| s.connections = 0), 2, "\"connections\""),
        (with(&|s| s.threads = 0), 2, "\"threads\""),
        (with(&|s| s.timeout_ns = Nanos(0)), 2, "\"timeout_ns\""),
        (with(&|s| s.path = Some("no slash".into())), 2, "\"path\""),
        (with(&|s| s.sources = vec!["192.0.2.1".parse().unwrap()]), 2, "192.0.2.1"),
        (with(&|s| s.expect.as_mut().unwrap().every = 0), 2, "\"expect.every\""),
        (Spec::new(Role::Server, Layer::Http, Workload::Rr).to_json(), 2, "\"listen\""),
    ] {
        let mut engine = Engine::start_json(&json);
        assert_eq!(engine.wait().code(), Some(status), "{json}");
        let stderr = engine.stderr();
        assert!(stderr.contains(sentence), "{stderr}");
        assert_eq!(engine.event(), None);
    }
}

#[test]
fn it_describes_itself() {
    let mut engine = Engine::start(&Spec::new(Role::Describe, Layer::Unnamed, Workload::Unnamed));
    let Some(Event::Describe(describe)) = engine.event() else { panic!() };
    assert_eq!(describe.roles, [Role::Client, Role::Server]);
    assert!(engine.wait().success());
}

#[test]
fn these_tests_have_a_network_namespace_of_their_own() {
    let own = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
    match (std::env::var("TEST_NETWORK").as_deref(), own("self"), own("1")) {
        (Ok("own"), Ok(mine), Ok(of_the_host)) => assert_ne!(mine, of_the_host),
        (Ok("own"), ..) => eprintln!("skipped: another user's process has no namespace to read"),
        _ => eprintln!("skipped: the tests were not started by scripts/test-runner, or it has no rights"),
    }
}
