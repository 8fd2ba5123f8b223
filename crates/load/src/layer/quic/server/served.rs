//! One connection of a server: requests in, responses out.

use super::admission::{Handshakes, needs_streams};
use super::{Content, ServerProtocol};
use crate::cause::{note, peer_failed};
use crate::held::Held;
use crate::layer::quic::{note_lost, open_stream};
use bytes::Bytes;
use linerate_contract::{Cause, ErrorKind, Nanos};
use quinn_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt};
use std::collections::HashMap;
use std::time::Instant;

/// Streams of a client at the same time, as over HTTP/2.
const MOST_STREAMS: u32 = 256;

/// One connection.
pub(super) struct Served<P: ServerProtocol> {
    pub(super) connection: Connection,
    requests: HashMap<StreamId, P::Request>,
    peers: HashMap<StreamId, P::PeerStream>,
    /// Responses that windows have held up, with the bytes so far.
    responses: HashMap<StreamId, (Content, u64)>,
    pub(super) due: Nanos,
    /// There was input since the last turn.
    pub(super) is_fed: bool,
    /// When its handshake began, while that is under way.
    pub(super) shakes_since: Option<Nanos>,
    /// The client may have [`MOST_STREAMS`].
    has_all_streams: bool,
    /// Bytes that all requests keep.
    kept: usize,
    held: Held,
}

impl<P: ServerProtocol> Served<P> {
    pub(super) fn new(connection: Connection, now: Nanos) -> Self {
        Self {
            connection,
            requests: HashMap::new(),
            peers: HashMap::new(),
            responses: HashMap::new(),
            due: Nanos::ZERO,
            is_fed: true,
            shakes_since: Some(now),
            has_all_streams: false,
            kept: 0,
            held: Held::default(),
        }
    }

    pub(super) fn take_events(&mut self, protocol: &P, handshakes: &mut Handshakes, now: Instant) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => {
                    if self.shakes_since.take().is_some() {
                        handshakes.end();
                    }
                    open_stream(&mut self.connection, protocol.opening());
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    if !self.has_all_streams
                        && needs_streams(self.connection.streams().remote_open_streams(dir))
                    {
                        self.has_all_streams = true;
                        self.connection.set_max_concurrent_streams(Dir::Bi, VarInt::from_u32(MOST_STREAMS));
                    }
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
                    if let Some((content, sent)) = self.responses.remove(&id) {
                        self.write(id, content, sent);
                    }
                }
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.responses.remove(&id);
                    // The stream is one that is written.
                    let _ = self.connection.send_stream(id).reset(error_code);
                }
                Event::ConnectionLost { reason } => {
                    peer_failed(note_lost(&reason, self.shakes_since.is_none()));
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
                    (Some(request), _) => {
                        let before = P::kept(request);
                        let fed = protocol.feed(request, &chunk.bytes);
                        self.kept = self.kept + P::kept(request) - before;
                        if self.held.keeps(self.kept) { fed } else { Err(P::OVERLOAD) }
                    }
                    (None, Some(peer)) => protocol.feed_peer(peer, &chunk.bytes),
                    (None, None) => Ok(()),
                },
                Ok(None) => break Ok(true),
                Err(ReadError::Blocked) => break Ok(false),
                Err(ReadError::Reset(_)) if id.dir() == Dir::Uni => break Ok(true),
                // Its response is not wanted, too.
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
        let is_over = match self.excess(id) {
            Some(code) => Err(code),
            None => is_over,
        };
        let outcome = match is_over {
            Ok(false) => return,
            Ok(true) if id.dir() == Dir::Uni => {
                self.peers.remove(&id).map_or(Ok(()), |peer| protocol.finish_peer(&peer))
            }
            Ok(true) => match self.take_request(id).map(|request| protocol.finish(&request)) {
                Some(Ok(content)) => return self.write(id, content, 0),
                Some(Err(code)) => Err(code),
                None => Ok(()),
            },
            Err(code) => Err(code),
        };
        if let (false, Err(code)) = (is_cancelled, outcome) {
            let text = || format!("the client breaks the protocol: {}", P::name(code.into()));
            peer_failed(note(ErrorKind::Malformed, || Cause::new(text())));
        }
        match outcome {
            Err(code) if is_cancelled || id.dir() == Dir::Bi && P::is_of_a_request(code) => {
                self.take_request(id);
                let code = VarInt::from_u32(code);
                // What has ended already needs no end.
                let _ = self.connection.send_stream(id).reset(code);
                let _ = self.connection.recv_stream(id).stop(code);
            }
            Err(code) => self.connection.close(now, VarInt::from_u32(code), Bytes::new()),
            Ok(()) => {}
        }
    }

    /// Panics if more is kept than there may be, or the sum of it is wrong.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check(&self) {
        assert_eq!(self.requests.values().map(P::kept).sum::<usize>(), self.kept);
        assert!(self.requests.len() <= MOST_STREAMS as usize, "{} requests", self.requests.len());
        assert!(self.responses.len() <= MOST_STREAMS as usize, "{} responses", self.responses.len());
        let most = crate::layer::quic::MOST_PEER_STREAMS as usize;
        assert!(self.peers.len() <= most, "{} streams of the peer's", self.peers.len());
    }

    /// The code for a stream of the peer's that it has twice.
    fn excess(&self, id: StreamId) -> Option<u32> {
        let own = self.peers.get(&id)?;
        let mut others = self.peers.iter().filter(|(other, _)| **other != id);
        others.find_map(|(_, other)| P::are_too_many(own, other))
    }

    /// A request that is over.
    #[inline]
    fn take_request(&mut self, id: StreamId) -> Option<P::Request> {
        let request = self.requests.remove(&id)?;
        self.kept -= P::kept(&request);
        // Less is always granted.
        self.held.keeps(self.kept);
        Some(request)
    }

    /// Writes a response as far as windows let it.
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
                    self.responses.insert(id, (content, sent));
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
