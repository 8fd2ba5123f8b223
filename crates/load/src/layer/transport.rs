//! What carries a request-response layer: bare TCP here, TLS in [`super::tls`]. HTTP does not know which.

use super::Flow;
use crate::refusal::Refusal;
use crate::socket::{Dialer, connect_error, disconnect, recv, send, stream_error};
use linerate_contract::{ErrorKind, Spec};
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// One thread's end. Bytes go in and come out; `None` is "not now, wait for the socket".
pub trait Transport: Clone + Send + 'static {
    type Stream: AsFd + Send;

    /// # Errors
    /// What the spec lacks, as a sentence.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// Begins a connection without waiting for it.
    ///
    /// # Errors
    /// The kind of failure.
    fn open(&mut self) -> Result<Self::Stream, ErrorKind>;

    /// As [`super::Layer::leave`].
    fn leave(&mut self, _stream: &mut Self::Stream) -> bool {
        false
    }

    /// As [`super::Layer::reopen`].
    ///
    /// # Errors
    /// The kind of failure.
    fn reopen(&mut self, stream: &mut Self::Stream) -> Result<(), ErrorKind> {
        *stream = self.open()?;
        Ok(())
    }

    /// Connects, and agrees on keys where there are any.
    ///
    /// # Errors
    /// The kind of failure.
    fn establish(&mut self, stream: &mut Self::Stream) -> Result<Flow, ErrorKind>;

    /// How many bytes were sent; establishes the connection first.
    ///
    /// # Errors
    /// The kind of failure.
    fn send(&mut self, stream: &mut Self::Stream, bytes: &[u8]) -> Result<Option<usize>, ErrorKind>;

    /// How many bytes were received; 0 is the peer's end.
    ///
    /// # Errors
    /// The kind of failure.
    fn receive(&mut self, stream: &mut Self::Stream, buffer: &mut [u8]) -> Result<Option<usize>, ErrorKind>;

    /// Whether the peer's end was none by the protocol, so that a part of the stream may be missing. Bare TCP
    /// does not show it.
    fn is_cut(&self, _stream: &Self::Stream) -> bool {
        false
    }

    /// As [`super::Layer::security`].
    fn security(&self) -> Option<String> {
        None
    }
}

/// Bare TCP.
#[derive(Debug, Clone)]
pub struct Plain(Dialer);

/// A TCP connection.
#[derive(Debug)]
pub struct PlainStream {
    fd: OwnedFd,
    /// After this, errors are no longer connect errors.
    established: bool,
}

impl AsFd for PlainStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PlainStream {
    pub(super) fn open(dialer: &mut Dialer) -> Result<Self, ErrorKind> {
        Ok(Self { fd: dialer.open()?, established: false })
    }

    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<Option<usize>, ErrorKind> {
        loop {
            match send(self.fd.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => {
                    self.established = true;
                    return Ok(Some(n));
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(errno) if self.established => return Err(stream_error(errno)),
                Err(errno) => return Err(connect_error(errno)),
            }
        }
    }

    #[inline]
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ErrorKind> {
        loop {
            match recv(self.fd.as_raw_fd(), buffer, MsgFlags::empty()) {
                Ok(n) => return Ok(Some(n)),
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(stream_error(errno)),
            }
        }
    }
}

impl Transport for Plain {
    type Stream = PlainStream;

    fn new(spec: &Spec) -> Result<Self, Refusal> {
        Dialer::new(spec).map(Self)
    }

    #[inline]
    fn open(&mut self) -> Result<PlainStream, ErrorKind> {
        PlainStream::open(&mut self.0)
    }

    #[inline]
    fn leave(&mut self, stream: &mut PlainStream) -> bool {
        stream.established = false;
        disconnect(&stream.fd)
    }

    #[inline]
    fn reopen(&mut self, stream: &mut PlainStream) -> Result<(), ErrorKind> {
        self.0.connect(&stream.fd)
    }

    #[inline]
    fn establish(&mut self, stream: &mut PlainStream) -> Result<Flow, ErrorKind> {
        // An empty send returns EAGAIN until the handshake is over, and then its outcome (tcp_sendmsg()).
        Ok(stream.send(&[])?.map_or(Flow::Blocked, |_| Flow::Done))
    }

    #[inline]
    fn send(&mut self, stream: &mut PlainStream, bytes: &[u8]) -> Result<Option<usize>, ErrorKind> {
        stream.send(bytes)
    }

    #[inline]
    fn receive(&mut self, stream: &mut PlainStream, buffer: &mut [u8]) -> Result<Option<usize>, ErrorKind> {
        stream.receive(buffer)
    }
}
