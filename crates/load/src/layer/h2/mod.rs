//! HTTP/2 (RFC 9113) over TCP with prior knowledge (`h2c`) or TLS (`h2`): the client here, the server in
//! [`service`].
//!
//! Requests are calls of gRPC where `options.grpc` says so. The protocol is in `linerate_proto::h2`. A
//! connection has as many lanes as streams may be under way; the request is encoded once, and answers are
//! read in a buffer that all connections of a thread share.

mod requests;
mod rpc;
mod service;

use requests::Requests;
use rpc::{Calls, Messages};
pub use service::H2Service;

use crate::held::Held;
use crate::layer::http::STATUSES;
use crate::layer::http::verify::{Check, Verifier};
use crate::layer::wire::plain::connected;
use crate::layer::wire::{Received, Room, Silence, Sink, Wire, Wires};
use crate::layer::{Answer, Begun, Flow, LaneEnd, Lanes, Layer, MAX_READS, Reply};
use crate::refusal::Refusal;
use crate::socket::Dialer;
use linerate_contract::{ErrorKind, Nanos, Spec, StreamCounts};
use linerate_proto::h2::Code;
use linerate_proto::h2::client::{Answers, Client, EncodedRequest, Ended};
use linerate_proto::http::response::Head;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::vec::Drain;

/// As for HTTP/1.1; here it has the answers of many streams.
const BUFFER: usize = 64 << 10;
/// The most lanes of a connection: about ten times as many as servers allow.
const MOST_STREAMS: u64 = 1_000;

/// A thread's part of the layer.
#[derive(Debug, Clone)]
pub struct H2<C> {
    dialer: Dialer,
    connector: C,
    security: Option<String>,
    request: EncodedRequest,
    streams: u16,
    buffer: Box<[u8]>,
    reader: Reader,
}

/// What all connections of a thread need to read answers.
#[derive(Debug, Clone)]
struct Reader {
    verifier: Verifier,
    statuses: Box<[u64; STATUSES]>,
    /// Where operations are calls of gRPC.
    calls: Option<Calls>,
    ended: Vec<(Begun, LaneEnd)>,
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
    check: Check,
    /// Zero: the head of the answer has not arrived.
    status: u16,
    rpc_status: Option<u32>,
    messages: Messages,
}

impl<W> AsFd for H2Connection<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const ROOM: Room = Room { input: BUFFER, records: 1 };

impl<C: Wires> Layer for H2<C> {
    type Connection = H2Connection<C::Wire>;

    fn new(spec: &Spec, _persistent: bool) -> Result<Self, Refusal> {
        let (dialer, connector) = (Dialer::new(spec)?, C::new(spec)?);
        let request = spec.request.clone().unwrap_or_default();
        let host = request.host.clone().or_else(|| spec.connect.map(|address| address.to_string()));
        let host = host.expect("the dialer has checked \"connect\"");
        let scheme = if C::Wire::SHAKES { "https" } else { "http" };
        let path = spec.path.as_deref().unwrap_or("/");
        let streams = spec.number("streams", 1..=MOST_STREAMS)?.unwrap_or(1) as u16;
        let calls = Calls::of_client(spec)?;
        let request = match calls.is_some() {
            true => EncodedRequest::grpc(scheme, path, &host, &request, rpc::messages(spec)?)?,
            false => EncodedRequest::new(scheme, path, &host, &request)?,
        };
        Ok(Self {
            dialer,
            connector,
            security: None,
            request,
            streams,
            buffer: vec![0; BUFFER].into(),
            reader: Reader {
                verifier: Verifier::new(spec.expect)?,
                statuses: Box::new([0; STATUSES]),
                calls,
                ended: Vec::with_capacity(streams.into()),
                most: 0,
                goaways: CodeCounts::default(),
                resets: CodeCounts::default(),
            },
        })
    }

    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let socket = self.dialer.open()?;
        self.dialer.without_delay(&socket)?;
        let lanes = vec![LaneState::default(); self.streams.into()].into();
        Ok(H2Connection {
            socket,
            wire: self.connector.wire(ROOM)?,
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
        self.security = self.security.take().or_else(|| connection.wire.security());
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
                Received::End => return Err(ErrorKind::EmptyReply),
            }
        }
        Err(ErrorKind::Malformed)
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        let H2Connection { socket, wire, client, .. } = connection;
        wire.send(socket, &mut Requests { client, body: self.request.body() })
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Reply, ErrorKind> {
        match self.read(connection)? {
            Received::More => Ok(Reply::Unfinished),
            Received::Drained | Received::Nothing => Ok(Reply::Waiting),
            Received::End if connection.lanes.iter().any(|lane| lane.status != 0) => {
                Err(ErrorKind::Truncated)
            }
            Received::End => Err(ErrorKind::EmptyReply),
        }
    }

    fn close(&mut self, connection: &mut Self::Connection, _deadline: Nanos) {
        connection.client.close();
        // The work is done; a server closes in its own time.
        if self.send(connection).is_ok() {
            connection.wire.end();
            let _ = connection.wire.send(&connection.socket, &mut Silence);
        }
    }

    fn security(&self) -> Option<String> {
        self.security.clone()
    }

    fn statuses(&self) -> BTreeMap<String, u64> {
        let of_http = self.reader.statuses.iter().enumerate();
        let of_http = of_http.map(|(status, n)| (status.to_string(), *n));
        let of_calls = self.reader.calls.iter().flat_map(Calls::by_status);
        of_http.chain(of_calls).filter(|(_, n)| *n > 0).collect()
    }

