//! The client's end of a session, as the engine's [`Layer`]: an operation is a round trip, or a whole
//! transfer.

use super::framing::Framing;
use super::script::{Operation, Script, round_trip::RoundTrip, stream::StreamClient};
use super::{LARGEST_MESSAGE, Session, most_reads, room};
use crate::cause::note;
use crate::layer::opener::Opener;
use crate::layer::transfer::{Content, UNTIL_TIME_IS_OVER};
use crate::layer::wire::plain::connected;
use crate::layer::wire::{Received, Room, Wire, Wires};
use crate::layer::{Flow, Layer, Progress, Response};
use crate::refusal::Refusal;
use crate::socket::stream_error;
use crate::{clock, tcp_info};
use linerate_contract::{Cause, Direction, Done, ErrorKind, Nanos, Spec, TcpInfo, page};
use linerate_proto::websocket::End;
use linerate_proto::websocket::frame::Opcode;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{Shutdown, shutdown};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// An operation, and the data that all connections share for it.
pub trait ClientKind: Clone + Send + 'static {
    type Script: Operation;

    /// # Errors
    /// The spec lacks something; the message is a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    fn script(&self) -> Self::Script;
}

/// Messages of a server that speaks first.
const MOST_GREETINGS: u64 = 1_000;

/// `rr`.
#[derive(Debug, Clone)]
pub struct RoundTrips {
    message: Arc<[u8]>,
    /// `options.text` and `options.greetings`, for WebSocket.
    kind: Opcode,
    greetings: u64,
}

impl ClientKind for RoundTrips {
    type Script = RoundTrip;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        if !(1..=LARGEST_MESSAGE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_MESSAGE} bytes")));
        }
        let kind = match spec.option("text") {
            None => Opcode::Binary,
            Some("yes") => Opcode::Text,
            Some(other) => {
                return Err(Refusal::BadSpec(format!("\"options.text\" is \"yes\" or absent: {other:?}")));
            }
        };
        let greetings = spec.number("greetings", 0..=MOST_GREETINGS)?.unwrap_or(0);
        Ok(Self { message: page(spec.size as usize).into(), kind, greetings })
    }

    fn script(&self) -> RoundTrip {
        RoundTrip::new(self.message.clone(), self.kind, self.greetings)
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
        let (direction, content) = (direction(spec)?, Content::new(spec)?);
        if spec.bytes.is_none()
            && (spec.layer != linerate_contract::Layer::Tcp || direction == Direction::Both)
        {
            let text = "a stream by time both ways, or over another layer than tcp";
            return Err(Refusal::Unsupported(text.into()));
        }
        Ok(Self { direction, content, bytes: spec.bytes.unwrap_or(UNTIL_TIME_IS_OVER) })
    }

    fn script(&self) -> StreamClient {
        StreamClient::new(self.direction, self.content.clone(), self.bytes)
    }
}

/// The direction of a stream, for both ends.
pub(super) fn direction(spec: &Spec) -> Result<Direction, Refusal> {
    let direction = spec.direction()?;
    if direction == Direction::Both && spec.layer != linerate_contract::Layer::Tcp {
        return Err(Refusal::Unsupported("a stream both ways over this layer".into()));
    }
    Ok(direction)
}

/// The sessions of one thread.
#[derive(Debug)]
pub struct Sessions<C, F, K> {
    opener: Opener<C>,
    kind: K,
    spec: Arc<Spec>,
    room: Room,
    most_reads: usize,
    input: Box<[u8]>,
    framing: PhantomData<fn() -> F>,
}

impl<C: Clone, F, K: Clone> Clone for Sessions<C, F, K> {
    fn clone(&self) -> Self {
        Self {
            opener: self.opener.clone(),
            kind: self.kind.clone(),
            spec: self.spec.clone(),
            room: self.room,
            most_reads: self.most_reads,
            input: self.input.clone(),
            framing: PhantomData,
        }
    }
}

/// The connection has ended, or was ended by the peer, within an operation.
#[cold]
fn note_end(script: &impl Operation, kind: ErrorKind) -> ErrorKind {
    let how = match kind {
        ErrorKind::Reset => "the server reset the connection",
        ErrorKind::EmptyResponse | ErrorKind::Truncated => "the server closed the connection",
        _ => return kind,
    };
    note(kind, || Cause::new(format!("{how} {}", script.progress())))
}

/// The peer has ended the conversation.
#[cold]
fn cut(script: &impl Operation) -> ErrorKind {
    note_end(script, script.cut())
}

