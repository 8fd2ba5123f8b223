//! The bytes of a server's connection, plain or in TLS records; the service is the same for both.
//!
//! A plain line has no state, and reads into a buffer that all connections of a thread share: there may be
//! 10,000.

use crate::layer::Flow;
use crate::layer::wire::plain::{receive, send_all};
use crate::layer::wire::tls::{self, Room};
use crate::layer::wire::{Received, Sink, Source, Wire};
use crate::refusal::Refusal;
use linerate_contract::{ErrorKind, Spec};
use std::os::fd::OwnedFd;

/// Bytes per read, and the longest request: a browser's request with cookies has 2 KiB.
pub(super) const INPUT: usize = 16 << 10;

/// Creates the lines of a server's connections.
pub trait Lines: Clone + Send + 'static {
    type Line: Line;

    /// # Errors
    /// An invalid spec, or TLS files that cannot be used.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// # Errors
    /// A TLS session that cannot be created.
    fn line(&self) -> Result<Self::Line, ErrorKind>;
}

/// The line of one connection.
pub trait Line: Send {
    /// As [`Wire::establish`].
    ///
    /// # Errors
    /// A failed handshake, or a connection that ended in it.
    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind>;

    /// Reads the socket once, to the start of `input`, which has at least [`INPUT`] bytes and may grow;
    /// returns the number of bytes.
    ///
    /// # Errors
    /// A reset connection, or a broken TLS record.
    fn receive(&mut self, socket: &OwnedFd, input: &mut Vec<u8>) -> Result<(usize, Received), ErrorKind>;

    /// Sends until everything is sent or the socket is full; returns how many of `bytes` were accepted. After
    /// a full socket another call is due, even if all of them were accepted.
    ///
    /// # Errors
    /// A reset connection.
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind>;

    /// Announces the end, where the protocol supports that; all output was sent.
    fn end(&mut self, _socket: &OwnedFd) {}
}

/// Plain TCP.
#[derive(Debug, Clone, Copy)]
pub struct Bare;

impl Lines for Bare {
    type Line = Self;

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self)
    }

    #[inline]
    fn line(&self) -> Result<Self, ErrorKind> {
        Ok(Self)
    }
}

impl Line for Bare {
    #[inline]
    fn establish(&mut self, _socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    #[inline]
    fn receive(&mut self, socket: &OwnedFd, input: &mut Vec<u8>) -> Result<(usize, Received), ErrorKind> {
        Ok(match receive(socket, input)? {
            // A read that did not fill the buffer has emptied the socket (epoll(7)).
            Ok(count) => (count, if count < input.len() { Received::Drained } else { Received::More }),
            Err(nothing) => (0, nothing),
        })
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind> {
        send_all(socket, bytes)
    }
}

impl Lines for tls::TlsAcceptor {
    type Line = TlsLine;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self::new(spec)?.with_room(Room { input: INPUT, records: records(spec.size) }))
    }

    fn line(&self) -> Result<TlsLine, ErrorKind> {
        self.accept().map(TlsLine)
    }
}

/// TLS records of output per connection: as many as an answer needs, up to those of a stream.
fn records(size: u64) -> usize {
    /// An upper bound for the head of an answer, in bytes.
    const HEAD: u64 = 256;
    (size + HEAD).div_ceil(tls::record::LARGEST_PLAIN as u64).clamp(1, tls::STREAM.records as u64) as usize
}

/// TLS records.
#[derive(Debug)]
pub struct TlsLine(tls::TlsWire);

impl Line for TlsLine {
    #[inline]
    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        self.0.establish(socket)
    }

    #[inline]
    fn receive(&mut self, socket: &OwnedFd, input: &mut Vec<u8>) -> Result<(usize, Received), ErrorKind> {
        let mut input_sink = InputSink { input, filled: 0 };
        let received = self.0.receive(socket, &mut input_sink)?;
        Ok((input_sink.filled, received))
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind> {
        let mut source = SliceSource { bytes, taken: 0 };
        let flow = self.0.send(socket, &mut source)?;
        Ok((source.taken, flow))
    }

    fn end(&mut self, socket: &OwnedFd) {
        self.0.end();
        // Fails only if the peer has closed already.
        let _ = self.send(socket, &[]);
    }
}

/// Appends the contents of several records.
struct InputSink<'a> {
    input: &'a mut Vec<u8>,
    filled: usize,
}

impl Sink for InputSink<'_> {
    #[inline]
    fn take(&mut self, bytes: &mut [u8]) -> Result<(), ErrorKind> {
        let end = self.filled + bytes.len();
        if self.input.len() < end {
            self.input.resize(end, 0);
        }
        self.input[self.filled..end].copy_from_slice(bytes);
        self.filled = end;
        Ok(())
    }
}

/// A source of bytes in memory.
struct SliceSource<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl Source for SliceSource<'_> {
    #[inline]
    fn prepare(&mut self) -> bool {
        self.taken < self.bytes.len()
    }

    #[inline]
    fn slices(&self) -> Option<[&[u8]; 2]> {
        Some([&self.bytes[self.taken..], &[]])
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.taken += count;
    }

    #[inline]
    fn fill(&mut self, room: &mut [u8]) -> usize {
        let count = room.len().min(self.bytes.len() - self.taken);
        room[..count].copy_from_slice(&self.bytes[self.taken..][..count]);
        self.advance(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_the_records_of_its_answer_up_to_those_of_a_stream() {
        assert_eq!([0, 4096, 16_384, 1 << 30].map(records), [1, 1, 2, 8]);
    }
}
