//! The server: threads, each with a socket and an endpoint of its own, that share nothing. The kernel gives
//! the datagrams of a client to one of them.

mod admission;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod served;

#[cfg(any(test, fuzzing))]
pub(super) use fuzz::{Tested, config};

use super::{Epoch, LONGEST, Outgoing, mode, note_lost};
use crate::cause::{note, peer_failed, print_peers};
use crate::held::{Surplus, give_back};
use crate::packets::{self, DatagramServer, DatagramService, Inbox, Mode, widen_buffers};
use crate::process::{Signals, spawn};
use crate::refusal::Refusal;
use crate::waiter::Waiter;
use admission::{Admission, Configs, Handshakes};
use bytes::{Bytes, BytesMut};
use linerate_contract::{Cause, ErrorKind, Nanos, Spec};
use quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, EndpointEvent, Incoming};
use served::Served;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Connections of a thread: more are refused.
const MOST_CONNECTIONS: usize = 10_000;

/// The protocol on the streams: the server's end.
pub(crate) trait ServerProtocol: Clone + Send + Sized + 'static {
    /// The name in the handshake (RFC 7301).
    const ALPN: &'static [u8];
    /// The code of a connection whose requests keep too much.
    const OVERLOAD: u32 = 1;
    /// The state of a request.
    type Request: Default + Send;
    /// The state of a unidirectional stream of the client's.
    type PeerStream: Default + Send;

    /// # Errors
    /// The spec lacks something.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// The content of a connection's first unidirectional stream; empty: there is no stream.
    fn opening(&self) -> Bytes;

    /// Bytes of a request.
    ///
    /// # Errors
    /// The code that the stream or the connection is ended with.
    fn feed(&self, request: &mut Self::Request, bytes: &[u8]) -> Result<(), u32>;

    /// Bytes that a request under way keeps.
    fn kept(_request: &Self::Request) -> usize {
        0
    }

    /// The request is complete.
    ///
    /// # Errors
    /// As [`Self::feed`].
    fn finish(&self, request: &Self::Request) -> Result<Content, u32>;

    /// Bytes of a unidirectional stream.
    ///
    /// # Errors
    /// The code that the connection is ended with.
    fn feed_peer(&self, _stream: &mut Self::PeerStream, _bytes: &[u8]) -> Result<(), u32> {
        Ok(())
    }

    /// The code that the connection is ended with where the peer has both of these.
    fn are_too_many(_one: &Self::PeerStream, _other: &Self::PeerStream) -> Option<u32> {
        None
    }

    /// The end of such a stream.
    ///
    /// # Errors
    /// As [`Self::feed_peer`].
    fn finish_peer(&self, _stream: &Self::PeerStream) -> Result<(), u32> {
        Ok(())
    }

    /// The name of a code.
    fn name(code: u64) -> String {
        format!("code {code}")
    }

    /// Whether this code concerns one request, and the connection is good for others.
    fn is_of_a_request(_code: u32) -> bool {
        true
    }
}

/// A response: `total` bytes, made of this piece again and again.
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
    signals.serve(address);
    print_peers();
    Ok(())
}

