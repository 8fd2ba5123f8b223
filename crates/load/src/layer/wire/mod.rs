//! How a connection's bytes travel: as they are ([`plain`]) or in TLS records ([`tls`]). Both ends, and
//! nothing of what they mean.

pub mod passage;
pub mod plain;
pub mod tls;

use super::Flow;
use crate::refusal::Refusal;
use linerate_contract::{ErrorKind, Spec};
use std::os::fd::OwnedFd;

/// Bytes to be sent.
pub trait Source {
    /// Whether there is something to send now.
    fn prepare(&mut self) -> bool;
    /// The next bytes as they lie in memory, if they may go out like that; after [`Self::prepare`] returned
    /// true.
    fn slices(&self) -> Option<[&[u8]; 2]>;
    /// `count` bytes of [`Self::slices`] were sent; false if nothing follows them for certain.
    fn advance(&mut self, count: usize) -> bool;
    /// Writes the next bytes into `room` and returns their number. Parts of different writes are not joined.
    fn fill(&mut self, room: &mut [u8]) -> usize;
    /// Where in the content of a stream the next bytes are, if they are content.
    fn place(&self) -> Option<u64> {
        None
    }
    /// Whether more follows at once that shares a segment with the next bytes.
    fn joins(&self) -> bool {
        false
    }
}

/// Nothing to be sent.
#[derive(Debug)]
pub struct Silence;

impl Source for Silence {
    fn prepare(&mut self) -> bool {
        false
    }

    fn slices(&self) -> Option<[&[u8]; 2]> {
        None
    }

    fn advance(&mut self, _count: usize) -> bool {
        false
    }

    fn fill(&mut self, _room: &mut [u8]) -> usize {
        0
    }
}

/// Takes received bytes.
pub trait Sink {
    /// Takes all of it; it may be changed.
    ///
    /// # Errors
    /// The bytes differ from the expected ones.
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind>;
    /// Bytes of a stream's content that come next, for a wire that discards them.
    fn awaited(&self) -> u64 {
        0
    }
    /// `count` of those have arrived, and were discarded.
    fn skip(&mut self, _count: usize) {}
}

/// The result of one look at the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Something, and there may be more.
    More,
    /// Something, and the socket was empty then.
    Drained,
    Nothing,
    /// The peer has ended its half.
    End,
}

impl Received {
    /// `count` bytes into `room`: a read that did not fill it has emptied the socket (epoll(7)).
    #[inline]
    fn from_count(count: usize, room: usize) -> Self {
        if count == room { Self::More } else { Self::Drained }
    }
}

/// Buffer sizes of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes that are read at once.
    pub input: usize,
    /// TLS records that are made before they are sent.
    pub records: usize,
}

impl Room {
    /// The room of a stream. Half of the input takes more calls; twice leaves the cache that it is compared
    /// from.
    pub const STREAM: Self = Self { input: 256 << 10, records: 8 };
}

/// Makes the wires of one end, a client or a server.
pub trait Wires: Clone + Send + 'static {
    type Wire: Wire;

    /// # Errors
    /// The spec lacks something; the message is a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// The wire of one connection.
    ///
    /// # Errors
    /// A TLS session that cannot be created, for want of random numbers.
    fn wire(&self, room: Room) -> Result<Self::Wire, ErrorKind>;
}

/// One connection's way.
pub trait Wire: Send + Sized {
    /// Whether there is a handshake beyond that of TCP.
    const SHAKES: bool;

    /// Agrees on keys, where there are any, on a connection that is established.
    ///
    /// # Errors
    /// The kind of failure.
    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind>;

    /// Sends until the source has nothing more or the socket is full.
    ///
    /// # Errors
    /// The kind of failure.
    fn send(&mut self, socket: &OwnedFd, source: &mut impl Source) -> Result<Flow, ErrorKind>;

    /// Looks at the socket once. `input` is a buffer that connections share, for a wire without one.
    ///
    /// # Errors
    /// The kind of failure, the sink's included.
    fn receive(
        &mut self,
        socket: &OwnedFd,
        input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind>;

    /// Says that nothing more will come, where the protocol has words for it; it goes out with the next
    /// [`Self::send`].
    fn end(&mut self) {}

    /// Whether the peer's end was none by the protocol, so that a part of the stream may be missing. Bare TCP
    /// does not show it.
    fn is_cut(&self) -> bool {
        false
    }

    /// The protection of the bytes, where there is one.
    fn security(&self) -> Option<String> {
        None
    }

    /// Whether the handshake that is over resumed a session; once for each connection.
    fn take_handshake(&mut self) -> Option<bool> {
        None
    }
}
