//! How content enters and leaves the kernel: copied, as in most programs, or in one of the ways that avoid a
//! copy.
//!
//! | `options.mode` | writer | reader |
//! |---|---|---|
//! | `plain` | `send(2)` | `recv(2)`, every byte is compared |
//! | `sendfile` | `sendfile(2)` out of a file in memory | as plain |
//! | `splice` | the same through a pipe, `splice(2)` twice | as plain |
//! | `zerocopy` | `send(2)` with `MSG_ZEROCOPY`: the kernel sends the program's own pages | as plain |
//! | `truncate` | as plain | `recv(2)` with `MSG_TRUNC`: no copy, no comparison |
//!
//! Towards a peer on the same host the kernel copies even with `MSG_ZEROCOPY` (`skb_orphan_frags_rx()`), and
//! notifications cost extra.

#![allow(unsafe_code, reason = "SO_ZEROCOPY and MSG_ERRQUEUE, which nix does not have")]

use crate::layer::transfer::PERIOD;
use crate::refusal::{Doing, Refusal};
use linerate_contract::Choice;
use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::sendfile::sendfile64;
use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::{pipe2, write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// How content passes through the kernel: `options.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyMode {
    Plain,
    Sendfile,
    Splice,
    ZeroCopy,
    Truncate,
}

impl Choice for CopyMode {
    const OPTION: &'static str = "mode";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("plain", Self::Plain),
        ("sendfile", Self::Sendfile),
        ("splice", Self::Splice),
        ("zerocopy", Self::ZeroCopy),
        ("truncate", Self::Truncate),
    ];

    fn refuse(message: String) -> Refusal {
        Refusal::Unsupported(message)
    }
}

impl CopyMode {
    /// Whether the reader gets the bytes and compares them.
    pub(super) fn compares(self) -> bool {
        self != Self::Truncate
    }
}

/// A file in memory with `bytes`, the source of `sendfile(2)` and `splice(2)`.
pub(super) fn file_of(bytes: &[u8]) -> Result<Arc<OwnedFd>, Refusal> {
    let file = memfd_create(c"content", MFdFlags::MFD_CLOEXEC).doing("memfd_create")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = write(&file, rest).doing("writing the content into memory")?;
        rest = &rest[written..];
    }
    Ok(Arc::new(file))
}

/// The state of a connection's writing side between two writes.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pipe: Option<(OwnedFd, OwnedFd)>,
    /// Bytes in the pipe.
    piped: usize,
    prepared: bool,
}

impl Writer {
    /// Moves up to `piece.len()` bytes from `offset` of the content into the socket.
    #[inline]
    pub(super) fn write(
        &mut self,
        mode: CopyMode,
        socket: &OwnedFd,
        piece: &[u8],
        offset: u64,
        file: Option<&OwnedFd>,
    ) -> nix::Result<usize> {
        match (mode, file) {
            (CopyMode::Sendfile, Some(file)) => {
                let mut at = (offset % PERIOD as u64) as i64;
                sendfile64(socket, file, Some(&mut at), piece.len())
            }
            (CopyMode::Splice, Some(file)) => self.splice(socket, file, piece.len(), offset),
            (CopyMode::ZeroCopy, _) => self.send_pages(socket, piece),
            _ => send(socket.as_raw_fd(), piece, MsgFlags::MSG_NOSIGNAL),
        }
    }

    fn splice(&mut self, socket: &OwnedFd, file: &OwnedFd, length: usize, offset: u64) -> nix::Result<usize> {
        let (output, input) = match &self.pipe {
            Some(pipe) => pipe,
            None => self.pipe.insert(pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?),
        };
        let flags = SpliceFFlags::SPLICE_F_NONBLOCK | SpliceFFlags::SPLICE_F_MOVE;
        if self.piped == 0 {
            let mut at = (offset % PERIOD as u64) as i64;
            self.piped = splice(file, Some(&mut at), input, None, length, flags)?;
        }
        let moved = splice(output, None, socket, None, self.piped, flags)?;
        self.piped -= moved;
        Ok(moved)
    }

    /// The pages never change, so no write waits for a notification. Notifications are read because they use
    /// the socket's option memory.
    fn send_pages(&mut self, socket: &OwnedFd, piece: &[u8]) -> nix::Result<usize> {
        if !self.prepared {
            set_zerocopy(socket)?;
            self.prepared = true;
        }
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::from_bits_retain(libc::MSG_ZEROCOPY);
        match send(socket.as_raw_fd(), piece, flags) {
            Err(Errno::ENOBUFS) => {
                take_notifications(socket);
                send(socket.as_raw_fd(), piece, flags).map_err(|errno| match errno {
                    Errno::ENOBUFS => Errno::EAGAIN,
                    errno => errno,
                })
            }
            sent => {
                take_notifications(socket);
                sent
            }
        }
    }
}

fn set_zerocopy(socket: &OwnedFd) -> nix::Result<()> {
    let one: libc::c_int = 1;
    // SAFETY: setsockopt(2) reads one c_int at the pointer, which is borrowed for the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ZEROCOPY,
            std::ptr::from_ref(&one).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Errno::result(outcome).map(drop)
}

/// Empties the queue of notifications; each covers all sends since the previous one.
fn take_notifications(socket: &OwnedFd) {
    let mut control = [0_u64; 16];
    loop {
        // SAFETY: msghdr is a plain C structure, for which all zeros is a value: no name, no buffers.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        // SAFETY: the header points to a control buffer of the given length, borrowed for the call.
        let got = unsafe {
            libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
        };
        if got < 0 {
            return;
        }
    }
}

/// Receives into `room`; with `truncate` the kernel drops up to that many bytes (tcp(7), `MSG_TRUNC`).
#[inline]
pub(super) fn receive(mode: CopyMode, socket: &OwnedFd, room: &mut [u8]) -> nix::Result<usize> {
    let flags = if mode == CopyMode::Truncate { MsgFlags::MSG_TRUNC } else { MsgFlags::empty() };
    recv(socket.as_raw_fd(), room, flags)
}
