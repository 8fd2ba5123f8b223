//! Code of the fuzz targets in `fuzz/`: each function takes bytes of a peer. A panic is a fault, and so is a
//! result that no input may have.
//!
//! `cargo test` runs all of them over `fuzz/seeds`, so that each finding stays mended.

pub use crate::layer::kcp::fuzz_kcp as kcp;
pub use crate::layer::quic::fuzz::{QuicEnds, fuzz_quic as quic};
pub use crate::layer::udp::fuzz_datagrams as datagrams;
pub use crate::layer::wire::tls::{fuzz_handshake as tls_handshake, fuzz_records as tls_records};

use crate::fuzz_input::{FuzzInput, connected, drain, put};
use crate::layer::http::{Http, HttpService};
use crate::layer::session::client::{RoundTrips, Sessions};
use crate::layer::session::framing::WebSocket;
use crate::layer::session::service::{Echoes, SessionService};
use crate::layer::wire::plain::PlainWires;
use crate::layer::wire::{Received, Room, Sink, Source, Wire, Wires};
use crate::layer::{Flow, Layer, Progress, Response, Wrong};
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use linerate_contract::{ErrorKind, Expect, Nanos, Role, Spec, Workload, page};
use linerate_proto::websocket::decoder::{Decoder, Receiver};
use linerate_proto::websocket::frame::Opcode;
use linerate_proto::websocket::mask::Key;
use linerate_proto::websocket::{End, upgrade};
use nix::sys::socket::{setsockopt, sockopt};
use std::cell::RefCell;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

/// Turns of one connection: far more than any input needs.
const MOST_TURNS: usize = 10_000;

/// Bytes of a peer that are not read yet, whether they are its last ones, and the bytes that it got.
#[derive(Debug, Default)]
struct Peer {
    sent: Vec<u8>,
    ended: bool,
    got: Vec<u8>,
}

/// Wires in memory: no system call in a turn of a server.
#[derive(Debug, Clone)]
struct MemoryWires;

impl Wires for MemoryWires {
    type Wire = Self;

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn wire(&self, _room: Room) -> Result<Self, ErrorKind> {
        Ok(Self)
    }
}

impl Wire for MemoryWires {
    const SHAKES: bool = false;

