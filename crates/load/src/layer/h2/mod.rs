//! HTTP/2 (RFC 9113) over TCP with prior knowledge (`h2c`) or TLS (`h2`): the client here, the server in
//! [`service`].
//!
//! Requests are calls of gRPC where `options.grpc` says so. The protocol is in `linerate_proto::h2`. A
//! connection has as many lanes as streams may be under way; the request is encoded once, and responses are
//! read in a buffer that all connections of a thread share.

mod cause;
mod requests;
mod responses;
mod rpc;
mod service;

use requests::Requests;
use responses::Frames;
use rpc::{Calls, Messages};
pub use service::H2Service;

use crate::held::Held;
use crate::layer::http::verify::{Check, Verifier};
use crate::layer::http::{STATUSES, by_status, events};
use crate::layer::opener::Opener;
use crate::layer::order::{Numbering, Order};
use crate::layer::wire::plain::connected;
use crate::layer::wire::{Received, Room, Silence, Wire, Wires};
use crate::layer::{Begun, Ending, Flow, LaneEnd, Lanes, Layer, MAX_READS, Progress, Wrong};
use crate::refusal::Refusal;
use linerate_contract::{Done, ErrorKind, Expect, Nanos, Request, Spec, StreamCounts};
use linerate_proto::events::{EventKind, Events};
use linerate_proto::fields::Rendered;
use linerate_proto::h2::Code;
use linerate_proto::h2::client::{Client, EncodedRequest};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::vec::Drain;

/// As for HTTP/1.1; here it has the responses of many streams.
const BUFFER: usize = 64 << 10;
/// The most lanes of a connection: about ten times as many as servers allow.
const MOST_STREAMS: u64 = 1_000;

/// A thread's part of the layer.
#[derive(Debug, Clone)]
pub struct H2<C> {
    opener: Opener<C>,
    requests: Box<[EncodedRequest]>,
    numbers: Numbering,
    rendered: Rendered,
    /// Connections outlive an operation.
    persistent: bool,
    streams: u16,
    buffer: Box<[u8]>,
    reader: Reader,
}

/// The state of a thread that all its connections need to read responses.
#[derive(Debug, Clone)]
struct Reader {
    /// One for each request.
    verifiers: Box<[Verifier]>,
    order: Order,
    /// The details that are timed within responses.
    events: Option<EventKind>,
    statuses: Box<[u64; STATUSES]>,
    /// Where operations are calls of gRPC.
    calls: Option<Calls>,
    ended: Vec<Ending>,
    /// Lanes whose responses have begun in this read and have not ended.
    fresh: u32,
    /// The most streams under way on a connection.
    most: u32,
    goaways: CodeCounts,
    resets: CodeCounts,
}

/// Frames by code; the last one is for all without a name.
type CodeCounts = [u64; Code::NAMES.len() + 1];

/// One connection.
#[derive(Debug)]
pub struct H2Connection<W> {
    socket: OwnedFd,
    wire: W,
    client: Client,
    lanes: Box<[LaneState]>,
    held: Held,
}

/// The operation in a lane.
#[derive(Debug, Clone, Copy, Default)]
struct LaneState {
    /// Sent at zero: none.
    begun: Begun,
    request: u32,
    /// When the first byte of a response arrived that did not arrive at once, and the last event; else zero.
    first: Nanos,
    last_event: Nanos,
    events: Events,
    check: Check,
    /// Zero: the head of the response has not arrived.
    status: u16,
    /// The fault of the head: the rest is read all the same, for a stream that ends by itself.
    wrong: Option<ErrorKind>,
    rpc_status: Option<u32>,
    messages: Messages,
}

impl LaneState {
    #[inline]
    fn ending(&self, end: LaneEnd) -> Ending {
        Ending { begun: self.begun, first: self.first, request: self.request, end }
    }

    /// The lane has no operation; the next one writes the rest anew.
    #[inline]
    fn leave(&mut self) {
        (self.begun.sent, self.status) = (Nanos::ZERO, 0);
    }
}

