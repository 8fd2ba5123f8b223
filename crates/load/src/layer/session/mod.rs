//! A conversation over a connection, both ends: a [`Wire`] carries bytes, a [`Framing`] makes messages of
//! them, and a [`Script`] says what is sent and what must come.
//!
//! ```text
//!   socket <-> Wire (plain, TLS) <-> Framing (raw, WebSocket) <-> Script (stream, rr, echo)
//! ```
//!
//! Each combination is compiled as one unit. A session moves as far as it can without waiting; who waits, and
//! for what, is up to [`client`] and [`service`].

pub mod client;
pub mod framing;
pub mod script;
pub mod service;

use super::Flow;
use super::wire::{Received, Room, Silence, Sink, Source, Wire};
use framing::Framing;
use linerate_contract::{ErrorKind, Layer, Spec, Workload};
use linerate_proto::websocket::upgrade::LONGEST_HEAD;
use script::Script;
use std::os::fd::OwnedFd;

/// Reads of a handshake that never meet an empty socket: one for each byte of the longest head. Only a peer
/// that sends other records without end needs more.
const MOST_HANDSHAKE_READS: usize = LONGEST_HEAD + 1;

/// Bytes that a connection may move before the others get their turn.
const TURN: usize = 1 << 20;

/// The longest message of `rr`. Above it a client that sends all before it reads could wait for an echo
/// server that waits for it, each with full socket buffers.
const LARGEST_MESSAGE: u64 = 65_536;

/// The buffers of a connection. A stream over bare TCP reads as it writes, `size` bytes at a time, and at
/// least a number and a byte of content.
fn room(spec: &Spec) -> Room {
    if spec.layer == Layer::Tcp && spec.workload == Workload::Stream {
        Room { input: (spec.size as usize).max(9), ..Room::STREAM }
    } else {
        Room::STREAM
    }
}

/// As [`crate::layer::MAX_READS`], for reads into this room.
fn most_reads(room: Room) -> usize {
    TURN.div_ceil(room.input)
}

/// One end of a conversation, besides its socket.
#[derive(Debug)]
pub struct Session<W, F, S> {
    wire: W,
    talk: Talk<F, S>,
}

/// The talk on top of the wire.
#[derive(Debug)]
struct Talk<F, S> {
    framing: F,
    script: S,
}

impl<W: Wire, F: Framing, S: Script> Session<W, F, S> {
    pub fn new(wire: W, framing: F, script: S) -> Self {
        Self { wire, talk: Talk { framing, script } }
    }

    pub fn script(&mut self) -> &mut S {
        &mut self.talk.script
    }

    /// The handshakes.
    ///
    /// # Errors
    /// The kind of failure.
    pub fn establish(&mut self, socket: &OwnedFd, input: &mut [u8]) -> Result<Flow, ErrorKind> {
        if self.wire.establish(socket)? == Flow::Blocked {
            return Ok(Flow::Blocked);
        }
        for _ in 0..MOST_HANDSHAKE_READS {
            if self.talk.framing.is_established() {
                return Ok(Flow::Done);
            }
            if self.send(socket)? == Flow::Blocked {
                return Ok(Flow::Blocked);
            }
            match self.receive(socket, input)? {
                Received::More | Received::Drained => {}
                Received::Nothing => return Ok(Flow::Blocked),
                Received::End => return Err(ErrorKind::EmptyResponse),
            }
        }
        Err(ErrorKind::Malformed)
    }

    /// Sends what there is.
    ///
    /// # Errors
    /// The kind of failure.
    #[inline(always)]
    pub fn send(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        self.wire.send(socket, &mut self.talk)
    }

    /// Reads the socket once.
    ///
    /// # Errors
    /// A socket error, or a violation of the protocol; the peer has then been notified where possible.
    #[inline(always)]
    pub fn receive(&mut self, socket: &OwnedFd, input: &mut [u8]) -> Result<Received, ErrorKind> {
        let received = self.wire.receive(socket, input, &mut self.talk);
        if received.is_err() {
            let _ = self.send(socket);
        }
        received
    }

    /// Whether the peer has ended the conversation in order.
    pub fn is_closed_in_order(&self) -> bool {
        self.talk.framing.is_closed_in_order()
    }

    /// Whether both ends have said that they are done.
    pub fn is_over(&self) -> bool {
        self.talk.framing.is_over()
    }

    /// Whether the framing wants to say something of its own, such as a pong.
    pub fn owes(&self) -> bool {
        self.talk.framing.owes()
    }

    /// Says goodbye; true if a response is to be waited for.
    ///
    /// # Errors
    /// The kind of failure.
    pub fn close(&mut self, socket: &OwnedFd) -> Result<bool, ErrorKind> {
        let answered = self.talk.framing.end();
        if answered {
            self.send(socket)?;
        } else {
            self.end(socket)?;
        }
        Ok(answered)
    }

    /// The framing's goodbye is answered: the wire's follows.
    ///
    /// # Errors
    /// The kind of failure.
    pub fn end(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        self.wire.end();
        self.wire.send(socket, &mut Silence)
    }
}

impl<F: Framing, S: Script> Source for Talk<F, S> {
    #[inline]
    fn prepare(&mut self) -> bool {
        self.framing.prepare(&mut self.script)
    }

    #[inline]
    fn slices(&self) -> Option<[&[u8]; 2]> {
        self.framing.slices(&self.script)
    }

    #[inline]
    fn advance(&mut self, count: usize) -> bool {
        self.framing.advance(count) || !S::SINGLE
    }

    #[inline]
    fn fill(&mut self, room: &mut [u8]) -> usize {
        self.framing.fill(&mut self.script, room)
    }

    #[inline]
    fn place(&self) -> Option<u64> {
        self.framing.place(&self.script)
    }

    #[inline]
    fn joins(&self) -> bool {
        self.framing.joins(&self.script)
    }
}

impl<F: Framing, S: Script> Sink for Talk<F, S> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        self.framing.take(&mut self.script, bytes)?;
        self.script.verdict()
    }

    #[inline]
    fn awaited(&self) -> u64 {
        self.script.awaited()
    }

    #[inline]
    fn skip(&mut self, count: usize) {
        self.script.skip(count);
    }
}
