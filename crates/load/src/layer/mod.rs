//! How bytes get across, a file each: `layer/<name>.rs`.
//!
//! A layer connects, sends a request, receives and verifies the answer, and knows nothing of when or how often:
//! that is the workload's. Engines are compiled for each pair (see [`crate::registry`]), so calls are direct.

pub mod http;
pub mod kcp;
pub mod session;
pub mod tcp;
pub mod tls;
mod transfer;
pub mod transport;
pub mod udp;
pub mod websocket;
pub mod wire;

use crate::Refusal;
use linerate_contract::{ErrorKind, Nanos, Spec};
use std::os::fd::AsFd;

/// Whether a step got to its end or has to wait for the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Done,
    Blocked,
}

/// A complete answer that is what the spec expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Payload bytes.
    pub bytes: u64,
    /// Its content was compared, too.
    pub verified: bool,
    /// The connection can carry another operation.
    pub reusable: bool,
}

/// One thread's end of a layer: shared buffers and templates. Connections carry only their own state.
pub trait Layer: Clone + Send + Sized + 'static {
    /// The state of one connection; small, because there may be 10,000. Dropping it closes the connection.
    type Connection: AsFd + Send;

    /// Prepares what all connections share. `persistent`: connections outlive an operation.
    ///
    /// # Errors
    /// What the spec lacks, as a sentence.
    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal>;

    /// Begins a connection without waiting for it.
    ///
    /// # Errors
    /// The kind of failure that this operation counts as.
    fn open(&mut self) -> Result<Self::Connection, ErrorKind>;

    /// Ends a connection that the peer has ended before, and keeps its socket for the next one; false if that cannot be, and
    /// it is to be dropped.
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

    /// Does what has to be done before a request can be sent, a TLS handshake included.
    ///
    /// # Errors
    /// The kind of failure that an operation on this connection counts as.
    fn establish(&mut self, _connection: &mut Self::Connection) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    /// Requests that a connection may have under way at once; more than one is pipelining (RFC 9112 section 9.3.2).
    fn depth(&self) -> u32 {
        1
    }

    /// The next send carries so many requests, at most [`Self::depth`], and as many answers are received.
    fn ask(&mut self, _connection: &mut Self::Connection, _requests: u32) {}

    /// Sends (the rest of) a request. Sending on a connection that does not stand yet is [`Flow::Blocked`].
    ///
    /// # Errors
    /// The kind of failure that this operation counts as.
    fn send(&mut self, connection: &mut Self::Connection) -> Result<Flow, ErrorKind>;

    /// Receives what is there; `None` until the answer is complete. Reads until the socket is empty, since the
    /// engine waits for edges.
    ///
    /// # Errors
    /// The kind of failure that this operation counts as: also an answer that is complete but not as expected.
    fn receive(&mut self, connection: &mut Self::Connection) -> Result<Option<Answer>, ErrorKind>;

    /// Says goodbye on a connection that has done its work, where the protocol has words for it. The window is over: it may wait for an
    /// answer until the deadline.
    fn part(&mut self, _connection: &mut Self::Connection, _deadline: Nanos) {}

    /// Version, cipher suite and library, where there is TLS and a connection stood.
    fn security(&self) -> Option<String> {
        None
    }
}
