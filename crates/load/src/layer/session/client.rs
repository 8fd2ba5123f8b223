//! The client's end of a session, as the engine's [`Layer`]: an operation is a round trip, or a whole
//! transfer.

use super::framing::Framing;
use super::script::{Operation, round_trip::RoundTrip, stream::StreamClient};
use super::{MAX_SESSION_READS, Session};
use crate::clock;
use crate::layer::tcp::LARGEST_MESSAGE;
use crate::layer::transfer::Content;
use crate::layer::websocket::End;
use crate::layer::wire::{Received, Room, Wires};
use crate::layer::{Answer, Flow, Layer, Reply};
use crate::refusal::Refusal;
use crate::socket::{Dialer, connect_error};
use linerate_contract::{Direction, Done, ErrorKind, Nanos, Spec, page};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Extra timeout of a transfer for each byte: a second for 8 MiB. An interpreter is ten times as fast.
const NANOS_PER_BYTE: u64 = 120;

/// An operation, and the data that all connections share for it.
pub trait ClientKind: Clone + Send + 'static {
    type Script: Operation;

    /// # Errors
    /// What the spec lacks, as a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    fn script(&self) -> Self::Script;
}

/// `rr`.
#[derive(Debug, Clone)]
pub struct RoundTrips(Arc<[u8]>);

impl ClientKind for RoundTrips {
    type Script = RoundTrip;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if !(1..=LARGEST_MESSAGE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_MESSAGE} bytes")));
        }
        Ok(Self(page(spec.size as usize).into()))
    }

    fn script(&self) -> RoundTrip {
        RoundTrip::new(self.0.clone())
    }
}

/// `stream`.
#[derive(Debug, Clone)]
pub struct Transfers {
    direction: Direction,
    content: Content,
    bytes: u64,
}

impl ClientKind for Transfers {
    type Script = StreamClient;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let (direction, content) = content(spec)?;
        let bytes = spec.bytes.filter(|bytes| *bytes > 0);
        let bytes = bytes
            .ok_or_else(|| Refusal::BadSpec("a stream over this layer needs \"bytes\" above 0".into()))?;
        Ok(Self { direction, content, bytes })
    }

    fn script(&self) -> StreamClient {
        StreamClient::new(self.direction, self.content.clone(), self.bytes)
    }
}

/// Direction and content, for both ends.
pub(super) fn content(spec: &Spec) -> Result<(Direction, Content), Refusal> {
    let direction = spec.direction()?;
    if direction == Direction::Both {
        return Err(Refusal::Unsupported("a stream both ways over this layer".into()));
    }
    Ok((direction, Content::new(spec)?))
}

/// The spec of a `stream` for the engine: its operations are transfers. With a duration they follow one
/// another until the time is over.
///
/// # Errors
/// What the spec lacks, as a sentence.
pub fn as_operations(spec: &Spec) -> Result<Spec, Refusal> {
    let transfers = spec.transfers()?;
    let bytes = spec.bytes.unwrap_or(0);
    Ok(Spec {
        operations: spec.duration_ns.is_none().then(|| transfers.saturating_mul(spec.connections.into())),
        timeout_ns: Nanos(spec.timeout_ns.0.saturating_add(bytes.saturating_mul(NANOS_PER_BYTE))),
        ..spec.clone()
    })
}

/// The result in writes, from the result in transfers.
#[must_use]
pub fn as_writes(spec: &Spec, done: Done) -> Done {
    let bytes = spec.bytes.unwrap_or(0);
    let verified = if done.verified == done.operations { done.bytes.0 } else { 0 };
    Done { operations: done.operations * bytes.div_ceil(spec.size), verified, connect: None, ..done }
}

/// The sessions of one thread.
#[derive(Debug)]
pub struct Sessions<C, F, K> {
    dialer: Dialer,
    connector: C,
    kind: K,
    spec: Arc<Spec>,
    security: Option<String>,
    input: Box<[u8]>,
    framing: PhantomData<fn() -> F>,
}

