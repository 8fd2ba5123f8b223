//! Events of a server's datagrams: responses, the streams of the server's own, the end of a connection.

use super::protocol::{ClientProtocol, Fault};
use super::{Lane, Quic, QuicConnection, write};
use crate::cause::note;
use crate::layer::quic::{note_lost, open_stream};
use crate::layer::wire::tls;
use crate::layer::{Ending, LaneEnd, Wrong};
use bytes::Bytes;
use linerate_contract::{Cause, ErrorKind, Nanos, clock};
use quinn_proto::{
    Connection, ConnectionError, Dir, Event, ReadError, ReadableError, StreamEvent, StreamId, VarInt,
};

impl<P: ClientProtocol> Quic<P> {
    #[inline]
    pub(super) fn take_events(&mut self, connection: &mut QuicConnection<P>) -> Result<(), ErrorKind> {
        while let Some(event) = connection.connection.poll_endpoint_events() {
            if let Some(event) = connection.endpoint.handle_event(connection.handle, event) {
                connection.connection.handle_event(event);
            }
        }
        while let Some(event) = connection.connection.poll() {
            match event {
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    self.read(connection, id);
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read_peer(connection, id),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = connection.connection.streams().accept(Dir::Uni) {
                        connection.peers.push((id, P::PeerStream::default()));
                        self.read_peer(connection, id);
                    }
                }
                Event::Stream(StreamEvent::Writable { id }) => {
                    let lane = connection.lanes.iter_mut().find(|lane| lane.stream == Some(id));
                    if let Some(lane) = lane {
                        let request = lane.own.as_ref().unwrap_or(&self.requests[lane.request as usize]);
                        write(&mut connection.connection, request, id, &mut lane.sent);
                    }
                }
                Event::Stream(StreamEvent::Available { dir: Dir::Bi }) if connection.next.is_none() => {
                    connection.next = connection.connection.streams().open(Dir::Bi);
                }
                Event::Connected => self.connected(connection),
                Event::ConnectionLost { reason } => self.lose(connection, &reason),
                _ => {}
            }
        }
        connection.lost.map_or(Ok(()), Err)
    }

    #[cold]
    fn connected(&mut self, connection: &mut QuicConnection<P>) {
        connection.is_connected = true;
        self.established += 1;
        self.security.get_or_insert_with(tls::security);
        open_stream(&mut connection.connection, self.protocol.opening());
        connection.next = connection.connection.streams().open(Dir::Bi);
    }

    /// The end of a connection.
    #[cold]
    fn lose(&mut self, connection: &mut QuicConnection<P>, reason: &ConnectionError) {
        if let ConnectionError::ApplicationClosed(close) = reason {
            *self.counts.goaways.entry(P::name(close.error_code.into_inner())).or_default() += 1;
        }
        let kind = note_lost(reason, connection.is_connected);
        connection.lost.get_or_insert(kind);
        connection.closes = true;
        // The peer gets the reason, as below.
        let _ = self.transmit(connection);
    }

    /// Reads what has arrived of a response.
    #[inline]
    fn read(&mut self, connection: &mut QuicConnection<P>, id: StreamId) {
        let Some(at) = connection.lanes.iter().position(|lane| lane.stream == Some(id)) else { return };
        let QuicConnection { lanes, kept, held, .. } = connection;
        let Lane { reader, begun, request, first, last_event, .. } = &mut lanes[at];
        let mut has_begun = false;
        let mut stream = connection.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut is_whole = false;
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    has_begun = true;
                    let before = P::kept(reader);
                    let fed = self.protocol.feed(reader, &chunk.bytes);
                    *kept = *kept + P::kept(reader) - before;
                    if !held.keeps(*kept) {
                        let text = "unfinished frames and fields of more than this end keeps";
                        let kind = note(ErrorKind::Malformed, || Cause::new(text));
                        break Some(Err(Fault { ends: Some(P::OVERLOAD), ..kind.into() }));
                    }
                    if let Err(fault) = fed {
                        break Some(Err(fault));
                    }
                    let count = P::take_events(reader);
                    if count > 0 {
                        let now = clock::now();
                        let end =
                            LaneEnd::Events { count, last: std::mem::replace(last_event, now), at: now };
                        self.ended.push(Ending { begun: *begun, first: Nanos::ZERO, request: *request, end });
                    }
                }
                Ok(None) => {
                    is_whole = true;
                    break Some(self.protocol.finish(reader));
                }
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(code)) => {
                    let name = P::name(code.into_inner());
                    let text = format!("the server ended the stream: {name}");
                    *self.counts.resets.entry(name).or_default() += 1;
                    break Some(Err(note(ErrorKind::Reset, || Cause::new(text)).into()));
                }
            }
        };
        let _ = chunks.finalize();
        match end {
            // The rest arrives later.
            None if has_begun && *first == Nanos::ZERO => *first = clock::now(),
            None => {}
            Some(Ok(response)) => {
                connection.has_answered = true;
                self.over(connection, at, LaneEnd::Answered(response));
            }
            Some(Err(fault)) => {
                let Fault { kind, status, .. } = fault;
                self.over(connection, at, LaneEnd::Failed(Wrong { kind, reusable: true, status }));
                if !is_whole {
                    abandon::<P>(&mut connection.connection, id);
                }
                if let Some(code) = fault.ends {
                    self.end(connection, code);
                }
            }
        }
    }

    /// Reads a unidirectional stream of the peer's.
    #[cold]
    fn read_peer(&mut self, connection: &mut QuicConnection<P>, id: StreamId) {
        let Some(at) = connection.peers.iter().position(|(peer, _)| *peer == id) else { return };
        let mut stream = connection.connection.recv_stream(id);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => return,
        };
        let (mut outcome, mut is_over) = (Ok(None), false);
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match self.protocol.feed_peer(&mut connection.peers[at].1, &chunk.bytes) {
                    Ok(goaway) => outcome = outcome.map(|last: Option<u64>| goaway.or(last)),
                    Err(code) => outcome = Err(code),
                },
                Ok(None) | Err(ReadError::Reset(_)) => {
                    let end = self.protocol.finish_peer(&connection.peers[at].1);
                    (outcome, is_over) = (outcome.and_then(|last| end.map(|()| last)), true);
                    break;
                }
                Err(ReadError::Blocked) => break,
            }
            if outcome.is_err() {
                break;
            }
        }
        let _ = chunks.finalize();
        let own = &connection.peers[at].1;
        let mut others = connection.peers.iter().filter(|(other, _)| *other != id);
        if let Some(code) = others.find_map(|(_, other)| P::are_too_many(own, other)) {
            outcome = Err(code);
        }
        if is_over {
            connection.peers.swap_remove(at);
        }
        match outcome {
            Ok(None) => {}
            Ok(Some(first)) => self.go_away(connection, first),
            Err(code) => self.end(connection, code),
        }
    }

    /// The peer looks at no stream from this one on (RFC 9114 section 5.2).
    #[cold]
    fn go_away(&mut self, connection: &mut QuicConnection<P>, first: u64) {
        connection.closes = true;
        *self.counts.goaways.entry("goaway".into()).or_default() += 1;
        // Streams that the server still works on may have responses that this read brings after this frame. A
        // connection on which nothing ends would be followed by others for ever.
        let keeps = connection.lanes.iter().any(|lane| lane.stream.is_some_and(|id| u64::from(id) < first));
        let is_again = connection.has_answered || keeps;
        for at in 0..connection.lanes.len() {
            let Some(stream) = connection.lanes[at].stream else { continue };
            if u64::from(stream) < first {
                continue;
            }
            let end = if is_again {
                LaneEnd::Withdrawn
            } else {
                let text = "the server ends the connection without a response: GOAWAY";
                let kind = note(ErrorKind::EmptyResponse, || Cause::new(text));
                LaneEnd::Failed(Wrong::without_response(kind))
            };
            self.over(connection, at, end);
        }
    }

    /// The peer has broken the protocol.
    #[cold]
    fn end(&mut self, connection: &mut QuicConnection<P>, code: u32) {
        let now = self.shared.epoch.instant(clock::now());
        connection.connection.close(now, VarInt::from_u32(code), Bytes::new());
        let text = format!("the server breaks the protocol: {}", P::name(code.into()));
        connection.lost.get_or_insert(note(ErrorKind::Malformed, || Cause::new(text)));
        // The peer gets the reason; a failed send is no further failure.
        let _ = self.transmit(connection);
    }

    /// The operation of a lane is over.
    #[inline]
    pub(super) fn over(&mut self, connection: &mut QuicConnection<P>, at: usize, end: LaneEnd) {
        let lane = &mut connection.lanes[at];
        lane.stream = None;
        connection.under_way -= 1;
        if end == LaneEnd::Withdrawn {
            self.order.give_back(lane.request);
        }
        self.ended.push(Ending { begun: lane.begun, first: lane.first, request: lane.request, end });
    }
}

/// Both directions of a stream are of no use any more.
#[cold]
pub(super) fn abandon<P: ClientProtocol>(connection: &mut Connection, stream: StreamId) {
    let code = VarInt::from_u32(P::DONE);
    // What has ended already needs no end.
    let _ = connection.send_stream(stream).reset(code);
    let _ = connection.recv_stream(stream).stop(code);
}
