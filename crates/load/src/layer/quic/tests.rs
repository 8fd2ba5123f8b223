use super::client::Quic;
use super::h3::H3;
use super::server::{Content, QuicServer, ServerProtocol};
use super::*;
use crate::engine::Engine;
use crate::meter::Meter;
use crate::waiter::Waiter;
use crate::workload::multiplexed::Multiplexed;
use bytes::Bytes;
use linerate_contract::{Done, ErrorKind, Request, Role, Tls, Workload};
use nix::sys::eventfd::EventFd;

#[test]
fn times_are_the_same_in_both_clocks() {
    let epoch = Epoch::now();
    let later = epoch.at + Nanos(1_234_567_890);
    assert_eq!(epoch.nanos(epoch.instant(later)), later);
    assert_eq!(epoch.nanos(epoch.instant), epoch.at);
}

#[test]
fn an_unknown_congestion_control_is_refused_with_the_known_ones() {
    let mut spec = Spec::new(Role::Client, linerate_contract::Layer::H3, Workload::Rr);
    for known in ["cubic", "reno", "bbr"] {
        spec.set_option("congestion", known);
        assert!(transport(&spec, Mode::Gso, STREAM_WINDOW, STREAM_WINDOW).is_ok(), "{known}");
    }
    spec.set_option("congestion", "vegas");
    let refused = transport(&spec, Mode::Gso, STREAM_WINDOW, STREAM_WINDOW).unwrap_err();
    assert_eq!(refused.exit_status(), 127);
    assert!(refused.to_string().contains("cubic, reno, bbr"), "{refused}");
}

#[test]
fn a_window_without_a_byte_is_refused() {
    let mut spec = Spec::new(Role::Server, linerate_contract::Layer::Quic, Workload::Rr);
    for (window, is_good) in [("1", true), ("16777216", true), ("0", false), ("4294967296", false)] {
        spec.set_option("stream_window", window);
        assert_eq!(transport(&spec, Mode::Gso, REQUEST_WINDOW, REQUEST_WINDOW).is_ok(), is_good, "{window}");
    }
}

/// A server of HTTP/3 that does what it likes: what its control stream begins with, and the whole of each
/// response's stream; or it resets the stream with a code.
#[derive(Clone)]
struct Odd {
    opening: &'static [u8],
    response: Result<&'static [u8], u32>,
}

impl ServerProtocol for Odd {
    const ALPN: &'static [u8] = b"h3";
    type Request = ();
    type PeerStream = ();

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        unreachable!("a test makes it")
    }

    fn opening(&self) -> Bytes {
        Bytes::from_static(self.opening)
    }

    fn feed(&self, _request: &mut (), _bytes: &[u8]) -> Result<(), u32> {
        Ok(())
    }

    fn finish(&self, _request: &()) -> Result<Content, u32> {
        let piece = Bytes::from_static(self.response?);
        Ok(Content { total: piece.len() as u64, piece })
    }
}

/// A control stream with no settings.
const SETTINGS: &[u8] = &[0, 4, 0];
/// Status 200, and a body of two bytes.
const GOOD: &[u8] = &[1, 3, 0, 0, 0xc0 | 25, 0, 2, b'o', b'k'];

/// The result of eight requests on one connection, four at the same time.
fn against(opening: &'static [u8], response: Result<&'static [u8], u32>) -> Done {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut spec = Spec::new(Role::Server, linerate_contract::Layer::H3, Workload::Rr);
    (spec.listen, spec.threads) = (Some("127.0.0.1:0".parse().unwrap()), 1);
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    spec.tls = Some(Tls { certificate, key, ..Tls::default() });
    let (threads, address) = QuicServer::threads(&spec, &Odd { opening, response }).unwrap();
    for (server, service) in threads {
        std::thread::spawn(move || server.run(service));
    }
    let mut spec = Spec::new(Role::Client, linerate_contract::Layer::H3, Workload::Rr);
    (spec.connect, spec.connections, spec.operations) = (Some(address), 1, Some(8));
    (spec.timeout_ns, spec.tls) = (Nanos(2_000_000_000), Some(Tls::default()));
    spec.request = Some(Request { insecure: true, host: Some("localhost".into()), ..Request::default() });
    spec.set_option("streams", 4);
    let layer = <Quic<H3> as crate::layer::Layer>::new(&spec, true).unwrap();
    let stop = Arc::new(EventFd::new().unwrap());
    let waiter = Waiter::from_spec(&spec).unwrap();
    let meter = Meter::new(&spec, spec.operations).unwrap();
    let engine = Engine::<_, Multiplexed<true>>::new(layer, meter, 1, None, waiter, None, stop).unwrap();
    let (meter, cpu) = engine.run();
    meter.done(cpu)
}

fn errors(done: &Done) -> Vec<(ErrorKind, u64)> {
    done.errors.0.iter().map(|(kind, count)| (*kind, *count)).collect()
}

#[test]
fn responses_that_break_the_protocol_fail_with_their_kinds() {
    let good = against(SETTINGS, Ok(GOOD));
    assert_eq!((good.operations, good.errors.total()), (8, 0), "{:?}", good.errors);
    for (response, kind) in [
        // Nothing; fields alone that are cut; a body that is cut; data in front of the fields.
        (&[][..], ErrorKind::EmptyResponse),
        (&GOOD[..3], ErrorKind::EmptyResponse),
        (&GOOD[..8], ErrorKind::Truncated),
        (&[0, 1, b'x'], ErrorKind::Malformed),
        // Status 404; a field of the dynamic table; a frame of HTTP/2.
        (&[1, 3, 0, 0, 0xc0 | 27], ErrorKind::WrongStatus),
        (&[1, 3, 0, 0, 0x80], ErrorKind::Malformed),
        (&[6, 0], ErrorKind::Malformed),
    ] {
        let done = against(SETTINGS, Ok(response));
        assert_eq!(errors(&done), [(kind, 8)], "{response:x?}");
    }
}

#[test]
fn streams_that_are_reset_and_connections_that_end_are_counted_by_code() {
    let done = against(SETTINGS, Err(0x10b));
    assert_eq!(errors(&done), [(ErrorKind::Reset, 8)]);
    assert_eq!(done.streams.unwrap().resets.get("request_rejected"), Some(&8));
    // No settings, and a stream of pushes: the client ends the connection.
    for opening in [&[0, 7, 1, 0][..], &[1, 0]] {
        let done = against(opening, Ok(GOOD));
        assert!(errors(&done).iter().all(|(kind, _)| *kind == ErrorKind::Malformed), "{:?}", done.errors);
    }
}

#[test]
fn a_server_that_looks_at_no_stream_is_not_asked_for_ever() {
    let done = against(&[0, 4, 0, 7, 1, 0], Ok(GOOD));
    assert_eq!((done.operations + done.errors.total(), done.in_flight), (8, 0), "{:?}", done.errors);
    assert!(done.streams.unwrap().goaways.contains_key("goaway"));
}
