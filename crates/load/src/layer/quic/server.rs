//! The server: threads, each with a socket and an endpoint of its own, that share nothing. The kernel gives
//! the datagrams of a client to one of them.

use super::{Epoch, LONGEST, Outgoing, REQUEST_WINDOW, mode, open_stream, transport};
use crate::layer::wire::tls::server_config;
use crate::packets::{self, DatagramServer, DatagramService, Inbox, Mode, widen_buffers};
use crate::process::{Signals, emit, spawn};
use crate::refusal::Refusal;
use crate::waiter::Waiter;
use bytes::{Bytes, BytesMut};
use linerate_contract::{Nanos, Spec};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, Incoming, ReadError,
    ServerConfig, StreamEvent, StreamId, VarInt,
};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

/// Connections of a thread: more are refused.
const MOST_CONNECTIONS: usize = 10_000;
/// Streams of a client at the same time, as over HTTP/2.
const MOST_STREAMS: u32 = 256;
/// Unidirectional streams: HTTP/3 needs three.
const MOST_PEER_STREAMS: u32 = 16;

/// What runs on the streams: the server's end.
pub(crate) trait ServerProtocol: Clone + Send + Sized + 'static {
    /// The name in the handshake (RFC 7301).
    const ALPN: &'static [u8];
    /// The state of a request.
    type Request: Default + Send;
    /// The state of a unidirectional stream of the client's.
    type PeerStream: Default + Send;

    /// # Errors
    /// What the spec lacks.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// What a connection's first unidirectional stream carries; it has one if there is something.
    fn opening(&self) -> Bytes;

    /// Bytes of a request.
    ///
    /// # Errors
    /// The code that the stream or the connection is ended with.
    fn feed(&self, request: &mut Self::Request, bytes: &[u8]) -> Result<(), u32>;

    /// The request is complete.
    ///
    /// # Errors
    /// As [`Self::feed`].
    fn finish(&self, request: &Self::Request) -> Result<Content, u32>;

    /// Bytes of a unidirectional stream.
    ///
    /// # Errors
    /// The code that the connection is ended with.
    fn feed_peer(&self, stream: &mut Self::PeerStream, bytes: &[u8]) -> Result<(), u32>;

    /// The end of such a stream.
    ///
    /// # Errors
    /// As [`Self::feed_peer`].
    fn finish_peer(&self, stream: &Self::PeerStream) -> Result<(), u32>;

    /// Whether this code concerns one request, and the connection is good for others.
    fn is_of_a_request(code: u32) -> bool;
}

/// An answer: `total` bytes, made of this piece again and again.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) piece: Bytes,
    pub(crate) total: u64,
}

/// Serves until SIGTERM.
///
/// # Errors
/// An invalid spec, or an address that is in use or not of this host.
pub(crate) fn run<P: ServerProtocol>(spec: &Spec) -> Result<(), Refusal> {
    let protocol = P::new(spec)?;
    let signals = Signals::claim()?;
    let (threads, address) = QuicServer::threads(spec, &protocol)?;
    for (server, service) in threads {
        spawn(move || server.run(service))?;
    }
    emit(&linerate_contract::Event::Ready { address });
    signals.wait();
    Ok(())
}

