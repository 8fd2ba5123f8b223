//! The client: a connection has a socket and an endpoint of its own, and as many lanes as streams may be
//! under way. Each operation is a stream: what is sent is the same for all, and sent without a copy.

mod events;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod protocol;

#[cfg(any(test, fuzzing))]
pub(super) use fuzz::Tested;
pub(crate) use protocol::{ClientProtocol, Fault};

use super::{Epoch, LONGEST, Outgoing, STREAM_WINDOW, mode, transport};
use crate::cause::note_errno;
use crate::held::Held;
use crate::layer::order::Order;
use crate::layer::wire::tls::{client_config, full_handshakes, server_name};
use crate::layer::{Begun, Ending, Flow, LaneEnd, Lanes, Layer, Progress, Wrong};
use crate::packets::{self, Inbox, Mode, widen_buffers};
use crate::refusal::Refusal;
use bytes::{Bytes, BytesMut};
use linerate_contract::{Done, ErrorKind, HandshakeCounts, Nanos, Spec, StreamCounts, clock};
use nix::errno::Errno;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, StreamId,
    VarInt,
};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::vec::Drain;

/// The most lanes of a connection, as over HTTP/2.
const MOST_STREAMS: u64 = 1_000;

/// Bytes that servers may send on all connections before this end has read them: two windows of a stream.
/// Each connection has an equal part, and [`LEAST_WINDOW`] at least.
const WINDOWS: u32 = 2 * STREAM_WINDOW;
/// The window of one among thousands of connections.
const LEAST_WINDOW: u32 = 12 << 10;

/// A thread's part of the layer.
pub(crate) struct Quic<P: ClientProtocol> {
    shared: Arc<Shared>,
    protocol: P,
    requests: Box<[Bytes]>,
    order: Order,
    inbox: Inbox,
    outgoing: Outgoing,
    ended: Vec<Ending>,
    security: Option<String>,
    counts: StreamCounts,
    /// Connections.
    established: u64,
}

/// The state that all threads have.
struct Shared {
    spec: Spec,
    mode: Mode,
    remote: SocketAddr,
    name: String,
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
    streams: u16,
    order: Order,
    /// Connections outlive an operation.
    persistent: bool,
    epoch: Epoch,
}

/// One connection.
pub(crate) struct QuicConnection<P: ClientProtocol> {
    socket: OwnedFd,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    lanes: Box<[Lane<P::Reader>]>,
    under_way: u32,
    peers: Vec<(StreamId, P::PeerStream)>,
    /// Bytes that the readers of all lanes keep.
    kept: usize,
    held: Held,
    /// The next operation's stream: the peer limits their number.
    next: Option<StreamId>,
    is_connected: bool,
    has_answered: bool,
    /// Nothing else begins: the peer closes, an operation took too long, or each has a connection.
    closes: bool,
    lost: Option<ErrorKind>,
    due: Nanos,
}

/// The operation in a lane.
#[derive(Debug, Clone, Default)]
struct Lane<R> {
    stream: Option<StreamId>,
    begun: Begun,
    request: u32,
    /// When the first byte of a response arrived that did not arrive at once, and the last event; else zero.
    first: Nanos,
    last_event: Nanos,
    reader: R,
    /// A request of its own, and bytes of the request so far.
    own: Option<Bytes>,
    sent: usize,
}

impl<P: ClientProtocol> AsFd for QuicConnection<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<P: ClientProtocol> Clone for Quic<P> {
    fn clone(&self) -> Self {
        Self::with(Arc::clone(&self.shared), self.protocol.clone())
    }
}

