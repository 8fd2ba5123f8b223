//! The server's end of a session.

use super::client::content;
use super::framing::Framing;
use super::script::{Script, echo::Echo, stream::StreamServer};
use super::{MAX_SESSION_READS, Session};
use crate::layer::Flow;
use crate::layer::transfer::Content;
use crate::layer::websocket::End;
use crate::layer::wire::{Received, Room, Wires};
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use linerate_contract::{Direction, ErrorKind, Spec};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// How a server handles received messages.
pub trait ServerKind: Clone + Send + 'static {
    type Script: Script;

    /// # Errors
    /// What the spec lacks, as a sentence.
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
    direction: Direction,
    content: Content,
}

impl ServerKind for Streams {
    type Script = StreamServer;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let (direction, content) = content(spec)?;
        Ok(Self { direction, content })
    }

    fn script(&self) -> StreamServer {
        StreamServer::new(self.direction, self.content.clone())
    }
}

/// A thread's end of the service.
#[derive(Debug)]
pub struct SessionService<A, F, K> {
    acceptor: A,
    kind: K,
    spec: Arc<Spec>,
    input: Box<[u8]>,
    framing: PhantomData<fn() -> F>,
}

impl<A: Clone, F, K: Clone> Clone for SessionService<A, F, K> {
    fn clone(&self) -> Self {
        let (acceptor, kind) = (self.acceptor.clone(), self.kind.clone());
        let (spec, input) = (self.spec.clone(), self.input.clone());
        Self { acceptor, kind, spec, input, framing: PhantomData }
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
            input: vec![0; Room::STREAM.input].into(),
            framing: PhantomData,
        })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut Self::Connection, ended: bool) -> Fate {
        // An error of the peer closes its connection only.
        self.work(socket, connection, ended).unwrap_or(Fate::Close)
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
                    self.acceptor.wire(Room::STREAM)?,
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
        for _ in 0..MAX_SESSION_READS {
            // Pending output is sent before further input is read: that bounds the memory.
            if session.send(socket)? == Flow::Blocked {
                return Ok(Fate::Write);
            }
            if session.is_over() {
                session.end(socket)?;
                return Ok(Fate::Close);
            }
            match session.receive(socket, &mut self.input)? {
                Received::Drained if !ended => {
                    return Ok(if session.send(socket)? == Flow::Blocked {
                        Fate::Write
                    } else if session.is_over() {
                        session.end(socket)?;
                        Fate::Close
                    } else {
                        Fate::Read
                    });
                }
                Received::More | Received::Drained => {}
                Received::Nothing => return Ok(Fate::Read),
                Received::End => return Ok(Fate::Close),
            }
        }
        Ok(Fate::Again)
    }
}
