//! The time to the first byte of a response, and of the events within it.

use crate::common::{Engine, client, in_some_try, ok, read_request, scripted};
use crate::h2::{frame, h2_client, responses};
use linerate_contract::{Counts, Done, EventCounts, Spec, page};
use std::io::Write;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Between the parts of a response.
const GAP: Duration = Duration::from_millis(20);
/// A response with a part after a gap takes longer than this, and one that arrives at once does not.
const SHORTEST: u64 = 15 * MS;

/// The sum of all values; each has three digits.
fn sum(counts: &Counts) -> u64 {
    counts.pairs.iter().map(|(value, count)| value * count).sum()
}

/// A server whose responses have these parts, `GAP` apart.
fn in_parts(parts: Vec<Vec<u8>>) -> SocketAddr {
    scripted(move |mut stream| {
        stream.set_nodelay(true).unwrap();
        loop {
            for (number, part) in parts.iter().enumerate() {
                if number > 0 {
                    sleep(GAP);
                }
                if stream.write_all(part).is_err() {
                    return;
                }
            }
            if !read_request(&mut stream) {
                return;
            }
        }
    })
}

fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Ten events of which the last one ends the response.
fn ten_events() -> Vec<Vec<u8>> {
    let event = |number: usize| {
        let (head, end) = (if number == 0 { STREAM } else { "" }, if number == 9 { "0\r\n\r\n" } else { "" });
        [head.as_bytes(), &chunk(&format!("id: {number}\ndata: x\n\n")), end.as_bytes()].concat()
    };
    (0..10).map(event).collect()
}

/// Asserts what this many responses with ten events each come to.
fn assert_ten_events(done: &Done, responses: u64) {
    assert_eq!((done.operations, done.errors.total()), (responses, 0), "{:?}", done.errors);
    let EventCounts { count, first, gap } = done.events.as_ref().unwrap();
    assert_eq!((*count, first.total(), gap.total()), (10 * responses, responses, 9 * responses));
    // A client that was stopped reads two events at once: a gap is then longer and the next one shorter. The
    // last event comes nine gaps after the first in any case, and it ends the response.
    let (latency, first_byte) = (done.latency.as_ref().unwrap(), done.first_byte.as_ref().unwrap());
    let events = sum(first) + sum(gap);
    assert!(events / 1000 * 1002 >= responses * 9 * GAP.as_nanos() as u64, "{first:?} {gap:?}");
    assert!(events <= sum(latency) / 1000 * 1002, "{first:?} {gap:?} {latency:?}");
    assert!(first.min < latency.min / 2, "{first:?} {latency:?}");
    assert_eq!(first_byte.total(), responses);
    assert!(first_byte.max <= first.max, "{first_byte:?} {first:?}");
}

#[test]
fn events_of_a_stream_have_their_gaps_and_the_first_its_time() {
    for rate in [None, Some(4.0)] {
        let spec = Spec { connections: 2, expect: None, rate, ..client("rr", in_parts(ten_events()), 0, 6) };
        let mut timed = spec.clone();
        timed.set_option("events", "sse");
        assert_ten_events(&Engine::start(&timed).done(), 6);
        let done = Engine::start(&spec).done();
        assert!(done.events.is_none() && done.first_byte.is_some());
    }
}

#[test]
fn events_over_http_2_and_messages_of_a_call_are_timed_on_each_stream() {
    for calls in [false, true] {
        let address = responses(move |_, stream| {
            let (head, data) = match calls {
                true => (frame(1, 4, stream, &[0x88]), vec![0; 5]),
                false => (frame(1, 4, stream, &[0x88]), b"data: x\n\n".to_vec()),
            };
            [head, frame(0, 0, stream, &data)].concat()
        });
        let mut spec = Spec { connections: 1, expect: None, ..h2_client("h2c", address, 0, 2, 1) };
        spec.set_option("events", "sse");
        spec.timeout_ns = linerate_contract::Nanos(300 * MS);
        if calls {
            spec.set_option("grpc", "yes");
        }
        // The responses never end: their events are counted all the same.
        let counts_both = in_some_try(|| {
            let done = Engine::start(&spec).done();
            assert_eq!((done.operations, done.errors.total()), (0, 2), "{calls}: {:?}", done.errors);
            // A machine that stands still has its timeout before the event.
            let Some(events) = done.events else { return false };
            assert!(events.count == events.first.total() && events.count <= 2, "{calls}: {events:?}");
            assert!(events.first.max < 300 * MS, "{events:?}");
            events.count == 2
        });
        assert!(counts_both, "{calls}");
    }
}

#[test]
fn lines_and_pieces_are_events_where_they_are_asked_for() {
    let parts = vec![
        [STREAM.as_bytes(), &chunk("{}\n{}\n")].concat(),
        [chunk("[1]\n"), b"0\r\n\r\n".to_vec()].concat(),
    ];
    for (kind, each, zeros) in [("lines", 3, 1), ("pieces", 2, 0)] {
        let address = in_parts(parts.clone());
        let mut spec = Spec { connections: 1, expect: None, ..client("rr", address, 0, 5) };
        spec.set_option("events", kind);
        let EventCounts { count, first, gap } = Engine::start(&spec).done().events.unwrap();
        assert_eq!((count, first.total(), gap.total()), (each * 5, 5, (each - 1) * 5), "{kind}");
        let together = gap.pairs.iter().filter(|(value, _)| *value < MS / 100).map(|(_, n)| n).sum::<u64>();
        assert!(together >= zeros * 5, "{kind}: {gap:?}");
    }
    let mut spec = client("rr", "127.0.0.1:1".parse().unwrap(), 0, 1);
    spec.set_option("events", "chunks");
    let mut engine = Engine::start(&spec);
    assert_eq!(engine.wait().code(), Some(2));
    assert!(engine.stderr().contains("sse, lines or pieces"));
}

/// Half of the requests have a head first; the others arrive at once, and their first byte is their end.
#[test]
fn the_first_byte_of_every_response_is_counted_also_of_those_that_arrive_at_once() {
    let whole = ok(&page(100));
    let (head, body) = whole.split_at(40);
    let mut parts = vec![whole.clone()];
    parts.push([head].concat());
    parts.push(body.to_vec());
    let address = scripted(move |mut stream| {
        stream.set_nodelay(true).unwrap();
        for number in 0.. {
            let _ = stream.write_all(if number % 2 == 0 { &parts[0] } else { &parts[1] });
            if number % 2 == 1 {
                sleep(GAP);
                let _ = stream.write_all(&parts[2]);
            }
            if !read_request(&mut stream) {
                return;
            }
        }
    });
    for rate in [None, Some(20.0)] {
        let done = Engine::start(&Spec { connections: 1, rate, ..client("rr", address, 100, 10) }).done();
        assert_eq!((done.operations, done.errors.total()), (10, 0), "{:?}", done.errors);
        let (latency, first) = (done.latency.unwrap(), done.first_byte.unwrap());
        assert_eq!((latency.total(), first.total()), (10, 10));
        let slow =
            |counts: &Counts| counts.pairs.iter().filter(|p| p.0 >= SHORTEST).map(|p| p.1).sum::<u64>();
        // A client that was stopped is slow with others, too.
        assert!(slow(&latency) >= 5 && slow(&first) < slow(&latency), "{latency:?} {first:?}");
    }
    let at_once = in_parts(vec![whole]);
    assert!(Engine::start(&client("rr", at_once, 100, 20)).done().first_byte.is_none());
}