impl<W> AsFd for H2Connection<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const ROOM: Room = Room { input: BUFFER, records: 1 };

impl<C: Wires> Layer for H2<C> {
    type Connection = H2Connection<C::Wire>;

    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal> {
        let opener = Opener::new(spec)?;
        let scheme = if C::Wire::SHAKES { "https" } else { "http" };
        let most = if persistent { MOST_STREAMS } else { 1 };
        let streams = spec.number("streams", 1..=most)?.unwrap_or(1) as u16;
        let calls = Calls::of_client(spec)?;
        let messages = rpc::messages(spec)?;
        let (mut requests, mut verifiers) = (Vec::new(), Vec::new());
        each_request(spec, |path, host, request, expect| {
            let encoded = match calls.is_some() {
                true => EncodedRequest::grpc(scheme, path, host, request, messages)?,
                false => EncodedRequest::new(scheme, path, host, request)?,
            };
            requests.push(encoded);
            verifiers.push(Verifier::new(expect)?);
            Ok(())
        })?;
        if let several @ [_, _, ..] = &mut requests[..] {
            several.iter_mut().zip(0..).for_each(|(request, number)| request.is_one_of_several(number));
        }
        Ok(Self {
            opener,
            requests: requests.into(),
            numbers: Numbering::new(spec),
            rendered: Rendered::default(),
            persistent,
            streams,
            buffer: vec![0; BUFFER].into(),
            reader: Reader {
                verifiers: verifiers.into(),
                order: Order::new(spec)?,
                events: events(spec)?,
                statuses: Box::new([0; STATUSES]),
                calls,
                ended: Vec::with_capacity(streams.into()),
                fresh: 0,
                most: 0,
                goaways: CodeCounts::default(),
                resets: CodeCounts::default(),
            },
        })
    }

    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let socket = self.opener.dialer.open()?;
        self.opener.dialer.without_delay(&socket)?;
        let lanes = vec![LaneState::default(); self.streams.into()].into();
        Ok(H2Connection {
            socket,
            wire: self.opener.wire(ROOM)?,
            client: Client::new(self.streams),
            lanes,
            held: Held::default(),
        })
    }

    /// Ends when the server's settings have arrived: they limit the streams.
    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if connected(&connection.socket)? == Flow::Blocked
            || connection.wire.establish(&connection.socket)? == Flow::Blocked
        {
            return Ok(Flow::Blocked);
        }
        self.opener.count_handshake(&mut connection.wire);
        for _ in 0..MAX_READS {
            if self.send(connection)? == Flow::Blocked {
                return Ok(Flow::Blocked);
            }
            if connection.client.is_open() {
                return Ok(Flow::Done);
            }
            match self.read(connection)? {
                Received::More | Received::Drained => {}
                Received::Nothing => return Ok(Flow::Blocked),
                Received::End => return Err(cause::no_settings(&connection.client)),
            }
        }
        Err(cause::too_much())
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        let H2Connection { socket, wire, client, .. } = connection;
        let sent = wire.send(socket, &mut Requests { client, requests: &self.requests });
        sent.map_err(cause::connection)
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Progress, ErrorKind> {
        match self.read(connection)? {
            Received::More => Ok(Progress::Unfinished),
            Received::Drained | Received::Nothing => Ok(Progress::Waiting),
            Received::End => {
                let has_begun = connection.lanes.iter().any(|lane| lane.status != 0);
                Err(cause::closed(&connection.client, has_begun))
            }
        }
    }

    fn can_send_again(&mut self, connection: &mut Self::Connection, _kind: ErrorKind) -> bool {
        connection.client.under_way() == 0
    }

    fn close(&mut self, connection: &mut Self::Connection, _deadline: Nanos) {
        connection.client.close();
        // The work is done; a server closes in its own time.
        if self.send(connection).is_ok() {
            connection.wire.end();
            let _ = connection.wire.send(&connection.socket, &mut Silence);
        }
    }

    fn counts(&self) -> Done {
        let by_code = |counts: &CodeCounts| {
            let counted = counts.iter().zip(0..).filter(|(n, _)| **n > 0);
            counted.map(|(n, code)| (Code(code).to_string(), *n)).collect()
        };
        let Reader { most, calls, goaways, resets, .. } = &self.reader;
        let messages = calls.as_ref().map_or(0, |calls| calls.messages);
        let (goaways, resets) = (by_code(goaways), by_code(resets));
        let mut statuses = by_status(&self.reader.statuses);
        statuses.extend(calls.iter().flat_map(Calls::by_status).filter(|(_, n)| *n > 0));
        Done {
            statuses,
            streams: Some(StreamCounts { most: *most, messages, goaways, resets }),
            ..self.opener.counts()
        }
    }
}