/// The part of a thread.
pub(super) struct QuicServer<P: ServerProtocol> {
    endpoint: Endpoint,
    protocol: P,
    mode: Mode,
    outgoing: Outgoing,
    connections: HashMap<ConnectionHandle, Box<Served<P>>>,
    surplus: Surplus,
    handshakes: Handshakes,
    configs: Configs,
    threads: usize,
    epoch: Epoch,
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
        let (configs, endpoint) = (Configs::new::<P>(spec, mode)?, Arc::<EndpointConfig>::default());
        let mut threads = Vec::new();
        for _ in 0..spec.threads {
            // The others have the port of the first one.
            let spec = Spec { listen: Some(address), ..spec.clone() };
            let (socket, bound) = packets::bind(&spec, mode, spec.threads > 1)?;
            address = bound;
            widen_buffers(&socket, &spec)?;
            let server = DatagramServer::new(socket, Waiter::from_spec(&spec)?, Inbox::new(mode, LONGEST))?;
            let service = Self {
                endpoint: Endpoint::new(Arc::clone(&endpoint), Some(configs.next(0, 1)), true, None),
                protocol: protocol.clone(),
                mode,
                outgoing: Outgoing::default(),
                connections: HashMap::new(),
                surplus: Surplus::default(),
                handshakes: Handshakes::of_one_of(spec.threads),
                configs: configs.clone(),
                threads: spec.threads as usize,
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
        let at = epoch.instant(now);
        match endpoint.handle(at, from, None, None, BytesMut::from(bytes), &mut outgoing.batch) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(served) = connections.get_mut(&handle) {
                    served.connection.handle_event(event);
                    served.is_fed = true;
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(incoming, now),
            Some(DatagramEvent::Response(response)) => outgoing.take_response(response.size, Some(from)),
            None => {}
        }
    }

    /// Gives each connection that has something to do its turn.
    fn turn(&mut self, at: Nanos) -> Nanos {
        self.end_late_handshakes(at);
        let Self { endpoint, protocol, outgoing, connections, handshakes, epoch, .. } = self;
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
                served.take_events(protocol, handshakes, now);
                let to = served.connection.remote_address();
                outgoing.take(&mut served.connection, now, Some(to));
                let due = served.connection.poll_timeout();
                served.due = due.map_or(Nanos(u64::MAX), |due| epoch.nanos(due));
                if served.connection.is_drained() {
                    while let Some(event) = served.connection.poll_endpoint_events() {
                        let _ = endpoint.handle_event(*handle, event);
                    }
                    served.shakes_since.iter().for_each(|_| handshakes.end());
                    return false;
                }
            }
            next = next.min(served.due);
            true
        });
        if self.surplus.is_due(self.connections.len()) {
            self.connections.shrink_to_fit();
            give_back();
        }
        next
    }

    fn send(&mut self, socket: &OwnedFd) {
        let _ = self.outgoing.send(socket, self.mode);
    }
}

impl<P: ServerProtocol> QuicServer<P> {
    /// A client begins a connection.
    fn admit(&mut self, incoming: Incoming, now: Nanos) {
        let from = incoming.remote_address();
        if self.connections.len() >= MOST_CONNECTIONS {
            let refusal = self.endpoint.refuse(incoming, &mut self.outgoing.batch);
            return self.outgoing.take_response(refusal.size, Some(from));
        }
        match self.handshakes.admit(incoming.remote_address_validated()) {
            Admission::Validate => match self.endpoint.retry(incoming, &mut self.outgoing.batch) {
                Ok(retry) => self.outgoing.take_response(retry.size, Some(from)),
                Err(error) => self.endpoint.ignore(error.into_incoming()),
            },
            Admission::Replace => {
                self.end_oldest_handshake(now);
                self.accept(incoming, now);
            }
            Admission::Accept => self.accept(incoming, now),
        }
    }

    fn accept(&mut self, incoming: Incoming, now: Nanos) {
        let Self { endpoint, outgoing, connections, handshakes, configs, threads, epoch, .. } = self;
        let from = incoming.remote_address();
        let config = configs.next(connections.len(), *threads);
        match endpoint.accept(incoming, epoch.instant(now), &mut outgoing.batch, Some(config)) {
            Ok((handle, connection)) => {
                handshakes.begin(handle, now);
                connections.insert(handle, Box::new(Served::new(connection, now)));
            }
            Err(error) => {
                peer_failed(note_lost(&error.cause, false));
                if let Some(response) = error.response {
                    outgoing.take_response(response.size, Some(from));
                }
            }
        }
    }

    #[inline]
    fn end_late_handshakes(&mut self, now: Nanos) {
        while self.handshakes.late(now).is_some_and(|late| self.end_oldest_handshake(late)) {}
    }

    /// Forgets the oldest handshake without a word to its client, if it began by `latest`.
    #[cold]
    fn end_oldest_handshake(&mut self, latest: Nanos) -> bool {
        let Self { endpoint, connections, handshakes, .. } = self;
        let is_under_way = |handle: ConnectionHandle, at| {
            connections.get(&handle).is_some_and(|served| served.shakes_since == Some(at))
        };
        let Some((handle, _)) = handshakes.oldest(is_under_way).filter(|(_, at)| *at <= latest) else {
            return false;
        };
        connections.remove(&handle);
        handshakes.end();
        let text = "a handshake that its client did not end";
        peer_failed(note(ErrorKind::ConnectTimeout, || Cause::new(text)));
        let _ = endpoint.handle_event(handle, EndpointEvent::drained());
        true
    }
}