    fn establish(&mut self, _socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    fn send(&mut self, _socket: &OwnedFd, source: &mut impl Source) -> Result<Flow, ErrorKind> {
        let mut room = [0; 4096];
        PEER.with_borrow_mut(|peer| {
            while source.prepare() {
                if let Some([first, second]) = source.slices() {
                    peer.got.extend_from_slice(first);
                    peer.got.extend_from_slice(second);
                    let count = first.len() + second.len();
                    source.advance(count);
                } else {
                    let count = source.fill(&mut room);
                    peer.got.extend_from_slice(&room[..count]);
                }
            }
        });
        Ok(Flow::Done)
    }

    fn receive(
        &mut self,
        _socket: &OwnedFd,
        _input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind> {
        let (mut bytes, ended) = PEER.with_borrow_mut(|peer| (std::mem::take(&mut peer.sent), peer.ended));
        if bytes.is_empty() {
            return Ok(if ended { Received::End } else { Received::Nothing });
        }
        sink.take(&mut bytes)?;
        Ok(Received::Drained)
    }
}

/// Serves a connection that sends `pieces` and then its end; returns what the server sent.
fn serve<S: Service>(service: &mut S, pieces: &[&[u8]]) -> Vec<u8> {
    let mut connection = S::Connection::default();
    PEER.set(Peer::default());
    // For what a server does to its socket beside the wire; shutdown(2) succeeds more than once.
    thread_local!(static SOCKET: OwnedFd = connected().0);
    let mut turn = |ended: bool| {
        for _ in 0..MOST_TURNS {
            let before = PEER.with_borrow(|peer| peer.got.len());
            match SOCKET.with(|socket| service.ready(socket, &mut connection, ended)) {
                Fate::Close => return false,
                Fate::Read => return true,
                Fate::Write if PEER.with_borrow(|peer| peer.got.len()) == before => return true,
                Fate::Write | Fate::Again => {}
            }
        }
        panic!("a server that never waits");
    };
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        PEER.with_borrow_mut(|peer| peer.sent.extend_from_slice(piece));
        if !turn(false) {
            return PEER.take().got;
        }
    }
    PEER.with_borrow_mut(|peer| peer.ended = true);
    turn(true);
    PEER.take().got
}

/// `input` in pieces of this length.
fn pieces(input: &[u8], length: u8) -> Vec<&[u8]> {
    input.chunks(usize::from(length).max(1)).collect()
}

thread_local! {
    static PEER: RefCell<Peer> = RefCell::default();
    static HTTP: RefCell<HttpService<MemoryWires>> = RefCell::new(service("http"));
    static SESSIONS: RefCell<SessionService<MemoryWires, WebSocket, Echoes>> =
        RefCell::new(service("websocket"));
    static LISTENER: TcpListener = TcpListener::bind("127.0.0.1:0").expect("a free port");
}

fn service<S: Service>(layer: &str) -> S {
    let mut spec = Spec::new(Role::Server, layer.parse().expect("a known layer"), Workload::Rr);
    spec.size = 7;
    S::new(&spec).expect("a good spec")
}

/// Requests: the first byte is the length of the pieces they arrive in. The responses do not depend on it.
pub fn http_server(input: &[u8]) {
    let Some((length, requests)) = input.split_first() else { return };
    HTTP.with_borrow_mut(|service| {
        let whole = serve(service, &[requests]);
        assert_eq!(serve(service, &pieces(requests, *length)), whole);
    });
}

/// Frames of a client, behind an upgrade if the second byte is odd; the first is the length of the pieces.
pub fn websocket_server(input: &[u8]) {
    let mut input = FuzzInput(input);
    let (Some(length), Some(choice)) = (input.byte(), input.byte()) else { return };
    let head =
        if choice & 1 == 1 { upgrade::request("fuzz", "/", [7; 16], &[]).unwrap() } else { Vec::new() };
    let pieces: Vec<_> = [&head[..]].into_iter().chain(pieces(input.0, length)).collect();
    let output = SESSIONS.with_borrow_mut(|service| serve(service, &pieces));
    if choice & 1 == 1 {
        let end = upgrade::end_of_head(&output).expect("the upgrade is good");
        well_formed(End::Client, &output[end..]);
    }
}

/// Checks that the other end accepts the bytes that the engine sends.
fn well_formed(receiver: End, stream: &[u8]) {
    let outcome = Decoder::new(receiver).feed(&mut stream.to_vec(), &mut Nothing);
    outcome.expect("the engine does not break the protocol");
}

struct Nothing;

impl Receiver for Nothing {
    fn payload(&mut self, _bytes: &mut [u8], _key: Key) {}
    fn end_of_message(&mut self, _kind: Opcode) {}
    fn ping(&mut self, _payload: &[u8]) {}
    fn close(&mut self, _code: Option<u16>) {}
}

/// Runs operations of a client against a server that sends `pieces`, each behind what `open` makes of the
/// first request; returns what the client sent.
fn ask<L: Layer>(layer: &mut L, asked: u32, open: impl Fn(&[u8]) -> Vec<u8>, pieces: &[&[u8]]) -> Vec<u8> {
    let Ok(mut connection) = layer.open() else { return Vec::new() };
    let peer = LISTENER.with(|listener| listener.accept().expect("it has connected").0);
    peer.set_nonblocking(true).expect("it is open");
    let peer = OwnedFd::from(peer);
    // Without a port in TIME_WAIT for each input.
    setsockopt(&peer, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).expect("it is open");
    // A handshake sends its request first, and waits for the response.
    let (mut sent, mut opened) = (Vec::new(), false);
    for _ in 0..3 {
        let _ = layer.establish(&mut connection);
        sent.extend(drain(&peer));
        if !opened && !sent.is_empty() {
            put(&peer, &open(&sent));
            opened = true;
        }
    }
    layer.ask(&mut connection, asked);
    let (mut sending, mut due) = (true, 0);
    'pieces: for piece in pieces {
        put(&peer, piece);
        for _ in 0..MOST_TURNS {
            if sending {
                match layer.send(&mut connection) {
                    Ok(Flow::Done) => (sending, due) = (false, asked),
                    Ok(Flow::Blocked) => break,
                    Err(_) => break 'pieces,
                }
            }
            match layer.receive(&mut connection) {
                Ok(
                    Progress::Complete(Response { reusable, .. }) | Progress::Wrong(Wrong { reusable, .. }),
                ) => {
                    due -= 1;
                    if !reusable {
                        break 'pieces;
                    }
                    sending = due == 0;
                }
                Ok(Progress::Waiting | Progress::Blocked) => break,
                Ok(Progress::Unfinished) => {}
                Err(_) => break 'pieces,
            }
            sent.extend(drain(&peer));
        }
    }
    layer.close(&mut connection, Nanos::ZERO);
    sent.extend(drain(&peer));
    sent
}