impl<P: ClientProtocol> Layer for Quic<P> {
    type Connection = QuicConnection<P>;
    const TIMED: bool = true;

    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal> {
        let mode = mode(spec)?;
        let remote = spec.connect.ok_or_else(|| Refusal::BadSpec("\"connect\" is missing".into()))?;
        drop(packets::connect(spec, mode)?);
        let mut tls = client_config(spec)?;
        tls.alpn_protocols = vec![P::ALPN.to_vec()];
        let tls = QuicClientConfig::try_from(tls)
            .map_err(|e| Refusal::Unsupported(format!("QUIC without TLS_AES_128_GCM_SHA256: {e}")))?;
        let mut client = ClientConfig::new(Arc::new(tls));
        let share = (WINDOWS / spec.connections.max(1)).max(LEAST_WINDOW);
        let mut transport = transport(spec, mode, STREAM_WINDOW, share)?;
        // No protocol here lets a server begin requests.
        transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
        client.transport_config(Arc::new(transport));
        let most = if persistent { MOST_STREAMS } else { 1 };
        let streams = spec.number("streams", 1..=most)?.unwrap_or(1) as u16;
        let shared = Shared {
            spec: spec.clone(),
            mode,
            remote,
            name: server_name(spec)?.to_str().into_owned(),
            endpoint: Arc::default(),
            client,
            streams,
            order: Order::new(spec)?,
            persistent,
            epoch: Epoch::now(),
        };
        Ok(Self::with(Arc::new(shared), P::new(spec)?))
    }

    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let Shared { spec, mode, remote, name, endpoint, client, streams, epoch, .. } = &*self.shared;
        let refused = |_| ErrorKind::DescriptorExhausted;
        let socket = packets::connect(spec, *mode).map_err(refused)??;
        widen_buffers(&socket, spec).map_err(refused)?;
        let mut endpoint = Endpoint::new(Arc::clone(endpoint), None, true, None);
        let now = epoch.instant(clock::now());
        let (handle, connection) =
            endpoint.connect(now, client.clone(), *remote, name).map_err(|_| ErrorKind::ConnectFailed)?;
        Ok(QuicConnection {
            socket,
            endpoint,
            handle,
            connection,
            lanes: vec![Lane::default(); usize::from(*streams)].into(),
            under_way: 0,
            peers: Vec::new(),
            kept: 0,
            held: Held::default(),
            next: None,
            is_connected: false,
            has_answered: false,
            closes: false,
            lost: None,
            due: Nanos::ZERO,
        })
    }

    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        self.advance(connection)?;
        self.transmit(connection)?;
        Ok(if connection.next.is_some() { Flow::Done } else { Flow::Blocked })
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        self.transmit(connection).map(|()| Flow::Done)
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Progress, ErrorKind> {
        let has_more = self.advance(connection)?;
        Ok(if has_more { Progress::Unfinished } else { Progress::Waiting })
    }

    fn can_send_again(&mut self, connection: &mut Self::Connection, _kind: ErrorKind) -> bool {
        connection.under_way == 0
    }

    fn due(&self, connection: &Self::Connection) -> Nanos {
        connection.due
    }

    fn close(&mut self, connection: &mut Self::Connection, _deadline: Nanos) {
        let now = self.shared.epoch.instant(clock::now());
        connection.connection.close(now, VarInt::from_u32(P::DONE), Bytes::new());
        // The work is done; what is lost of this ends by the server's own timeout.
        let _ = self.transmit(connection);
    }

    fn counts(&self) -> Done {
        // The state machine does not say whether a session was resumed; a client looks at a certificate in a
        // full handshake alone.
        let full = full_handshakes().min(self.established);
        Done {
            tls: self.security.clone(),
            handshakes: Some(HandshakeCounts { full, resumed: self.established - full }),
            statuses: self.protocol.statuses(),
            streams: Some(self.counts.clone()),
            ..Done::default()
        }
    }
}

impl<P: ClientProtocol> Lanes for Quic<P> {
    #[inline]
    fn has_room(&self, connection: &Self::Connection) -> bool {
        !connection.closes
            && connection.next.is_some()
            && (connection.under_way as usize) < connection.lanes.len()
    }

    #[inline]
    fn start(&mut self, connection: &mut Self::Connection, begun: Begun) {
        let Some(stream) = connection.next.take() else { return };
        let free = connection.lanes.iter_mut().find(|lane| lane.stream.is_none());
        let lane = free.expect("there is room for an operation");
        let request = if self.requests.len() > 1 { self.order.choose() } else { 0 };
        (lane.stream, lane.begun, lane.request, lane.sent) = (Some(stream), begun, request, 0);
        (lane.first, lane.last_event) = (Nanos::ZERO, Nanos::ZERO);
        self.protocol.begin(&mut lane.reader, request);
        connection.under_way += 1;
        connection.closes |= !self.shared.persistent;
        self.counts.most = self.counts.most.max(connection.under_way);
        connection.next = connection.connection.streams().open(Dir::Bi);
        lane.own = self.protocol.varied(request);
        let request = lane.own.as_ref().unwrap_or(&self.requests[request as usize]);
        write(&mut connection.connection, request, stream, &mut lane.sent);
    }

