//! The server's end of a session.

use super::client::direction;
use super::framing::Framing;
use super::script::{Script, echo::Echo, stream::StreamServer};
use super::{Session, most_reads, room};
use crate::cause::peer_failed;
use crate::layer::Flow;
use crate::layer::transfer::Content;
use crate::layer::wire::{Received, Room, Wires};
use crate::process::emit;
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use crate::tcp_info;
use linerate_contract::{Direction, ErrorKind, Event, Layer, Spec};
use linerate_proto::websocket::End;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How a server handles received messages.
pub trait ServerKind: Clone + Send + 'static {
    type Script: Script;

    /// # Errors
    /// The spec lacks something; the message is a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    fn script(&self) -> Self::Script;
}

/// `rr`.
#[derive(Debug, Clone)]
pub struct Echoes;

impl ServerKind for Echoes {
    type Script = Echo;

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn script(&self) -> Echo {
        Echo::default()
    }
}

/// `stream`.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Absent: each client has its own (`options.direction` is `any`).
    direction: Option<Direction>,
    content: Content,
    /// Transfers of each connection, within the last of which its figures are printed; 0 without figures.
    transfers: u64,
}

impl ServerKind for Streams {
    type Script = StreamServer;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let is_tcp = spec.layer == Layer::Tcp;
        let any = is_tcp && spec.option("direction") == Some("any");
        let direction = if any { None } else { Some(direction(spec)?) };
        let transfers = if is_tcp { spec.transfers()? } else { 0 };
        Ok(Self { direction, content: Content::new(spec)?, transfers })
    }

    fn script(&self) -> StreamServer {
        StreamServer::new(self.direction, self.content.clone(), self.transfers)
    }
}

/// A thread's end of the service.
#[derive(Debug)]
pub struct SessionService<A, F, K> {
    acceptor: A,
    kind: K,
    spec: Arc<Spec>,
    room: Room,
    input: Box<[u8]>,
    framing: PhantomData<fn() -> F>,
}

impl<A: Clone, F, K: Clone> Clone for SessionService<A, F, K> {
    fn clone(&self) -> Self {
        let (acceptor, kind) = (self.acceptor.clone(), self.kind.clone());
        let (spec, input) = (self.spec.clone(), self.input.clone());
        Self { acceptor, kind, spec, room: self.room, input, framing: PhantomData }
    }
}

/// One connection. The session is created when its socket is first ready.
#[derive(Debug)]
pub struct ServedSession<W, F, S> {
    session: Option<Box<Session<W, F, S>>>,
    established: bool,
}

impl<W, F, S> Default for ServedSession<W, F, S> {
    fn default() -> Self {
        Self { session: None, established: false }
    }
}

impl<A: Wires, F: Framing + 'static, K: ServerKind> Service for SessionService<A, F, K> {
    type Connection = ServedSession<A::Wire, F, K::Script>;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self {
            acceptor: A::new(spec)?,
            kind: K::new(spec)?,
            spec: Arc::new(spec.clone()),
            room: room(spec),
            input: vec![0; room(spec).input].into(),
            framing: PhantomData,
        })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate {
        // An error of the peer closes its connection only.
        self.work(socket, connection, ended).unwrap_or_else(|kind| {
            peer_failed(kind);
            Fate::Close
        })
    }
}

impl<A: Wires, F: Framing, K: ServerKind> SessionService<A, F, K> {
    fn work(
        &mut self,
        socket: &OwnedFd,
        connection: &mut ServedSession<A::Wire, F, K::Script>,
        ended: bool,
    ) -> Result<Fate, ErrorKind> {
        let session = match &mut connection.session {
            Some(session) => session,
            none => {
                let framing = F::new(End::Server, &self.spec).map_err(|_| ErrorKind::Failed)?;
                none.insert(Box::new(Session::new(
                    self.acceptor.wire(self.room)?,
                    framing,
                    self.kind.script(),
                )))
            }
        };
        if !connection.established {
            if session.establish(socket, &mut self.input)? == Flow::Blocked {
                return Ok(Fate::Write);
            }
            connection.established = true;
        }
        let mut is_drained = false;
        for _ in 0..most_reads(self.room) {
            session.script().begin_turn();
            let blocked = session.send(socket)? == Flow::Blocked;
            if !blocked {
                if session.is_over() {
                    session.end(socket)?;
                    return Ok(Fate::Close);
                }
                if session.script().takes_leave() {
                    print_figures(socket);
                    continue;
                }
            }
            // Pending output is sent before further input is read: that bounds the memory. A stream keeps
            // none.
            let listens = session.script().listens() && (K::Script::DUPLEX || !blocked);
            if is_drained || !listens {
                return Ok(if blocked {
                    Fate::Write
                } else if session.script().has_more() {
                    Fate::Again
                } else {
                    Fate::Read
                });
            }
            match session.receive(socket, &mut self.input)? {
                Received::More => {}
                Received::Drained => is_drained = !ended,
                Received::Nothing => is_drained = true,
                Received::End if session.script().half_ended() => {}
                Received::End => return Ok(Fate::Close),
            }
        }
        Ok(Fate::Again)
    }
}

/// Prints the connection's `TCP_INFO`, before the client can see the end of the stream: a reader that waits
/// for the client then has it.
fn print_figures(socket: &OwnedFd) {
    if let Ok(info) = tcp_info::info(socket) {
        emit(&Event::Tcp(info));
    }
}
