//! How the bytes of a server's connection travel, so that its service need not know: bare, or in TLS records.
//!
//! A bare line holds nothing, and reads into a buffer that all connections of a thread share: there may be 10,000 of them.

use crate::layer::Flow;
use crate::layer::wire::plain::{receive, send_all};
use crate::layer::wire::tls::{self, Room};
use crate::layer::wire::{Received, Sink, Source, Wire};
use crate::refusal::Refusal;
use linerate_contract::{ErrorKind, Spec};
use std::os::fd::OwnedFd;

/// Input that is read at once, and the longest request: a browser's with cookies is 2 KiB.
pub(super) const INPUT: usize = 16 << 10;

/// Makes the lines of a server's connections.
pub trait Lines: Clone + Send + 'static {
    type Line: Line;

    /// # Errors
    /// What the spec lacks, as a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// # Errors
    /// The kind of failure.
    fn line(&self) -> Result<Self::Line, ErrorKind>;
}

/// One connection's way.
pub trait Line: Send {
    /// As [`Wire::establish`].
    ///
    /// # Errors
    /// The kind of failure.
    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind>;

    /// Looks at the socket once. What came stands at the start of `input`, which has at least [`INPUT`] bytes and may
    /// grow; how many bytes that are.
    ///
    /// # Errors
    /// The kind of failure.
    fn receive(&mut self, socket: &OwnedFd, input: &mut Vec<u8>) -> Result<(usize, Received), ErrorKind>;

    /// Sends until all is out or the socket is full; how many of `bytes` need not be given again. Where it was full, the next call is
    /// due even if that is all of them.
    ///
    /// # Errors
    /// The kind of failure.
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind>;

    /// Says that nothing more will come, where the protocol has words for it; all that was sent is out.
    fn end(&mut self, _socket: &OwnedFd) {}
}

/// TCP and nothing else.
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

impl Lines for tls::Server {
    type Line = Secured;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self::new(spec)?.with_room(Room { input: INPUT, records: records(spec.size) }))
    }

    fn line(&self) -> Result<Secured, ErrorKind> {
        self.accept().map(Secured)
    }
}

/// As many as an answer needs, and no more than are of use: most connections hold one.
fn records(size: u64) -> usize {
    /// More than the head of an answer.
    const HEAD: u64 = 256;
    (size + HEAD).div_ceil(tls::record::LARGEST_PLAIN as u64).clamp(1, tls::STREAM.records as u64) as usize
}

/// In TLS records.
#[derive(Debug)]
pub struct Secured(tls::Tls);

impl Line for Secured {
    #[inline]
    fn establish(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        self.0.establish(socket)
    }

    #[inline]
    fn receive(&mut self, socket: &OwnedFd, input: &mut Vec<u8>) -> Result<(usize, Received), ErrorKind> {
        let mut inlet = Inlet { input, filled: 0 };
        let received = self.0.receive(socket, &mut inlet)?;
        Ok((inlet.filled, received))
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind> {
        let mut outlet = Outlet { bytes, taken: 0 };
        let flow = self.0.send(socket, &mut outlet)?;
        Ok((outlet.taken, flow))
    }

    fn end(&mut self, socket: &OwnedFd) {
        self.0.end();
        // A peer that is gone does not miss it.
        let _ = self.send(socket, &[]);
    }
}

/// Puts what was in several records one behind the other.
struct Inlet<'a> {
    input: &'a mut Vec<u8>,
    filled: usize,
}

impl Sink for Inlet<'_> {
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

/// Gives out bytes that are there.
struct Outlet<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl Source for Outlet<'_> {
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
    fn a_connection_holds_the_records_of_its_answer_up_to_those_of_a_stream() {
        assert_eq!([0, 4096, 16_384, 1 << 30].map(records), [1, 1, 2, 8]);
    }
}