    #[inline]
    fn under_way(&self, connection: &Self::Connection) -> u32 {
        connection.under_way
    }

    #[inline]
    fn ended(&mut self) -> Drain<'_, Ending> {
        self.ended.drain(..)
    }

    #[cold]
    fn expire(&mut self, connection: &mut Self::Connection, now: Nanos, timeout: Nanos) {
        for at in 0..connection.lanes.len() {
            let Lane { stream: Some(stream), begun, .. } = connection.lanes[at] else { continue };
            if now.since(begun.sent) >= timeout {
                let late = LaneEnd::Failed(Wrong::without_response(ErrorKind::Timeout));
                self.over(connection, at, late);
                events::abandon::<P>(&mut connection.connection, stream);
                connection.closes = true;
            }
        }
    }

    fn is_over(&self, connection: &Self::Connection) -> bool {
        connection.closes || connection.lost.is_some()
    }
}

impl<P: ClientProtocol> Quic<P> {
    fn with(shared: Arc<Shared>, protocol: P) -> Self {
        Self {
            requests: protocol.requests(),
            order: shared.order.clone(),
            protocol,
            inbox: Inbox::new(shared.mode, LONGEST),
            outgoing: Outgoing::default(),
            ended: Vec::with_capacity(shared.streams.into()),
            security: None,
            counts: StreamCounts::default(),
            established: 0,
            shared,
        }
    }

    /// Takes what has arrived and what is due; whether the socket may have more.
    #[inline]
    fn advance(&mut self, connection: &mut QuicConnection<P>) -> Result<bool, ErrorKind> {
        let at = clock::now();
        let now = self.shared.epoch.instant(at);
        if at >= connection.due {
            connection.connection.handle_timeout(now);
        }
        let received = self.inbox.receive(&connection.socket, false);
        let QuicConnection { endpoint, connection: state, .. } = connection;
        let (outgoing, remote) = (&mut self.outgoing, self.shared.remote);
        if received.is_ok() {
            self.inbox.each(|_, bytes| {
                let data = BytesMut::from(bytes);
                match endpoint.handle(now, remote, None, None, data, &mut outgoing.batch) {
                    Some(DatagramEvent::ConnectionEvent(_, event)) => state.handle_event(event),
                    Some(DatagramEvent::Response(response)) => outgoing.take_response(response.size, None),
                    Some(DatagramEvent::NewConnection(incoming)) => endpoint.ignore(incoming),
                    None => {}
                }
            });
        }
        self.take_events(connection)?;
        match received {
            Ok(_) => Ok(self.inbox.is_full()),
            Err(Errno::ECONNREFUSED) => Err(refused(connection.is_connected)),
            Err(_) => Ok(false),
        }
    }

    #[inline]
    fn transmit(&mut self, connection: &mut QuicConnection<P>) -> Result<(), ErrorKind> {
        let now = self.shared.epoch.instant(clock::now());
        self.outgoing.take(&mut connection.connection, now, None);
        let sent = self.outgoing.send(&connection.socket, self.shared.mode);
        let due = connection.connection.poll_timeout();
        connection.due = due.map_or(Nanos(u64::MAX), |due| self.shared.epoch.nanos(due));
        match sent {
            Err(Errno::ECONNREFUSED) if !connection.is_connected => Err(refused(false)),
            _ => Ok(()),
        }
    }
}

/// An ICMP message says that nothing is bound to the port.
#[cold]
fn refused(is_connected: bool) -> ErrorKind {
    let kind = if is_connected { ErrorKind::Reset } else { ErrorKind::ConnectRefused };
    note_errno(kind, "a datagram to the server", Errno::ECONNREFUSED)
}

/// Writes the rest of a request, as far as windows let it.
#[inline]
fn write(connection: &mut Connection, request: &Bytes, stream: StreamId, sent: &mut usize) {
    let mut stream = connection.send_stream(stream);
    while *sent < request.len() {
        match stream.write_chunks(&mut [request.slice(*sent..)]) {
            Ok(written) => *sent += written.bytes,
            // A full window, or the peer does not want the rest: its response says why.
            Err(_) => return,
        }
    }
    // Once; later calls have no effect.
    let _ = stream.finish();
}
