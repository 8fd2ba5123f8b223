//! The client's end of a tunnel that a proxy of HTTP opens (RFC 9110 section 9.3.6): what TLS goes through.

use crate::layer::Flow;
use crate::socket::{recv, send, stream_error};
use linerate_contract::ErrorKind;
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// The longest head of a response, as of most servers.
const LONGEST: usize = 8 << 10;

/// A tunnel that is asked for.
#[derive(Debug)]
pub(super) struct TunnelMouth {
    request: Arc<[u8]>,
    sent: usize,
    response: Vec<u8>,
}

impl TunnelMouth {
    pub(super) fn new(request: Arc<[u8]>) -> Self {
        Self { request, sent: 0, response: Vec::new() }
    }

    /// Asks, and waits for the response. The server is silent until TLS begins, so nothing follows it.
    pub(super) fn open(&mut self, socket: &OwnedFd) -> Result<Flow, ErrorKind> {
        let socket = socket.as_raw_fd();
        while self.sent < self.request.len() {
            match send(socket, &self.request[self.sent..], MsgFlags::MSG_NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(stream_error(errno)),
            }
        }
        let mut room = [0; 1024];
        while !self.response.ends_with(b"\r\n\r\n") {
            match recv(socket, &mut room, MsgFlags::empty()) {
                Ok(0) if self.response.is_empty() => return Err(ErrorKind::EmptyResponse),
                Ok(0) => return Err(ErrorKind::Truncated),
                Ok(count) => self.response.extend(&room[..count]),
                Err(Errno::EAGAIN) => return Ok(Flow::Blocked),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(stream_error(errno)),
            }
            let is_refused = self.response.len() > 9 && !is_good(&self.response);
            if is_refused || self.response.len() > LONGEST {
                return Err(if is_refused { ErrorKind::WrongStatus } else { ErrorKind::Malformed });
            }
        }
        if is_good(&self.response) { Ok(Flow::Done) } else { Err(ErrorKind::Malformed) }
    }
}

/// A status from 200 to 299.
fn is_good(response: &[u8]) -> bool {
    response.starts_with(b"HTTP/1.") && response.get(8..10) == Some(b" 2")
}