impl<C: Clone, F, K: Clone> Clone for Sessions<C, F, K> {
    fn clone(&self) -> Self {
        Self {
            dialer: self.dialer.clone(),
            connector: self.connector.clone(),
            kind: self.kind.clone(),
            spec: self.spec.clone(),
            security: self.security.clone(),
            input: self.input.clone(),
            framing: PhantomData,
        }
    }
}

/// One connection. The session is boxed to keep a slot small.
#[derive(Debug)]
pub struct SessionConnection<W, F, S> {
    socket: OwnedFd,
    established: bool,
    session: Box<Session<W, F, S>>,
}

impl<W, F, S> AsFd for SessionConnection<W, F, S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<C: Wires, F: Framing + 'static, K: ClientKind> Layer for Sessions<C, F, K> {
    type Connection = SessionConnection<C::Wire, F, K::Script>;

    fn new(spec: &Spec, _persistent: bool) -> Result<Self, Refusal> {
        // What a framing refuses in the spec is refused before the first connection.
        F::new(End::Client, spec)?;
        Ok(Self {
            dialer: Dialer::new(spec)?,
            connector: C::new(spec)?,
            kind: K::new(spec)?,
            spec: Arc::new(spec.clone()),
            security: None,
            input: vec![0; Room::STREAM.input].into(),
            framing: PhantomData,
        })
    }

    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let socket = self.dialer.open()?;
        setsockopt(&socket, sockopt::TcpNoDelay, &true).map_err(connect_error)?;
        let framing = F::new(End::Client, &self.spec).map_err(|_| ErrorKind::Failed)?;
        let session = Session::new(self.connector.wire(Room::STREAM)?, framing, self.kind.script());
        Ok(SessionConnection { socket, established: false, session: Box::new(session) })
    }

    #[inline]
    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if connection.established {
            return Ok(Flow::Done);
        }
        // An empty send returns the state of the connection (tcp_sendmsg()).
        match send(connection.socket.as_raw_fd(), &[], MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => {}
            Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
            Err(errno) => return Err(connect_error(errno)),
        }
        let flow = connection.session.establish(&connection.socket, &mut self.input)?;
        if flow == Flow::Done {
            connection.established = true;
            self.security = self.security.take().or_else(|| connection.session.security());
        }
        Ok(flow)
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if self.establish(connection)? == Flow::Blocked {
            return Ok(Flow::Blocked);
        }
        connection.session.send(&connection.socket)
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Reply, ErrorKind> {
        let (session, socket) = (&mut connection.session, &connection.socket);
        for _ in 0..MAX_SESSION_READS {
            if let Some(bytes) = session.script().complete() {
                return Ok(Reply::Complete(Answer { bytes, verified: true, reusable: true }));
            }
            match session.receive(socket, &mut self.input)? {
                Received::More | Received::Drained => {}
                Received::Nothing => return Ok(Reply::Waiting),
                Received::End => return Err(session.script().cut()),
            }
            if session.is_over() {
                return Err(session.script().cut());
            }
            if session.owes() {
                // The rest is sent before the next message.
                session.send(socket)?;
            }
        }
        Ok(Reply::Unfinished)
    }

    fn close(&mut self, connection: &mut Self::Connection, deadline: Nanos) {
        let (session, socket) = (&mut connection.session, &connection.socket);
        // Whether it is answered is the peer's affair; the work is done.
        let Ok(true) = session.close(socket) else { return };
        while !session.is_over() {
            let left = deadline.since(clock::now()).0.div_ceil(1_000_000).min(60_000) as u16;
            match session.receive(socket, &mut self.input) {
                Ok(Received::More | Received::Drained) if left > 0 => {}
                Ok(Received::Nothing) if left > 0 => {
                    let _ = poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], left);
                }
                _ => return,
            }
        }
        let _ = session.end(socket);
    }

    fn security(&self) -> Option<String> {
        self.security.clone()
    }
}