/// One connection.
#[derive(Debug)]
pub struct SessionConnection<W, F, S> {
    socket: OwnedFd,
    established: bool,
    session: Session<W, F, S>,
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
        let room = room(spec);
        Ok(Self {
            opener: Opener::new(spec)?,
            kind: K::new(spec)?,
            spec: Arc::new(spec.clone()),
            room,
            most_reads: most_reads(room),
            input: vec![0; room.input].into(),
            framing: PhantomData,
        })
    }

    #[inline]
    fn open(&mut self) -> Result<Self::Connection, ErrorKind> {
        let socket = self.opener.dialer.open()?;
        self.opener.dialer.without_delay(&socket)?;
        let framing = F::new(End::Client, &self.spec).map_err(|_| ErrorKind::Failed)?;
        let session = Session::new(self.opener.wire(self.room)?, framing, self.kind.script());
        Ok(SessionConnection { socket, established: false, session })
    }

    #[inline]
    fn establish(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        if connection.established {
            return Ok(Flow::Done);
        }
        if connected(&connection.socket)? == Flow::Blocked {
            return Ok(Flow::Blocked);
        }
        let established = connection.session.establish(&connection.socket, &mut self.input);
        let flow = established.map_err(|kind| note_end(connection.session.script(), kind))?;
        if flow == Flow::Done {
            connection.established = true;
            self.opener.count_handshake(&mut connection.session.wire);
        }
        Ok(flow)
    }

    #[inline]
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        // Without a handshake, a message is blocked as long as the connection is not established.
        if (C::Wire::SHAKES || F::SHAKES) && self.establish(connection)? == Flow::Blocked {
            return Ok(Flow::Blocked);
        }
        let SessionConnection { session, socket, .. } = connection;
        session.send(socket).map_err(|kind| note_end(session.script(), kind))
    }

    #[inline]
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Progress, ErrorKind> {
        let (session, socket) = (&mut connection.session, &connection.socket);
        for _ in 0..self.most_reads {
            let mut blocked = false;
            if K::Script::DUPLEX {
                session.script().begin_turn();
                blocked = session.send(socket)? == Flow::Blocked;
                if !blocked && session.script().ends_half() {
                    shutdown(socket.as_raw_fd(), Shutdown::Write).map_err(stream_error)?;
                }
                if !blocked && let Some(bytes) = session.script().complete() {
                    return Ok(Progress::Complete(Response {
                        bytes,
                        verified: true,
                        reusable: true,
                        status: 0,
                    }));
                }
                if !session.script().listens() {
                    return Ok(if blocked { Progress::Blocked } else { Progress::Unfinished });
                }
            }
            let received = session.receive(socket, &mut self.input);
            let received = received.map_err(|kind| note_end(session.script(), kind))?;
            match received {
                Received::More | Received::Drained => {}
                Received::Nothing if blocked => return Ok(Progress::Blocked),
                Received::Nothing if K::Script::DUPLEX && session.script().has_more() => {}
                Received::Nothing => return Ok(Progress::Waiting),
                Received::End => return Err(cut(session.script())),
            }
            if !K::Script::DUPLEX
                && let Some(bytes) = session.script().complete()
            {
                return Ok(Progress::Complete(Response { bytes, verified: true, reusable: true, status: 0 }));
            }
            if session.is_over() {
                return Err(cut(session.script()));
            }
            if !K::Script::DUPLEX && session.owes() {
                // The rest is sent before the next message.
                session.send(socket)?;
            }
        }
        Ok(Progress::Unfinished)
    }

    fn can_send_again(&mut self, connection: &mut Self::Connection, kind: ErrorKind) -> bool {
        let session = &mut connection.session;
        if kind == ErrorKind::Reset {
            // The message met the end of the connection, and the close message may not be read yet.
            let _ = session.receive(&connection.socket, &mut self.input);
        }
        session.is_closed_in_order() && session.script().cut() == ErrorKind::EmptyResponse
    }

    fn finish(&mut self, connection: &mut Self::Connection) {
        connection.session.script().finish();
    }

    fn moved(&self, connection: &Self::Connection) -> u64 {
        connection.session.talk.script.moved()
    }

    fn tcp(&self, connection: &Self::Connection) -> Option<TcpInfo> {
        (self.spec.layer == linerate_contract::Layer::Tcp)
            .then(|| tcp_info::info(&connection.socket).ok())
            .flatten()
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

    fn counts(&self) -> Done {
        self.opener.counts()
    }
}
