//! The server of `rr`, `churn` and `fanout`: sends back what it receives, and closes when the peer does.
//!
//! One `recv(2)` and one `send(2)` for a message: a read that did not fill the buffer has emptied the socket
//! (epoll(7)), so there is no second one that would only say so.

use crate::layer::MAX_READS;
use crate::refusal::Refusal;
use crate::server::{Fate, Service};
use crate::socket::{recv, send};
use linerate_contract::Spec;
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::os::fd::{AsRawFd, OwnedFd};

/// Input that is read at once. Half would take two reads for a large message; twice would leave the L2 cache.
const BUFFER: usize = 64 << 10;

/// A thread's end of the service.
#[derive(Debug, Clone)]
pub struct EchoService {
    buffer: Box<[u8]>,
}

/// Bytes that could not be sent yet; nothing is read before it is out, so it is a buffer's content at most.
#[derive(Debug, Default)]
pub struct EchoConnection {
    pending: Vec<u8>,
}

impl Service for EchoService {
    type Connection = EchoConnection;

    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self { buffer: vec![0; BUFFER].into() })
    }

    #[inline]
    fn ready(&mut self, socket: &OwnedFd, connection: &mut EchoConnection, ended: bool) -> Fate {
        if !connection.pending.is_empty() {
            let pending = std::mem::take(&mut connection.pending);
            match echo(socket, &pending, connection) {
                Fate::Read => {}
                fate => return fate,
            }
        }
        for _ in 0..MAX_READS {
            let n = match recv(socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(0) => return Fate::Close,
                Ok(n) => n,
                Err(Errno::EAGAIN) => return Fate::Read,
                Err(Errno::EINTR) => continue,
                Err(_) => return Fate::Close,
            };
            let fate = echo(socket, &self.buffer[..n], connection);
            if fate != Fate::Read || (n < BUFFER && !ended) {
                return fate;
            }
        }
        Fate::Again
    }
}

/// Sends `bytes`, and keeps what the socket does not take.
#[inline]
fn echo(socket: &OwnedFd, bytes: &[u8], connection: &mut EchoConnection) -> Fate {
    let mut rest = bytes;
    while !rest.is_empty() {
        match send(socket.as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL) {
            Ok(n) => rest = &rest[n..],
            Err(Errno::EAGAIN) => {
                connection.pending = rest.to_vec();
                return Fate::Write;
            }
            Err(Errno::EINTR) => {}
            Err(_) => return Fate::Close,
        }
    }
    Fate::Read
}
