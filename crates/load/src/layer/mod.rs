//! Protocols, one file each: `layer/<name>.rs`.
//!
//! A layer connects, sends a request, and receives and verifies the response. The workload decides when and
//! how often. Engines are compiled for each pair (see [`crate::workload`]), so calls are direct.

pub mod echo;
pub mod h2;
pub mod http;
pub mod kcp;
mod opener;
mod order;
pub mod quic;
pub mod session;
mod transfer;
pub mod udp;
pub mod wire;

use crate::Refusal;
use linerate_contract::{Done, ErrorKind, Nanos, Spec, TcpInfo};
use std::os::fd::AsFd;
use std::vec::Drain;

/// Whether a step got to its end or has to wait for the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Done,
    Blocked,
}

/// A complete response that is what the spec expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Payload bytes.
    pub bytes: u64,
    /// The content of the response was compared, too.
    pub verified: bool,
    /// The connection can carry another operation.
    pub reusable: bool,
    /// The status, where the protocol has one; else 0.
    pub status: u16,
}

/// A complete response that is not what the spec expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrong {
    pub kind: ErrorKind,
    /// The connection can carry another operation.
    pub reusable: bool,
    /// The status, where the protocol has one; else 0.
    pub status: u16,
}

impl Wrong {
    /// The end of an operation without a whole response.
    pub fn without_response(kind: ErrorKind) -> Self {
        Self { kind, reusable: false, status: 0 }
    }
}

/// The outcome of a call of [`Layer::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Complete(Response),
    Wrong(Wrong),
    /// The response is not complete, and the socket is empty.
    Waiting,
    /// The response is not complete, and the socket is full: something is still to be sent.
    Blocked,
    /// The response is not complete, and the connection's turn is over; the socket may have more.
    Unfinished,
}

/// Reads of a connection in a turn: then the others have theirs, and deadlines are checked. A peer that sends
/// without end cannot occupy a thread. The price of a turn, an `epoll_ctl(2)` and an `epoll_wait(2)`, is
/// below 1 % of 16 reads of 64 KiB.
pub(crate) const MAX_READS: u32 = 16;