fn config<P: ServerProtocol>(spec: &Spec, mode: Mode) -> Result<ServerConfig, Refusal> {
    let mut tls = server_config(spec)?;
    tls.alpn_protocols = vec![P::ALPN.to_vec()];
    let tls = QuicServerConfig::try_from(tls)
        .map_err(|e| Refusal::Unsupported(format!("QUIC without TLS_AES_128_GCM_SHA256: {e}")))?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    let mut transport = transport(spec, mode, REQUEST_WINDOW)?;
    transport.max_concurrent_bidi_streams(VarInt::from_u32(MOST_STREAMS));
    transport.max_concurrent_uni_streams(VarInt::from_u32(MOST_PEER_STREAMS));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// The part of a thread.
pub(super) struct QuicServer<P: ServerProtocol> {
    endpoint: Endpoint,
    protocol: P,
    mode: Mode,
    outgoing: Outgoing,
    connections: HashMap<ConnectionHandle, Served<P>>,
    epoch: Epoch,
}

/// One connection.
struct Served<P: ServerProtocol> {
    connection: Connection,
    requests: HashMap<StreamId, P::Request>,
    peers: HashMap<StreamId, P::PeerStream>,
    /// Answers that windows have held up, with the bytes so far.
    answers: HashMap<StreamId, (Content, u64)>,
    due: Nanos,
    /// There was input since the last turn.
    is_fed: bool,
}

impl<P: ServerProtocol> QuicServer<P> {
    /// The parts of all threads, and their address.
    pub(super) fn threads(
        spec: &Spec,
        protocol: &P,
    ) -> Result<(Vec<(DatagramServer, Self)>, SocketAddr), Refusal> {
        let mut address = spec.listen.ok_or_else(|| Refusal::BadSpec("\"listen\" is missing".into()))?;
        if spec.threads == 0 {
            return Err(Refusal::BadSpec("\"threads\" must be at least 1".into()));
        }
        let mode = mode(spec)?;
        let (config, endpoint) = (Arc::new(config::<P>(spec, mode)?), Arc::<EndpointConfig>::default());
        let mut threads = Vec::new();
        for _ in 0..spec.threads {
            // The others have the port of the first one.
            let spec = Spec { listen: Some(address), ..spec.clone() };
            let (socket, bound) = packets::bind(&spec, mode, spec.threads > 1)?;
            address = bound;
            widen_buffers(&socket, &spec)?;
            let server = DatagramServer::new(socket, Waiter::from_spec(&spec)?, Inbox::new(mode, LONGEST))?;
            let service = Self {
                endpoint: Endpoint::new(Arc::clone(&endpoint), Some(Arc::clone(&config)), true, None),
                protocol: protocol.clone(),
                mode,
                outgoing: Outgoing::default(),
                connections: HashMap::new(),
                epoch: Epoch::now(),
            };
            threads.push((server, service));
        }
        Ok((threads, address))
    }
}

impl<P: ServerProtocol> DatagramService for QuicServer<P> {
    fn feed(&mut self, from: SocketAddr, bytes: &[u8], now: Nanos) {
        let Self { endpoint, outgoing, connections, epoch, .. } = self;
        let now = epoch.instant(now);
        match endpoint.handle(now, from, None, None, BytesMut::from(bytes), &mut outgoing.batch) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(served) = connections.get_mut(&handle) {
                    served.connection.handle_event(event);
                    served.is_fed = true;
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if connections.len() < MOST_CONNECTIONS => {
                accept(endpoint, outgoing, connections, incoming, now);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let refusal = endpoint.refuse(incoming, &mut outgoing.batch);
                outgoing.take_response(refusal.size, Some(from));
            }
            Some(DatagramEvent::Response(response)) => outgoing.take_response(response.size, Some(from)),
            None => {}
        }
    }

    /// Gives each connection that has something to do its turn.
    fn turn(&mut self, at: Nanos) -> Nanos {
        let Self { endpoint, protocol, outgoing, connections, epoch, .. } = self;
        let (now, mut next) = (epoch.instant(at), Nanos(u64::MAX));
        connections.retain(|handle, served| {
            if served.is_fed || served.due <= at {
                if served.due <= at {
                    served.connection.handle_timeout(now);
                }
                served.is_fed = false;
                while let Some(event) = served.connection.poll_endpoint_events() {
                    if let Some(event) = endpoint.handle_event(*handle, event) {
                        served.connection.handle_event(event);
                    }
                }
                served.take_events(protocol, now);
                let to = served.connection.remote_address();
                outgoing.take(&mut served.connection, now, Some(to));
                let due = served.connection.poll_timeout();
                served.due = due.map_or(Nanos(u64::MAX), |due| epoch.nanos(due));
                if served.connection.is_drained() {
                    while let Some(event) = served.connection.poll_endpoint_events() {
                        let _ = endpoint.handle_event(*handle, event);
                    }
                    return false;
                }
            }
            next = next.min(served.due);
            true
        });
        next
    }

    fn send(&mut self, socket: &OwnedFd) {
        let _ = self.outgoing.send(socket, self.mode);
    }
}

fn accept<P: ServerProtocol>(
    endpoint: &mut Endpoint,
    outgoing: &mut Outgoing,
    connections: &mut HashMap<ConnectionHandle, Served<P>>,
    incoming: Incoming,
    now: Instant,
) {
    let from = incoming.remote_address();
    match endpoint.accept(incoming, now, &mut outgoing.batch, None) {
        Ok((handle, connection)) => {
            let served = Served {
                connection,
                requests: HashMap::new(),
                peers: HashMap::new(),
                answers: HashMap::new(),
                due: Nanos::ZERO,
                is_fed: true,
            };
            connections.insert(handle, served);
        }
        Err(error) => {
            if let Some(response) = error.response {
                outgoing.take_response(response.size, Some(from));
            }
        }
    }
}

impl<P: ServerProtocol> Served<P> {
    fn take_events(&mut self, protocol: &P, now: Instant) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => open_stream(&mut self.connection, protocol.opening()),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.connection.streams().accept(dir) {
                        match dir {
                            Dir::Bi => drop(self.requests.insert(id, P::Request::default())),
                            Dir::Uni => drop(self.peers.insert(id, P::PeerStream::default())),
                        }
                        self.read(protocol, id, now);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(protocol, id, now),
                Event::Stream(StreamEvent::Writable { id }) => {
                    if let Some((content, sent)) = self.answers.remove(&id) {
                        self.write(id, content, sent);
                    }
                }
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.answers.remove(&id);
                    // The stream is one that is written.
                    let _ = self.connection.send_stream(id).reset(error_code);
                }
                _ => {}
            }
        }
    }

    /// Reads what has arrived on a stream, and answers a request that is complete.
    fn read(&mut self, protocol: &P, id: StreamId, now: Instant) {
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut is_cancelled = false;
        let is_over = loop {
            let fed = match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match (self.requests.get_mut(&id), self.peers.get_mut(&id)) {
                    (Some(request), _) => protocol.feed(request, &chunk.bytes),
                    (None, Some(peer)) => protocol.feed_peer(peer, &chunk.bytes),
                    (None, None) => Ok(()),
                },
                Ok(None) => break Ok(true),
                Err(ReadError::Blocked) => break Ok(false),
                Err(ReadError::Reset(_)) if id.dir() == Dir::Uni => break Ok(true),
                // Its answer is not wanted, too.
                Err(ReadError::Reset(code)) => {
                    is_cancelled = true;
                    break Err(code.into_inner() as u32);
                }
            };
            if let Err(code) = fed {
                break Err(code);
            }
        };
        let _ = chunks.finalize();
        let outcome = match is_over {
            Ok(false) => return,
            Ok(true) if id.dir() == Dir::Uni => {
                self.peers.remove(&id).map_or(Ok(()), |peer| protocol.finish_peer(&peer))
            }
            Ok(true) => match self.requests.remove(&id).map(|request| protocol.finish(&request)) {
                Some(Ok(content)) => return self.write(id, content, 0),
                Some(Err(code)) => Err(code),
                None => Ok(()),
            },
            Err(code) => Err(code),
        };
        match outcome {
            Err(code) if is_cancelled || id.dir() == Dir::Bi && P::is_of_a_request(code) => {
                self.requests.remove(&id);
                let code = VarInt::from_u32(code);
                // What has ended already needs no end.
                let _ = self.connection.send_stream(id).reset(code);
                let _ = self.connection.recv_stream(id).stop(code);
            }
            Err(code) => self.connection.close(now, VarInt::from_u32(code), Bytes::new()),
            Ok(()) => {}
        }
    }

    /// Writes an answer as far as windows let it.
    fn write(&mut self, id: StreamId, content: Content, mut sent: u64) {
        let mut stream = self.connection.send_stream(id);
        let length = content.piece.len() as u64;
        while sent < content.total {
            let from = sent % length;
            let count = (length - from).min(content.total - sent);
            let part = content.piece.slice(from as usize..(from + count) as usize);
            match stream.write_chunks(&mut [part]) {
                Ok(written) => sent += written.bytes as u64,
                Err(quinn_proto::WriteError::Blocked) => {
                    self.answers.insert(id, (content, sent));
                    return;
                }
                // The client wants no more of it.
                Err(_) => return,
            }
        }
        // Once; a stream that the client has stopped has ended.
        let _ = stream.finish();
    }
}