fn client_spec(layer: &str) -> Spec {
    let mut spec = Spec::new(Role::Client, layer.parse().expect("a known layer"), Workload::Rr);
    let address = LISTENER.with(|listener| listener.local_addr().expect("it is bound"));
    (spec.connect, spec.size) = (Some(address), 5);
    spec
}

/// Responses to requests of which several are sent together; the first byte is the length of the pieces, the
/// second the number of requests and whether content is expected.
pub fn http_client(input: &[u8]) {
    thread_local!(static CLIENTS: RefCell<[Http<PlainWires>; 2]> = RefCell::new([false, true].map(|expects| {
        let mut spec = client_spec("http");
        spec.options.insert("pipeline".into(), "8".into());
        let page = page(5);
        spec.expect = expects.then(|| Expect::of_page(&page, 1));
        Http::new(&spec, true).expect("a good spec")
    })));
    let mut input = FuzzInput(input);
    let (Some(length), Some(choice)) = (input.byte(), input.byte()) else { return };
    CLIENTS.with_borrow_mut(|clients| {
        let asked = u32::from(choice >> 1) % 8 + 1;
        ask(&mut clients[usize::from(choice & 1)], asked, |_| Vec::new(), &pieces(input.0, length));
    });
}

/// Frames of a server, behind a good response to the upgrade; the first byte is the length of the pieces.
pub fn websocket_client(input: &[u8]) {
    thread_local!(static CLIENT: RefCell<Sessions<PlainWires, WebSocket, RoundTrips>> =
        RefCell::new(Sessions::new(&client_spec("websocket"), true).expect("a good spec")));
    let Some((length, frames)) = input.split_first() else { return };
    CLIENT.with_borrow_mut(|client| {
        let open = |request: &[u8]| upgrade::respond(request).unwrap_or_default();
        let sent = ask(client, 1, open, &pieces(frames, *length));
        let end = upgrade::end_of_head(&sent).expect("the request is sent first");
        well_formed(End::Server, &sent[end..]);
    });
}

#[cfg(test)]
#[path = "../../../fuzz/each_seed.rs"]
mod each_seed;

#[cfg(test)]
mod tests {
    use super::each_seed::each_seed;
    use super::*;
    use crate::layer::wire::tls::{TlsAcceptor, TlsConnector};
    use linerate_contract::Tls;

    #[test]
    fn every_target_accepts_its_seeds_and_changes_of_them() {
        each_seed("http_server", http_server);
        each_seed("http_client", http_client);
        each_seed("websocket_server", websocket_server);
        each_seed("websocket_client", websocket_client);
        each_seed("tls_records", tls_records);
        each_seed("kcp", kcp);
        each_seed("datagrams", datagrams);
        let made = rcgen::generate_simple_self_signed(["linerate.test".to_owned()]).unwrap();
        let (authority, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let mut spec = Spec::new(Role::Server, linerate_contract::Layer::Tls, Workload::Rr);
        let certificate = authority.clone();
        spec.tls = Some(Tls { certificate, key, authority, name: "linerate.test".into() });
        let quic_ends = QuicEnds::new(spec.tls.as_ref().unwrap());
        each_seed("quic", |input| quic(&quic_ends, input));
        let ends = (TlsAcceptor::new(&spec).unwrap(), TlsConnector::new(&spec).unwrap());
        each_seed("tls_handshake", |input| tls_handshake(&ends.0, &ends.1, input));
    }
}
