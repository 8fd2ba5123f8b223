//! Events within one response: laws that hold however slow the machine is.

use crate::certified::server_config;
use crate::common::{Engine, client, good_certificates, read_request, scripted};
use crate::terminating::terminating;
use linerate_contract::{Counts, EventCounts, Layer, Spec};
use std::io::Write;
use std::time::Duration;

const EVENTS: u64 = 10;
const GAP: Duration = Duration::from_millis(20);

/// The sum of all values, each the highest of its bucket: up to a thousandth above the true sum.
fn sum(counts: &Counts) -> u64 {
    counts.pairs.iter().map(|(value, n)| value * n).sum()
}

/// The first event's time and the gaps are the time until the last event: at least nine pauses of the server,
/// and at most the response time.
#[test]
fn the_first_event_and_the_gaps_add_up_to_the_response_time() {
    let (certified, trusted) = good_certificates();
    let plain = scripted(|mut stream| {
        stream.set_nodelay(true).unwrap();
        loop {
            let mut good = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n").is_ok();
            for number in 0..EVENTS {
                if number > 0 {
                    std::thread::sleep(GAP);
                }
                good &= stream.write_all(b"data: x\n\n").is_ok();
            }
            if !good || !read_request(&mut stream) {
                return;
            }
        }
    });
    let secure = terminating(server_config(&certified), plain);
    for (layer, address) in [(Layer::Http, plain), (Layer::Https, secure)] {
        for rate in [None, Some(2.0)] {
            let tls = (layer == Layer::Https).then(|| trusted.clone());
            let mut spec = Spec { layer, tls, rate, ..client("rr", address, 0, 1) };
            (spec.connections, spec.expect) = (1, None);
            spec.set_option("events", "sse");
            let done = Engine::start(&spec).done();
            let EventCounts { count, first, gap } = done.events.as_ref().unwrap();
            assert_eq!((*count, first.total(), gap.total()), (EVENTS, 1, EVENTS - 1), "{layer} {rate:?}");
            let (parts, whole) = (sum(first) + sum(gap), sum(done.latency.as_ref().unwrap()));
            let pauses = GAP.as_nanos() as u64 * (EVENTS - 1);
            let rounding = whole / 1_000 + EVENTS;
            assert!((pauses..=whole + rounding).contains(&parts), "{layer} {rate:?}: {parts} of {whole}");
        }
    }
}