    fn streams(&self) -> Option<StreamCounts> {
        let by_code = |counts: &CodeCounts| {
            let counted = counts.iter().zip(0..).filter(|(n, _)| **n > 0);
            counted.map(|(n, code)| (Code(code).to_string(), *n)).collect()
        };
        let Reader { most, calls, goaways, resets, .. } = &self.reader;
        let messages = calls.as_ref().map_or(0, |calls| calls.messages);
        Some(StreamCounts { most: *most, messages, goaways: by_code(goaways), resets: by_code(resets) })
    }
}

impl<C: Wires> Lanes for H2<C> {
    #[inline]
    fn has_room(&self, connection: &Self::Connection) -> bool {
        connection.client.has_room()
    }

    #[inline]
    fn start(&mut self, connection: &mut Self::Connection, begun: Begun) {
        let Some(lane) = connection.client.start(&self.request) else { return };
        connection.lanes[lane] =
            LaneState { begun, check: self.reader.verifier.begin(), ..LaneState::default() };
        self.reader.most = self.reader.most.max(connection.client.under_way());
    }

    #[inline]
    fn under_way(&self, connection: &Self::Connection) -> u32 {
        connection.client.under_way()
    }

    #[inline]
    fn ended(&mut self) -> Drain<'_, (Begun, LaneEnd)> {
        self.reader.ended.drain(..)
    }

    #[cold]
    fn expire(&mut self, connection: &mut Self::Connection, now: Nanos, timeout: Nanos) {
        for (lane, state) in connection.lanes.iter_mut().enumerate() {
            if state.begun.sent != Nanos::ZERO && now.since(state.begun.sent) >= timeout {
                self.reader.ended.push((state.begun, LaneEnd::Failed(ErrorKind::Timeout)));
                *state = LaneState::default();
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
            return Err(ErrorKind::Malformed);
        }
        if received.is_err() {
            // A GOAWAY with the reason, if the peer has broken the protocol.
            let _ = self.send(connection);
        }
        received
    }
}

struct Frames<'a> {
    client: &'a mut Client,
    lanes: &'a mut [LaneState],
    reader: &'a mut Reader,
}

impl Sink for Frames<'_> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        let has_answered = self.client.answered() > 0;
        let mut answers = LaneAnswers { lanes: self.lanes, reader: self.reader, has_answered };
        self.client.feed(bytes, &mut answers).map_err(|_| ErrorKind::Malformed)
    }
}

struct LaneAnswers<'a> {
    lanes: &'a mut [LaneState],
    reader: &'a mut Reader,
    /// The connection has brought an answer.
    has_answered: bool,
}

impl LaneAnswers<'_> {
    /// Whether the complete answer was compared.
    #[inline]
    fn complete(&mut self, lane: usize, bytes: u64) -> Result<bool, ErrorKind> {
        let LaneState { rpc_status, messages, .. } = &self.lanes[lane];
        self.reader.calls.as_mut().map_or(Ok(()), |calls| calls.complete(*rpc_status, messages))?;
        self.reader.verifier.answer(&self.lanes[lane].check, bytes)
    }

    /// The operation of a lane is over.
    #[inline]
    fn over(&mut self, lane: usize, end: LaneEnd) {
        let state = std::mem::take(&mut self.lanes[lane]);
        if state.status != 0 {
            self.reader.statuses[usize::from(state.status) % STATUSES] += 1;
        }
        if let Some(calls) = &mut self.reader.calls {
            calls.count(state.rpc_status);
        }
        self.reader.ended.push((state.begun, end));
    }
}

impl Answers for LaneAnswers<'_> {
    #[inline]
    fn head(&mut self, lane: usize, head: &Head) -> bool {
        self.lanes[lane].status = head.status;
        match self.reader.verifier.head(head) {
            Ok(()) => true,
            Err(kind) => {
                self.over(lane, LaneEnd::Failed(kind));
                false
            }
        }
    }

    #[inline]
    fn body(&mut self, lane: usize, at: u64, bytes: &[u8]) {
        self.reader.verifier.body(&mut self.lanes[lane].check, at, bytes);
        if self.reader.calls.is_some() {
            self.lanes[lane].messages.take(bytes);
        }
    }

    #[inline]
    fn rpc_content(&mut self, lane: usize) {
        self.lanes[lane].messages.are_typed();
    }

    #[inline]
    fn rpc_status(&mut self, lane: usize, status: u32) {
        if self.lanes[lane].rpc_status.replace(status).is_some() {
            self.lanes[lane].messages.have_two_statuses();
        }
    }

    #[inline]
    fn end(&mut self, lane: usize, bytes: u64, ended: Ended) {
        let end = match ended {
            Ended::Complete => match self.complete(lane, bytes) {
                Ok(verified) => LaneEnd::Answered(Answer { bytes, verified, reusable: true }),
                Err(kind) => LaneEnd::Failed(kind),
            },
            Ended::Malformed => LaneEnd::Failed(ErrorKind::Malformed),
            Ended::Reset(code) => {
                count(&mut self.reader.resets, code);
                LaneEnd::Failed(ErrorKind::Reset)
            }
            // A server that never answers would be asked for ever.
            Ended::Unprocessed(Code::NO_ERROR) if self.has_answered => LaneEnd::Withdrawn,
            Ended::Unprocessed(Code::NO_ERROR) => LaneEnd::Failed(ErrorKind::EmptyReply),
            Ended::Unprocessed(_) => LaneEnd::Failed(ErrorKind::Reset),
        };
        self.over(lane, end);
    }

    #[cold]
    fn goaway(&mut self, code: Code) {
        count(&mut self.reader.goaways, code);
    }
}

fn count(counts: &mut CodeCounts, code: Code) {
    counts[(code.0 as usize).min(counts.len() - 1)] += 1;
}
