//! Bare TCP.

use super::passage::{Copied, Passage};
use super::{Flow, Received, Room, Sink, Source, Wire, Wires};
use crate::refusal::Refusal;
use crate::socket::{connect_error, recv, send, stream_error};
use linerate_contract::{ErrorKind, Spec};
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::os::fd::{AsRawFd, OwnedFd};

/// What is made before it is sent. Half takes more calls; twice leaves the cache.
const OUTPUT: usize = 128 << 10;

/// See [`Wires`].
#[derive(Debug, Clone)]
pub struct PlainWires<P = Copied>(P);

impl<P: Passage> Wires for PlainWires<P> {
    type Wire = PlainWire<P>;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        P::new(spec).map(Self)
    }

    #[inline]
    fn wire(&self, _room: Room) -> Result<PlainWire<P>, ErrorKind> {
        Ok(PlainWire { output: None, established: false, passage: self.0.clone() })
    }
}

/// See [`Wire`].
#[derive(Debug)]
pub struct PlainWire<P = Copied> {
    /// Where a source cannot be sent as it lies in memory.
    output: Option<Box<Outbox>>,
    /// Something was sent: errors are no longer connect errors.
    established: bool,
    passage: P,
}

impl<P: Passage> Wire for PlainWire<P> {
    const SHAKES: bool = false;

    fn establish(&mut self, _socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        Ok(Flow::Done)
    }

    #[inline]
    fn send(&mut self, socket: &OwnedFd, source: &mut impl Source) -> Result<Flow, ErrorKind> {
        loop {
            if let Some(output) = &mut self.output
                && output.flush(socket)? == Flow::Blocked
            {
                return Ok(Flow::Blocked);
            }
            loop {
                if !source.prepare() {
                    return Ok(Flow::Done);
                }
                let Some(slices) = source.slices() else { break };
                match self.passage.write(socket, source, slices) {
                    Ok(count) => {
                        self.established = true;
                        if !source.advance(count) {
                            return Ok(Flow::Done);
                        }
                    }
                    Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                    Err(Errno::EINTR) => {}
                    Err(errno) if self.established => return Err(stream_error(errno)),
                    Err(errno) => return Err(connect_error(errno)),
                }
            }
            let output = self.output.get_or_insert_with(|| Box::new(Outbox::new(OUTPUT)));
            output.begin(|room| source.fill(room));
        }
    }

    #[inline(always)]
    fn receive(
        &mut self,
        socket: &OwnedFd,
        input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind> {
        if self.passage.discards() && sink.awaited() > 0 {
            let most = sink.awaited().min(input.len() as u64) as usize;
            let received = receive(socket, &mut input[..most], MsgFlags::MSG_TRUNC)?;
            return Ok(received.map_or_else(
                |nothing| nothing,
                |count| {
                    sink.skip(count);
                    Received::from_count(count, most)
                },
            ));
        }
        match receive(socket, input, MsgFlags::empty())? {
            Ok(count) => {
                sink.take(&mut input[..count])?;
                Ok(Received::from_count(count, input.len()))
            }
            Err(nothing) => Ok(nothing),
        }
    }
}

/// One `recv(2)`: how many bytes, or why there are none.
#[inline]
pub(super) fn receive(
    socket: &OwnedFd,
    room: &mut [u8],
    flags: MsgFlags,
) -> Result<Result<usize, Received>, ErrorKind> {
    loop {
        match recv(socket.as_raw_fd(), room, flags) {
            Ok(0) => return Ok(Err(Received::End)),
            Ok(count) => return Ok(Ok(count)),
            Err(Errno::EAGAIN) => return Ok(Err(Received::Nothing)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(stream_error(errno)),
        }
    }
}

/// The outcome of connect(2), once there is one: an empty send returns it, and `EAGAIN` before
/// (tcp_sendmsg()).
pub(in crate::layer) fn connected(socket: &OwnedFd) -> Result<Flow, ErrorKind> {
    loop {
        match send(socket.as_raw_fd(), &[], MsgFlags::MSG_NOSIGNAL) {
            Ok(_) => return Ok(Flow::Done),
            Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(connect_error(errno)),
        }
    }
}

/// Sends until all of it is out or the socket is full; how many bytes went.
#[inline]
fn send_all(socket: &OwnedFd, bytes: &[u8]) -> Result<(usize, Flow), ErrorKind> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket.as_raw_fd(), &bytes[sent..], MsgFlags::MSG_NOSIGNAL) {
            Ok(count) => sent += count,
            Err(Errno::EAGAIN) => return Ok((sent, Flow::Blocked)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(stream_error(errno)),
        }
    }
    Ok((sent, Flow::Done))
}

/// Bytes that are made and not yet sent.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

impl Outbox {
    pub(super) fn new(size: usize) -> Self {
        Self { bytes: vec![0; size].into(), from: 0, to: 0 }
    }

    /// Makes bytes behind those that wait: `make` writes into what room there is.
    #[inline]
    pub(super) fn begin(&mut self, make: impl FnOnce(&mut [u8]) -> usize) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        self.to += make(&mut self.bytes[self.to..]);
    }

    #[inline]
    pub(super) fn flush(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        let (count, flow) = send_all(socket, &self.bytes[self.from..self.to])?;
        self.from += count;
        Ok(flow)
    }
}
