//! Open loops over HTTP/2.

use super::{dead_port, frame, good, goodbye_after_ten, h2_client, h2_server, responses};
use crate::common::{Engine, local};
use linerate_contract::{Done, ErrorKind, Nanos, Spec};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Half a second at 400 a second, over two connections of three streams.
fn paced(address: SocketAddr, size: usize) -> Spec {
    let mut spec = h2_client("h2c", address, size, 0, 3);
    (spec.operations, spec.duration_ns, spec.rate) = (None, Some(Nanos(500_000_000)), Some(400.0));
    spec.connections = 2;
    spec
}

/// The numbers of operations that were due, by their end: done, failed, not sent.
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
fn operations_that_are_due_do_not_wait_for_the_responses_of_others() {
    let slow = responses(|_, stream| {
        std::thread::sleep(Duration::from_millis(20));
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

/// Lets one stream begin, and twenty after 100 ms. Answers all, and returns how many requests its largest
/// read had; it never sleeps in a read.
fn largest_read(mut stream: TcpStream) -> Option<usize> {
    let streams = |most: u8| frame(4, 0, 0, &[0, 3, 0, 0, 0, most]);
    stream.set_nodelay(true).ok()?;
    stream.read_exact(&mut [0; 24]).ok()?;
    stream.write_all(&streams(1)).ok()?;
    stream.set_nonblocking(true).ok()?;
    let (mut buffer, mut largest) = (vec![0; 65_536], 0);
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Some(largest),
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return Some(largest),
        };
        let (mut at, mut responses, mut requests) = (0, Vec::new(), 0);
        while let Some([_, a, b, kind, _, id @ ..]) = read.get(at..at + 9) {
            if *kind == 1 {
                responses.extend(good(u32::from_be_bytes(id.try_into().unwrap())));
                requests += 1;
            }
            at += 9 + usize::from(u16::from_be_bytes([*a, *b]));
        }
        if largest == 0 && requests > 0 {
            std::thread::sleep(Duration::from_millis(100));
            responses.splice(0..0, streams(20));
        }
        largest = largest.max(requests);
        stream.write_all(&responses).ok()?;
    }
}

/// A call for each would let a late client fall further behind.
#[test]
fn what_is_due_on_a_connection_by_the_same_time_is_sent_together() {
    let listener = TcpListener::bind(local()).unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || largest_read(listener.accept().unwrap().0));
    let mut spec = paced(address, 5);
    spec.connections = 1;
    spec.set_option("streams", 20);
    let done = Engine::start(&spec).done();
    assert_eq!(account(&done), [200, 0, 0], "{:?}", done.errors);
    assert_eq!(peer.join().unwrap(), Some(20));
}

#[test]
fn what_a_server_that_says_goodbye_has_not_looked_at_is_sent_again() {
    let done = Engine::start(&paced(responses(goodbye_after_ten), 5)).done();
    assert_eq!(account(&done), [200, 0, 0], "{:?}", done.errors);
    assert!(done.streams.unwrap().goaways["no_error"] >= 10);
}

#[test]
fn each_way_of_failing_has_its_kind_and_every_operation_its_account() {
    let paced = |address| Spec { timeout_ns: Nanos(300_000_000), ..paced(address, 5) };
    let silent = Engine::start(&paced(responses(|_, _| Vec::new()))).done();
    assert_eq!(silent.operations, 0);
    assert!(silent.errors.0.contains_key(&ErrorKind::Timeout), "{:?}", silent.errors);
    assert_eq!(account(&silent).iter().sum::<u64>(), 200, "{:?}", silent.errors);
    let garbage = Engine::start(&paced(responses(|_, _| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()))).done();
    assert!(garbage.errors.0.contains_key(&ErrorKind::Malformed), "{:?}", garbage.errors);
    assert_eq!(account(&garbage).iter().sum::<u64>(), 200, "{:?}", garbage.errors);
    let dead = Engine::start(&paced(dead_port())).done();
    assert!(dead.errors.0.contains_key(&ErrorKind::ConnectRefused), "{:?}", dead.errors);
    assert_eq!(account(&dead).iter().sum::<u64>(), 200, "{:?}", dead.errors);
    // Each connection is of no use, and nothing is ever sent.
    let goodbye = responses(|_, _| frame(7, 0, 0, &[0; 8]));
    let none = Engine::start(&paced(goodbye)).done();
    assert_eq!((none.operations, account(&none).iter().sum::<u64>()), (0, 200), "{:?}", none.errors);
}
