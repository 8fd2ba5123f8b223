//! Bare TCP.

use super::{Flow, Received, Room, Sink, Source, Wire, Wires};
use crate::refusal::Refusal;
use crate::socket::stream_error;
use linerate_contract::{ErrorKind, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send, sendmsg};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};

/// What is made before it is sent. Half takes more calls; twice leaves the cache.
const OUTPUT: usize = 128 << 10;

/// See [`Wires`].
#[derive(Debug, Clone, Copy)]
pub struct PlainWires;

impl Wires for PlainWires {
    type Wire = PlainWire;

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self)
    }

    #[inline]
    fn wire(&self, _room: Room) -> Result<PlainWire, ErrorKind> {
        Ok(PlainWire { output: None })
    }
}

/// See [`Wire`].
#[derive(Debug)]
pub struct PlainWire {
    /// Where a source cannot be sent as it lies in memory.
    output: Option<Box<Outbox>>,
}

impl Wire for PlainWire {
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
            if !source.prepare() {
                return Ok(Flow::Done);
            }
            let Some(slices) = source.slices() else {
                let output = self.output.get_or_insert_with(|| Box::new(Outbox::new(OUTPUT)));
                output.begin(|room| source.fill(room));
                continue;
            };
            let sent = if slices[1].is_empty() {
                send(socket.as_raw_fd(), slices[0], MsgFlags::MSG_NOSIGNAL)
            } else {
                let slices = slices.map(IoSlice::new);
                sendmsg::<()>(socket.as_raw_fd(), &slices, &[], MsgFlags::MSG_NOSIGNAL, None)
            };
            match sent {
                Ok(count) => source.advance(count),
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(stream_error(errno)),
            }
        }
    }

    #[inline]
    fn receive(
        &mut self,
        socket: &OwnedFd,
        input: &mut [u8],
        sink: &mut impl Sink,
    ) -> Result<Received, ErrorKind> {
        match receive(socket, input)? {
            Ok(count) => {
                sink.take(&mut input[..count])?;
                // A read that did not fill the buffer has emptied the socket (epoll(7)).
                Ok(if count == input.len() { Received::More } else { Received::Drained })
            }
            Err(nothing) => Ok(nothing),
        }
    }
}

/// One `recv(2)`: how many bytes, or why there are none.
#[inline]
pub(super) fn receive(socket: &OwnedFd, room: &mut [u8]) -> Result<Result<usize, Received>, ErrorKind> {
    loop {
        match recv(socket.as_raw_fd(), room, MsgFlags::empty()) {
            Ok(0) => return Ok(Err(Received::End)),
            Ok(count) => return Ok(Ok(count)),
            Err(Errno::EAGAIN) => return Ok(Err(Received::Nothing)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(stream_error(errno)),
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