/// One thread's end of a layer: shared buffers and templates. Connections carry only their own state.
pub trait Layer: Clone + Send + Sized + 'static {
    /// The state of one connection; small, because there may be 10,000. Dropping it closes the connection.
    type Connection: AsFd + Send;

    /// Whether connections have deadlines of their own: [`Self::due`]. Their timeouts are the layer's then,
    /// except in lanes, and unread input ends the next wait at once.
    const TIMED: bool = false;
    /// How long a thread spins before it blocks, unless the spec has `options.spin`.
    const SPIN: Nanos = Nanos::ZERO;
    /// Whether requests differ: [`Self::asked`] and [`Self::answered`]. Lanes say it with each end.
    const SEVERAL: bool = false;

    /// Prepares what all connections share. `persistent`: connections outlive an operation.
    ///
    /// # Errors
    /// The spec lacks something; the message is a sentence.
    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal>;

    /// Begins a connection without waiting for it.
    ///
    /// # Errors
    /// The kind of failure that this operation counts as.
    fn open(&mut self) -> Result<Self::Connection, ErrorKind>;

    /// Ends a connection that the peer has closed, and keeps its socket for the next one. Returns false if
    /// the socket cannot be kept; the caller then drops it.
    fn leave(&mut self, _connection: &mut Self::Connection) -> bool {
        false
    }

    /// Begins a connection on the socket of one that was left.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn reopen(&mut self, connection: &mut Self::Connection) -> Result<(), ErrorKind> {
        *connection = self.open()?;
        Ok(())
    }

    /// Establishes the connection, including a TLS handshake.
    ///
    /// # Errors
    /// The kind of failure that an operation on this connection counts as.
    fn establish(&mut self, _connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    /// The largest number of requests in flight on a connection; above 1 is pipelining (RFC 9112 section
    /// 9.3.2).
    fn depth(&self) -> u32 {
        1
    }

    /// The next send contains `requests` requests, at most [`Self::depth`]; the same number of responses
    /// follows.
    fn ask(&mut self, _connection: &mut Self::Connection, _requests: u32) {}

    /// Sends (the rest of) a request. Returns [`Flow::Blocked`] while the connection is not established.
    ///
    /// # Errors
    /// The kind of failure that this operation counts as.
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind>;

    /// Whether the peer has answered a request that is not sent in full; [`Self::receive`] then has the
    /// response, and the rest of the request is not sent (RFC 9112 section 9.5). Called after a send that was
    /// blocked or has failed.
    fn has_early_response(&mut self, _connection: &mut Self::Connection) -> bool {
        false
    }

    /// Whether the operation under way may be sent again: the connection served others before, and the peer
    /// has ended it with this kind of error without a byte of a response.
    fn can_send_again(&mut self, _connection: &mut Self::Connection, _kind: ErrorKind) -> bool {
        false
    }

    /// Receives available bytes, with [`MAX_READS`] reads at most. Reads until the socket is empty, since the
    /// engine uses edge-triggered events; otherwise returns [`Progress::Unfinished`].
    ///
    /// # Errors
    /// A socket error, a violation of the protocol, or a response that is not the expected one, after which
    /// the connection is of no use.
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Progress, ErrorKind>;

    /// Whether bytes of the response under way have arrived.
    fn has_begun(&self, _connection: &Self::Connection) -> bool {
        false
    }

    /// The events that the last call of [`Self::receive`] brought, where the spec asks for them.
    fn take_events(&mut self) -> u32 {
        0
    }

    /// The number of the request under way, of several.
    fn asked(&self, _connection: &Self::Connection) -> Option<u32> {
        None
    }

    /// The number of the request that the last response belongs to, of several.
    fn answered(&self) -> u32 {
        0
    }

    /// The time is over: an operation without another end ends, also one that has not begun to send.
    fn finish(&mut self, _connection: &mut Self::Connection) {}

    /// When the connection has something to do without an event.
    fn due(&self, _connection: &Self::Connection) -> Nanos {
        Nanos(u64::MAX)
    }

    /// Bytes of the operation that have moved so far, where that is what its timeout asks for.
    fn moved(&self, _connection: &Self::Connection) -> u64 {
        0
    }

    /// The kernel's statistics of the connection, where the result contains them.
    fn tcp(&self, _connection: &Self::Connection) -> Option<TcpInfo> {
        None
    }

    /// Performs the closing handshake of the protocol, if it has one. It is called after the window, and may
    /// wait for the response until the deadline.
    fn close(&mut self, _connection: &mut Self::Connection, _deadline: Nanos) {}

    /// The layer's part of the result: TLS and its handshakes, connections by address, responses by status,
    /// oddities that were accepted, and streams.
    fn counts(&self) -> Done {
        Done::default()
    }
}

/// When an operation was due, and when it was sent: in a closed loop at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Begun {
    pub due: Nanos,
    pub sent: Nanos,
}

impl Begun {
    pub fn at(now: Nanos) -> Self {
        Self { due: now, sent: now }
    }
}

/// The end of an operation on a connection with several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub begun: Begun,
    /// When the first byte of its response arrived, if that was not at once; else zero.
    pub first: Nanos,
    /// The number of its request, of several.
    pub request: u32,
    pub end: LaneEnd,
}

/// The end of an operation, or events of a response that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneEnd {
    Answered(Response),
    Failed(Wrong),
    /// The peer has not looked at it, and ends the connection: it is sent again on another one.
    Withdrawn,
    /// So many events at this time, and when the one before them arrived; zero: they are the first.
    Events {
        count: u32,
        last: Nanos,
        at: Nanos,
    },
}

/// A layer whose connections have several operations under way. [`Layer::receive`] completes none by itself.
pub trait Lanes: Layer {
    /// Whether another operation can begin on the connection.
    fn has_room(&self, connection: &Self::Connection) -> bool;

    /// Begins an operation where there is room; [`Layer::send`] sends it.
    fn start(&mut self, connection: &mut Self::Connection, begun: Begun);

    /// Operations under way.
    fn under_way(&self, connection: &Self::Connection) -> u32;

    /// Operations that have ended since the last call, and events.
    fn ended(&mut self) -> Drain<'_, Ending>;

    /// Ends the operations that have taken this long; the connection gets no others.
    fn expire(&mut self, connection: &mut Self::Connection, now: Nanos, timeout: Nanos);

    /// Whether nothing is under way and nothing can begin.
    fn is_over(&self, connection: &Self::Connection) -> bool;
}
