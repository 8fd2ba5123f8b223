//! Messages over bare TCP: the client's end of `rr`, `churn` and `fanout` here, the server's in [`echo`].
//!
//! An operation sends a message and waits until all of it is back. Every byte is compared: a server that
//! answers early, late or with another connection's message must not look fast. `stream` is not made of
//! messages; it has [`stream`].

mod echo;
pub mod stream;

pub use echo::EchoService;

use crate::layer::{Answer, Flow, Layer, Reply};
use crate::refusal::Refusal;
use crate::socket::{Dialer, connect_error, stream_error};
use linerate_contract::{ErrorKind, Spec, page};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The longest message. Above it a client that sends all before it reads could wait for an echo server that
/// waits for it, each with full socket buffers.
pub(super) const LARGEST_MESSAGE: u64 = 65_536;

/// A thread's end of the layer.
#[derive(Debug, Clone)]
pub struct Tcp {
    dialer: Dialer,
    message: Arc<[u8]>,
    /// One byte more than a message, so that a byte too many shows at once.
    buffer: Box<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub struct TcpConnection {
    fd: OwnedFd,
    /// Bytes of the message that are sent, and that are back.
    sent: u32,
    back: u32,
    /// A byte was sent on it, so errors are no longer connect errors.
    established: bool,
}

impl AsFd for TcpConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Layer for Tcp {
    type Connection = TcpConnection;

    fn new(spec: &Spec, _persistent: bool) -> Result<Self, Refusal> {
        if !(1..=LARGEST_MESSAGE).contains(&spec.size) {
            return Err(Refusal::BadSpec(format!("\"size\" must be 1 to {LARGEST_MESSAGE} bytes")));
        }
        let message = page(spec.size as usize);
        let buffer = vec![0; message.len() + 1].into();
        Ok(Self { dialer: Dialer::new(spec)?, message: message.into(), buffer })
    }

    #[inline]
    fn open(&mut self) -> Result<TcpConnection, ErrorKind> {
        let fd = self.dialer.open()?;
        setsockopt(&fd, sockopt::TcpNoDelay, &true).map_err(connect_error)?;
        Ok(TcpConnection { fd, sent: 0, back: 0, established: false })
    }

    #[inline]
    fn send(&mut self, connection: &mut TcpConnection) -> Result<Flow, ErrorKind> {
        loop {
            let rest = &self.message[connection.sent as usize..];
            match send(connection.fd.as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => {
                    connection.established = true;
                    connection.sent += n as u32;
                    if n == rest.len() {
                        return Ok(Flow::Done);
                    }
                }
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) if connection.established => return Err(stream_error(errno)),
                Err(errno) => return Err(connect_error(errno)),
            }
        }
    }

    #[inline]
    fn receive(&mut self, connection: &mut TcpConnection) -> Result<Reply, ErrorKind> {
        loop {
            let back = connection.back as usize;
            let missing = &self.message[back..];
            let room = &mut self.buffer[..=missing.len()];
            match recv(connection.fd.as_raw_fd(), room, MsgFlags::empty()) {
                Ok(0) if back == 0 => return Err(ErrorKind::EmptyReply),
                Ok(0) => return Err(ErrorKind::Truncated),
                Ok(n) if n > missing.len() => return Err(ErrorKind::WrongLength),
                Ok(n) if room[..n] != missing[..n] => return Err(ErrorKind::WrongContent),
                Ok(n) if n == missing.len() => {
                    (connection.sent, connection.back) = (0, 0);
                    let bytes = self.message.len() as u64;
                    return Ok(Reply::Complete(Answer { bytes, verified: true, reusable: true }));
                }
                Ok(n) => connection.back += n as u32,
                Err(Errno::EAGAIN) => return Ok(Reply::Waiting),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(stream_error(errno)),
            }
        }
    }
}
