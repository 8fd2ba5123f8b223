//! Open loops over HTTP/2.

use super::{answers, dead_port, frame, good, goodbye_after_ten, h2_client, h2_server};
use crate::common::Engine;
use linerate_contract::{Done, ErrorKind, Nanos, Spec};
use std::net::SocketAddr;

/// Half a second at 400 a second, over two connections of three streams.
fn paced(address: SocketAddr, size: usize) -> Spec {
    let mut spec = h2_client("h2c", address, size, 0, 3);
    (spec.operations, spec.duration_ns, spec.rate) = (None, Some(Nanos(500_000_000)), Some(400.0));
    spec.connections = 2;
    spec
}

/// What became of all operations that were due: done, failed, not sent.
fn account(done: &Done) -> [u64; 3] {
    [done.operations, done.errors.total(), done.schedule.as_ref().unwrap().unsent]
}

#[test]
fn every_operation_of_the_schedule_is_done_once() {
    let (_server, address) = Engine::serving(&h2_server("h2c", 10));
    for threads in [1, 2] {
        let done = Engine::start(&Spec { threads, ..paced(address, 10) }).done();
        assert_eq!((account(&done), done.verified), ([200, 0, 0], 200), "{:?}", done.errors);
        let counted = [done.latency.unwrap(), done.service.unwrap(), done.schedule.unwrap().delay];
        assert!(counted.iter().all(|counts| counts.total() == 200));
        assert!((1..=3).contains(&done.streams.unwrap().most));
    }
    let counted = Spec { operations: Some(50), duration_ns: None, ..paced(address, 10) };
    assert_eq!(account(&Engine::start(&counted).done()), [50, 0, 0]);
}

/// Ten at the same time from a server that answers after 20 ms need as many lanes.
#[test]
fn operations_that_are_due_do_not_wait_for_the_answers_of_others() {
    let slow = answers(|_, stream| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        good(stream)
    });
    let mut spec = paced(slow, 5);
    (spec.connections, spec.rate) = (1, Some(90.0));
    spec.set_option("streams", 20);
    let done = Engine::start(&spec).done();
    // It answers fifty a second, one after the other: what is due waits there, and not in the client.
    assert_eq!(account(&done)[2], 0, "{:?}", done.errors);
    assert!(done.streams.unwrap().most > 3);
}

#[test]
fn what_a_server_that_says_goodbye_has_not_looked_at_is_sent_again() {
    let done = Engine::start(&paced(answers(goodbye_after_ten), 5)).done();
    assert_eq!(account(&done), [200, 0, 0], "{:?}", done.errors);
    assert!(done.streams.unwrap().goaways["no_error"] >= 10);
}

#[test]
fn each_way_of_failing_has_its_kind_and_every_operation_its_account() {
    let paced = |address| Spec { timeout_ns: Nanos(300_000_000), ..paced(address, 5) };
    let silent = Engine::start(&paced(answers(|_, _| Vec::new()))).done();
    assert_eq!(silent.operations, 0);
    assert!(silent.errors.0.contains_key(&ErrorKind::Timeout), "{:?}", silent.errors);
    assert_eq!(account(&silent).iter().sum::<u64>(), 200, "{:?}", silent.errors);
    let garbage = Engine::start(&paced(answers(|_, _| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()))).done();
    assert!(garbage.errors.0.contains_key(&ErrorKind::Malformed), "{:?}", garbage.errors);
    assert_eq!(account(&garbage).iter().sum::<u64>(), 200, "{:?}", garbage.errors);
    let dead = Engine::start(&paced(dead_port())).done();
    assert!(dead.errors.0.contains_key(&ErrorKind::ConnectRefused), "{:?}", dead.errors);
    assert_eq!(account(&dead).iter().sum::<u64>(), 200, "{:?}", dead.errors);
    // Each connection is of no use, and nothing is ever sent.
    let goodbye = answers(|_, _| frame(7, 0, 0, &[0; 8]));
    let none = Engine::start(&paced(goodbye)).done();
    assert_eq!((none.operations, account(&none).iter().sum::<u64>()), (0, 200), "{:?}", none.errors);
}