impl<C: Wires> Lanes for H2<C> {
    #[inline]
    fn has_room(&self, connection: &Self::Connection) -> bool {
        connection.client.has_room()
    }

    #[inline]
    fn start(&mut self, connection: &mut Self::Connection, begun: Begun) {
        let request = if self.requests.len() > 1 { self.reader.order.choose() } else { 0 };
        let encoded = &self.requests[request as usize];
        let lane = if encoded.varies() {
            encoded.render(&mut self.rendered, self.numbers.next(), self.numbers.seed);
            connection.client.start_varied(encoded, &self.rendered)
        } else {
            connection.client.start(encoded)
        };
        let Some(lane) = lane else { return };
        let check = self.reader.verifiers[request as usize].begin();
        connection.lanes[lane] = LaneState { begun, request, check, ..LaneState::default() };
        if !self.persistent {
            connection.client.retire();
        }
        self.reader.most = self.reader.most.max(connection.client.under_way());
    }

    #[inline]
    fn under_way(&self, connection: &Self::Connection) -> u32 {
        connection.client.under_way()
    }

    #[inline]
    fn ended(&mut self) -> Drain<'_, Ending> {
        self.reader.ended.drain(..)
    }

    #[cold]
    fn expire(&mut self, connection: &mut Self::Connection, now: Nanos, timeout: Nanos) {
        for (lane, state) in connection.lanes.iter_mut().enumerate() {
            if state.begun.sent != Nanos::ZERO && now.since(state.begun.sent) >= timeout {
                let state = std::mem::take(state);
                let late = LaneEnd::Failed(Wrong::without_response(ErrorKind::Timeout));
                self.reader.ended.push(state.ending(late));
                connection.client.cancel(lane);
                connection.client.retire();
            }
        }
    }

    fn is_over(&self, connection: &Self::Connection) -> bool {
        connection.client.is_over()
    }
}

impl<C: Wires> H2<C> {
    /// One look at the socket.
    #[inline]
    fn read(&mut self, connection: &mut H2Connection<C::Wire>) -> Result<Received, ErrorKind> {
        let H2Connection { socket, wire, client, lanes, held } = connection;
        let mut frames = Frames { client, lanes, reader: &mut self.reader };
        let received = wire.receive(socket, &mut self.buffer, &mut frames);
        if !held.keeps(client.kept()) {
            return Err(cause::too_much());
        }
        received.map_err(|kind| {
            // A GOAWAY with the reason, if the peer has broken the protocol.
            let _ = self.send(connection);
            cause::connection(kind)
        })
    }
}

/// Calls `add` with the path, host, request and expectation of each request of `spec`.
///
/// # Errors
/// As of `add`.
pub(in crate::layer) fn each_request(
    spec: &Spec,
    mut add: impl FnMut(&str, &str, &Request, Option<Expect>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let common = spec.request.clone().unwrap_or_default();
    let host = common.host.clone().or_else(|| spec.connect.map(|address| address.to_string()));
    let host = host.unwrap_or_else(|| "localhost".into());
    if spec.requests.is_empty() {
        return add(spec.path.as_deref().unwrap_or("/"), &host, &common, spec.expect);
    }
    spec.requests.iter().try_for_each(|one| {
        add(&one.path, one.request.host.as_deref().unwrap_or(&host), &one.request, one.expect)
    })
}
