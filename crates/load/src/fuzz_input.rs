//! Help for fuzz targets: input in parts, and connected sockets.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes of a fuzz target, taken from the front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FuzzInput<'a>(pub(crate) &'a [u8]);

impl<'a> FuzzInput<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next bytes, `most` at most.
    pub(crate) fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Bytes of the length that a byte announces.
    pub(crate) fn field(&mut self) -> &'a [u8] {
        let length = self.byte().unwrap_or(0);
        self.take(length.into())
    }
}

/// Two ends of a byte stream that do not block.
pub(crate) fn connected() -> (OwnedFd, OwnedFd) {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socketpair(AddressFamily::Unix, SockType::Stream, None, flags).expect("descriptors are left")
}

/// Writes what the socket takes; its length.
pub(crate) fn put(socket: &OwnedFd, bytes: &[u8]) -> usize {
    send(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL).unwrap_or(0)
}

/// Reads all that is there.
pub(crate) fn drain(socket: &OwnedFd) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(count @ 1..) => all.extend_from_slice(&buffer[..count]),
            Err(Errno::EINTR) => {}
            _ => return all,
        }
    }
}
