//! How bytes enter and leave the kernel: copied, as in most programs, or for the content of a stream over TCP
//! in one of the ways that avoid a copy.
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

use super::Source;
use crate::layer::transfer::{Content, PERIOD};
use crate::refusal::{Doing, Refusal};
use crate::socket::send;
use linerate_contract::{Choice, Spec};
use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::sendfile::sendfile64;
use nix::sys::socket::{MsgFlags, sendmsg};
use nix::unistd::{pipe2, write};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// One connection's way into the kernel.
pub trait Passage: Clone + Send + Sized + 'static {
    /// # Errors
    /// A mode that is not supported.
    fn new(spec: &Spec) -> Result<Self, Refusal>;

    /// Moves the next bytes of `source`, which are `slices`, into the socket; returns their number.
    ///
    /// # Errors
    /// The system call fails.
    fn write(&mut self, socket: &OwnedFd, source: &impl Source, slices: [&[u8]; 2]) -> nix::Result<usize>;

    /// Whether received content is discarded by the kernel (tcp(7), `MSG_TRUNC`).
    fn discards(&self) -> bool {
        false
    }
}

/// By `send(2)` and `recv(2)`.
#[derive(Debug, Clone, Copy)]
pub struct Copied;

impl Passage for Copied {
    fn new(_spec: &Spec) -> Result<Self, Refusal> {
        Ok(Self)
    }

    #[inline]
    fn write(&mut self, socket: &OwnedFd, source: &impl Source, slices: [&[u8]; 2]) -> nix::Result<usize> {
        let more =
            if source.joins() { MsgFlags::from_bits_retain(libc::MSG_MORE) } else { MsgFlags::empty() };
        let flags = more | MsgFlags::MSG_NOSIGNAL;
        if slices[1].is_empty() {
            send(socket.as_raw_fd(), slices[0], flags)
        } else {
            sendmsg::<()>(socket.as_raw_fd(), &slices.map(IoSlice::new), &[], flags, None)
        }
    }
}

/// How content passes through the kernel: `options.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyMode {
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

/// A file in memory with `bytes`, the source of `sendfile(2)` and `splice(2)`.
fn file_of(bytes: &[u8]) -> Result<Arc<OwnedFd>, Refusal> {
    let file = memfd_create(c"content", MFdFlags::MFD_CLOEXEC).doing("memfd_create")?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = write(&file, rest).doing("writing the content into memory")?;
        rest = &rest[written..];
    }
    Ok(Arc::new(file))
}

/// By `options.mode`.
#[derive(Debug, Clone)]
pub struct Kernel {
    mode: CopyMode,
    /// The content as a file, where the mode needs one.
    file: Option<Arc<OwnedFd>>,
    pipe: Pipe,
    prepared: bool,
}

#[derive(Debug, Clone, Default)]
struct Pipe {
    ends: Option<Arc<(OwnedFd, OwnedFd)>>,
    /// Bytes in it.
    filled: usize,
}

impl Passage for Kernel {
    fn new(spec: &Spec) -> Result<Self, Refusal> {
        let mode = spec.choice::<CopyMode>()?.unwrap_or(CopyMode::Plain);
        let needs_file = matches!(mode, CopyMode::Sendfile | CopyMode::Splice);
        let file = needs_file.then(|| file_of(Content::new(spec)?.bytes())).transpose()?;
        Ok(Self { mode, file, pipe: Pipe::default(), prepared: false })
    }

    #[inline]
    fn write(&mut self, socket: &OwnedFd, source: &impl Source, slices: [&[u8]; 2]) -> nix::Result<usize> {
        let Some(offset) = source.place() else { return Copied.write(socket, source, slices) };
        let mut at = (offset % PERIOD as u64) as i64;
        match (self.mode, &self.file) {
            (CopyMode::Sendfile, Some(file)) => sendfile64(socket, file, Some(&mut at), slices[0].len()),
            (CopyMode::Splice, Some(file)) => self.pipe.splice(socket, file, slices[0].len(), at),
            (CopyMode::ZeroCopy, _) => self.send_pages(socket, slices[0]),
            _ => Copied.write(socket, source, slices),
        }
    }

    fn discards(&self) -> bool {
        self.mode == CopyMode::Truncate
    }
}

impl Pipe {
    fn splice(&mut self, socket: &OwnedFd, file: &OwnedFd, length: usize, mut at: i64) -> nix::Result<usize> {
        let (output, input) = match &self.ends {
            Some(ends) => &**ends,
            None => &**self.ends.insert(Arc::new(pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?)),
        };
        let flags = SpliceFFlags::SPLICE_F_NONBLOCK | SpliceFFlags::SPLICE_F_MOVE;
        if self.filled == 0 {
            self.filled = splice(file, Some(&mut at), input, None, length, flags)?;
        }
        let moved = splice(output, None, socket, None, self.filled, flags)?;
        self.filled -= moved;
        Ok(moved)
    }
}

impl Kernel {
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
