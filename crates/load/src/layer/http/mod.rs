//! HTTP/1.1 over TCP (RFC 9110, RFC 9112): the client's end here, the server's in [`service`].
//!
//! Requests are built once; answers are parsed where they lie in a buffer that all connections of a thread share. What
//! a connection keeps between two reads is its descriptor and the parser's place.

mod chunked;
mod request;
pub mod response;
mod service;
mod verify;

pub use service::HttpService;

use crate::layer::{Answer, Flow, Layer};
use crate::refusal::Refusal;
use crate::socket::{Dialer, connect_error, stream_error};
use linerate_contract::{ErrorKind, Spec};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use response::{Parser, State};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use verify::{Check, Verifier};

/// A page of up to 60 KiB comes with one read; twice the size gains nothing and takes half of the L2 cache.
const BUFFER: usize = 64 << 10;

/// A thread's end of the layer.
#[derive(Debug, Clone)]
pub struct Http {
    dialer: Dialer,
    request: Arc<[u8]>,
    verifier: Verifier,
    buffer: Box<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    fd: OwnedFd,
    /// Bytes of the request that are sent.
    sent: u32,
    /// A byte was sent on it, so errors are no longer connect errors.
    stood: bool,
    parser: Parser,
    check: Check,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Layer for Http {
    type Connection = Connection;

    fn new(spec: &Spec, persistent: bool) -> Result<Self, Refusal> {
        let dialer = Dialer::new(spec)?;
        let host = spec.connect.expect("the dialer has checked it");
        let request = request::build(spec.path.as_deref().unwrap_or("/"), &host.to_string(), persistent)?;
        Ok(Self {
            dialer,
            request: request.into(),
            verifier: Verifier::new(spec.expect)?,
            buffer: vec![0; BUFFER].into(),
        })
    }

    #[inline]
    fn open(&mut self) -> Result<Connection, ErrorKind> {
        let fd = self.dialer.open()?;
        Ok(Connection { fd, sent: 0, stood: false, parser: Parser::default(), check: Check::default() })
    }

    #[inline]
    fn send(&mut self, connection: &mut Connection) -> Result<Flow, ErrorKind> {
        loop {
            let rest = &self.request[connection.sent as usize..];
            match send(connection.fd.as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => {
                    connection.stood = true;
                    connection.sent += n as u32;
                    if n == rest.len() {
                        connection.sent = 0;
                        connection.check = self.verifier.begin();
                        return Ok(Flow::Done);
                    }
                }
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) if connection.stood => return Err(stream_error(errno)),
                Err(errno) => return Err(connect_error(errno)),
            }
        }
    }

    #[inline]
    fn receive(&mut self, connection: &mut Connection) -> Result<Option<Answer>, ErrorKind> {
        loop {
            match recv(connection.fd.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(0) => return self.end(connection).map(Some),
                Ok(n) => {
                    if let Some(answer) = self.take(connection, n)? {
                        return Ok(Some(answer));
                    }
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(stream_error(errno)),
            }
        }
    }
}

impl Http {
    /// Parses the `n` bytes that were received.
    #[inline]
    fn take(&mut self, connection: &mut Connection, n: usize) -> Result<Option<Answer>, ErrorKind> {
        let Connection { parser, check, .. } = connection;
        let verifier = &self.verifier;
        let state = parser
            .feed(&self.buffer[..n], |at, bytes| verifier.body(check, at, bytes))
            .map_err(|_| ErrorKind::Malformed)?;
        // A head that is wrong already ends the operation: its body may never come.
        if let Some(head) = parser.head() {
            verifier.head(head)?;
        }
        match state {
            State::More => Ok(None),
            State::Complete => self.complete(connection).map(Some),
        }
    }

    /// The peer has closed.
    #[cold]
    fn end(&self, connection: &mut Connection) -> Result<Answer, ErrorKind> {
        if connection.parser.end_completes() {
            self.complete(connection)
        } else if connection.parser.is_fresh() {
            Err(ErrorKind::EmptyReply)
        } else {
            Err(ErrorKind::Truncated)
        }
    }

    #[inline]
    fn complete(&self, connection: &mut Connection) -> Result<Answer, ErrorKind> {
        let head = *connection.parser.head().expect("an answer is complete only after its head");
        let bytes = connection.parser.body_bytes();
        let verified = self.verifier.answer(&connection.check, bytes)?;
        connection.parser = Parser::default();
        Ok(Answer { bytes, verified, reusable: head.reusable })
    }
}
